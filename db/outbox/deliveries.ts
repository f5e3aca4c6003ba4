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
 * Puts a notification into the outbox if a destination accepts it, in the transaction of the event
 * that it reports.
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
    /**
     * The end of the delay for destinations at which the message would wake somebody. All other
     * destinations are notified at once.
     */
    holdUntil?: string | null
  } = {},
): Promise<void> {
  const page = more.page ?? isToPage(trigger, incident)
  const waits = page ? await whyUntilMorning(trx, incident, trigger, more.approval) : null
  if (waits?.note) await append(trx, incident.id, null, waits.note)
  // Releases the incident's page first, because a message that wakes people about an incident comes
  // after its page.
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

/**
 * Changes a message for receivers who get it during the night, so that it wakes nobody and
 * addresses nobody by name.
 */
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
 * Puts a message about several incidents, or about Nightshift itself, into the outbox. It is stored
 * as a message of one incident. `told`: determines who gets the message; by default the message
 * itself. `gone`: addresses that cannot be reached. False if no destination gets the message.
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

/** Reads the parts of a message that determine its receivers. */
export function entryOf({ incident, page }: Notification) {
  return { incidentId: incident.id, severity: incident.severity, incidentType: incident.type, page }
}

type Wanted = {
  trigger: Trigger
  told?: Parameters<OutboxDestination['entriesFor']>[2]
  gone?: ReadonlySet<string> | undefined
}

/**
 * Builds the entries of all destinations. Each entry is prepared for its destination; Slack, for
 * example, needs a thread first.
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

/** Whether a message wakes somebody. A question does; later events of an alert are only news. */
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
  /** The time of the reported event, which every attempt to deliver sends. */
  createdAt: string
}

export type DeliveryResult = {
  status: 'sent' | 'failed' | 'dropped'
  responseStatus: number | null
  response: string
  /** For `failed`: the minimum number of seconds until the next attempt. */
  retryAfterSeconds: number
  /**
   * For `dropped`: whether the message's destination is no longer configured, so that nobody
   * expects the message.
   */
  isUnwanted?: boolean
}

/** Stores the outcome of an attempt and, if a retry may help, the row of the next attempt. */
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
      // Counts the age of a delayed message from its release.
      releasedAt: sql`(select coalesce(released_at, hold_until) from delivery where id = ${delivery.id})`,
      nextAt: sql`nightshift_now() + make_interval(secs => ${result.retryAfterSeconds})`,
    })
    .onConflict((conflict) => conflict.columns(['messageId', 'attempt']).doNothing())
    .execute()
}

/**
 * Puts back a delivery that was not attempted, because it had to wait or because another message
 * had to be sent first.
 */
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

/** Lists every attempt to deliver a message of an incident, oldest first. */
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
