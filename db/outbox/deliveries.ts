import { sql } from 'kysely'
import { newId } from '../../domain/digest.ts'
import type { AskedApproval, Notification, Trigger } from '../../domain/notification.ts'
import type { ResourceKind } from '../../domain/registry.ts'
import { cleanse } from '../../safety/redact.ts'
import { now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import type { Scope } from '../scope.ts'
import type { IncidentRow } from '../tables.ts'
import { type AskedOf, destinations, type OutboxDestination } from './destinations.ts'
import { heldNote, wakingEntries } from './page-hold.ts'
import { release } from './release-pages.ts'
import { type WaitsForMorning, whyUntilMorning } from './wake-budget.ts'

export const maxAttempts = 3

/**
 * Puts a notification into the outbox if somebody wants it: the transaction that makes it true
 * makes it due.
 */
export async function enqueueNotification(
  trx: Trx,
  incident: IncidentRow,
  trigger: Trigger,
  reason: string | null,
  more: {
    approval?: AskedApproval
    asked?: AskedOf
    page?: boolean
    incidents?: Notification['incidents']
    /** Until when those wait whom it would wake; the others hear at once. */
    holdUntil?: string | null
  } = {},
): Promise<void> {
  const page = more.page ?? isToPage(trigger, incident)
  const waits = page ? await whyUntilMorning(trx, incident, trigger, more.approval) : null
  if (waits?.note) await append(trx, incident.id, null, waits.note)
  // What wakes people about an incident comes after its own page.
  if (page && !waits && trigger !== 'critical')
    await release(trx, incident.id, trigger === 'approval' ? 'approval' : 'message')
  const { id: incidentId, severity, type: incidentType } = incident
  const told = { incidentId, severity, incidentType, page, asked: more.asked }
  const entries = await preparedEntries(trx, incident.id, { trigger, told })
  if (entries.length === 0) return
  const notification = {
    trigger,
    incident: {
      id: incident.id,
      type: incident.type,
      severity: incident.severity,
      status: incident.status,
      title: incident.title,
      resource: incident.resourceId ? { kind: incident.resourceKind as ResourceKind, id: incident.resourceId } : null,
      outcome: incident.outcome,
      category: incident.category,
    },
    reason,
    approval: more.approval ?? null,
    page,
    alertsFiring: await firingAlerts(trx, incident.id),
    incidents: more.incidents ?? [],
    at: incident.updatedAt,
    headHash: incident.headHash || null,
  }
  if (waits) return await insertReadOnes(trx, incident.id, untilMorning(notification, waits), entries)
  const waking = more.holdUntil ? await wakingEntries(trx, entries) : []
  if (!more.holdUntil || waking.length === 0)
    return await insertEntries(trx, incident.id, JSON.stringify(notification), entries)
  await insertEntries(trx, incident.id, JSON.stringify(notification), waking, more.holdUntil)
  const note = heldNote(more.holdUntil)
  await append(trx, incident.id, null, note)
  const others = entries.filter((entry) => !waking.includes(entry))
  const atOnce = JSON.stringify({ ...notification, page: false, reason: note.detail })
  if (others.length > 0) await insertEntries(trx, incident.id, atOnce, others)
}

/** The same for those who read it at once: nobody is woken, and nobody is called by name. */
function untilMorning<Told extends Pick<Notification, 'reason' | 'approval' | 'page'>>(
  told: Told,
  { text }: WaitsForMorning,
): Told {
  const { approval } = told
  const of = approval?.of && { ...approval.of, slackUserId: null }
  const sections = approval?.sections && [...approval.sections, { title: 'Until the morning', text }]
  return {
    ...told,
    page: false,
    reason: told.reason ? `${told.reason}\n\n${text}` : text,
    approval: approval && { ...approval, ...(of && { of }), ...(sections && { sections }) },
  }
}

async function insertReadOnes(trx: Trx, incidentId: string, told: object, entries: readonly string[]): Promise<void> {
  const waking = await wakingEntries(trx, entries)
  const others = entries.filter((entry) => !waking.includes(entry))
  if (others.length > 0) await insertEntries(trx, incidentId, JSON.stringify(told), others)
}

/**
 * Puts a message about several, or about none, into the outbox, under the incident that carries it.
 * `told` decides who gets it, by default the message itself. `gone`: addresses that cannot be told.
 * False where no way is left.
 */
export async function enqueueJoined(
  trx: Trx,
  incidentId: string,
  joined: Notification,
  { told = entryOf(joined), gone }: Pick<Wanted, 'told' | 'gone'> = {},
): Promise<boolean> {
  const { url: _, ...stored } = joined
  if (joined.page) await release(trx, incidentId, 'message')
  const entries = await preparedEntries(trx, incidentId, { trigger: joined.trigger, told, gone })
  if (entries.length > 0) await insertEntries(trx, incidentId, JSON.stringify(stored), entries)
  return entries.length > 0
}

/** What of a message decides whom it goes to. */
export function entryOf({ incident, page }: Notification) {
  return { incidentId: incident.id, severity: incident.severity, incidentType: incident.type, page }
}

type Wanted = {
  trigger: Trigger
  told?: Parameters<OutboxDestination['entriesFor']>[2]
  gone?: ReadonlySet<string> | undefined
}

/**
 * Entries of all destinations, each made ready for them: without a thread in Slack nobody there
 * would hear.
 */
async function preparedEntries(trx: Trx, incidentId: string, { trigger, told, gone }: Wanted): Promise<string[]> {
  const entries: string[] = []
  for (const destination of destinations) {
    const own = await destination.entriesFor(trx, trigger, told, gone)
    if (own.length > 0) await destination.prepare?.(trx, incidentId)
    entries.push(...own)
  }
  return entries
}

async function insertEntries(
  trx: Trx,
  incidentId: string,
  notification: string,
  entries: readonly string[],
  holdUntil: string | null = null,
): Promise<void> {
  await trx
    .insertInto('delivery')
    .values(
      entries.map((destination) => ({
        messageId: newId('msg'),
        destination,
        incidentId,
        attempt: 1,
        notification,
        ...(holdUntil !== null && { holdUntil, nextAt: holdUntil }),
      })),
    )
    .execute()
}

/** Whether somebody is woken: for what asks a person; what an alert did since is news. */
function isToPage(trigger: Trigger, { severity }: IncidentRow): boolean {
  switch (trigger) {
    case 'resolved':
    case 'watch':
    case 'quiet':
    case 'digest':
    case 'spared':
    case 'morning':
    case 'hand_over':
    case 'follow_up':
    case 'taken':
    case 'closed':
      return false
    case 'reopened':
      return severity === 'critical'
    default:
      return true
  }
}

async function firingAlerts(trx: Trx, incidentId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('alert')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('status', '=', 'firing')
    .executeTakeFirstOrThrow()
  return count
}

export type DueDelivery = {
  id: number
  messageId: string
  destination: string
  incidentId: string
  attempt: number
  notification: unknown
  /** When there was this to tell: the same for every attempt. */
  createdAt: string
}

export type DeliveryResult = {
  status: 'sent' | 'failed' | 'dropped'
  responseStatus: number | null
  response: string
  /** For `failed`: the next attempt is not before this many seconds. */
  retryAfterSeconds: number
  /** For `dropped`: its destination is configured no more, so that nobody waits for it. */
  isUnwanted?: boolean
}

/** Writes an attempt's outcome and, after a failure that a retry may fix, the next one's row. */
export async function finishDelivery(
  trx: Trx,
  delivery: DueDelivery,
  result: DeliveryResult,
  attempts = maxAttempts,
): Promise<void> {
  const isGivenUp =
    result.status === 'dropped' ? !result.isUnwanted : result.status === 'failed' && delivery.attempt >= attempts
  const finished = await trx
    .updateTable('delivery')
    .set({
      status: result.status,
      responseStatus: result.responseStatus,
      response: cleanse(result.response),
      leasedUntil: null,
      finishedAt: now,
      ...(isGivenUp && { givenUpAt: now }),
    })
    .where('id', '=', delivery.id)
    .where('status', '=', 'sending')
    .returning('id')
    .executeTakeFirst()
  if (!finished || result.status !== 'failed' || isGivenUp) return
  await trx
    .insertInto('delivery')
    .values({
      messageId: delivery.messageId,
      destination: delivery.destination,
      incidentId: delivery.incidentId,
      notification: JSON.stringify(delivery.notification),
      attempt: delivery.attempt + 1,
      createdAt: delivery.createdAt,
      // A held message is no older than its release.
      releasedAt: sql`(select coalesce(released_at, hold_until) from delivery where id = ${delivery.id})`,
      nextAt: sql`nightshift_now() + make_interval(secs => ${result.retryAfterSeconds})`,
    })
    .onConflict((conflict) => conflict.columns(['messageId', 'attempt']).doNothing())
    .execute()
}

/** Puts back a delivery that was no attempt: it had to wait, or something had to go first. */
export async function postponeDelivery(trx: Trx, delivery: DueDelivery, seconds: number): Promise<void> {
  await trx
    .updateTable('delivery')
    .set({
      status: 'pending',
      leasedUntil: null,
      nextAt: sql`nightshift_now() + make_interval(secs => ${seconds})`,
    })
    .where('id', '=', delivery.id)
    .where('status', '=', 'sending')
    .execute()
}

/** Every attempt made for an incident, oldest first. */
export async function deliveriesOf({ db }: Scope, incidentId: string) {
  return await db
    .selectFrom('delivery')
    .select([
      'id',
      'messageId',
      'destination',
      'attempt',
      'status',
      'responseStatus',
      'response',
      'nextAt',
      'finishedAt',
      'holdUntil',
      'releasedWhy',
    ])
    .where('incidentId', '=', incidentId)
    .orderBy('id')
    .execute()
}
