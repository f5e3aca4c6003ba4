import { type RawBuilder, sql } from 'kysely'
import { destinationPrefix } from '../../domain/destination.ts'
import { type NewEvent, systemActor } from '../../domain/event.ts'
import {
  describeHeld,
  describeReleased,
  describeSpared,
  type ReleaseReason,
  settleGate,
  stepOfGate,
} from '../../domain/page-gate.ts'
import { type HoldRule, holdSecondsOf } from '../../domain/page-hold.ts'
import type { ResourceKind } from '../../domain/registry.ts'
import { wakesSomebody } from '../../domain/route.ts'
import { now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { readSettings } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import { pushPrefix } from './push-subscriptions.ts'

/**
 * Delays the page of a new incident while a run reads and repairs. The outbox row of the page
 * contains the end of the delay from the beginning. This file only releases the page earlier, in
 * the transaction of the event that decides about it. Each function returns the row for the log.
 */

type GateNote = NewEvent<'noted'>

/** Computes the end of a page's delay when its incident opens; null if it is sent at once. */
export async function holdUntilOf(trx: Trx, row: IncidentRow): Promise<string | null> {
  const settings = await readSettings(trx)
  const { severity, resourceKind, resourceId } = row
  const resource = resourceKind && resourceId ? { kind: resourceKind as ResourceKind, id: resourceId } : null
  const seconds = holdSecondsOf(settings.value<HoldRule[]>('page.hold', row.type), { severity, resource })
  // Sends the page at once if nobody will investigate, because the page would wait for nothing.
  if (seconds === 0 || row.keptReason !== null || settings.value<boolean>('agent.paused')) return null
  const { rows } = await sql<{ until: string }>`
    select ${row.createdAt}::timestamptz + make_interval(secs => ${seconds}) as until
    where ${row.createdAt}::timestamptz + make_interval(secs => ${seconds}) > nightshift_now()
      and not exists (select from lost_duty where seen_at > (select nightshift_now()) - interval '150 seconds')`.execute(
    trx,
  )
  return rows[0]?.until ?? null
}

/**
 * Finds the outbox entries that wake somebody: destinations that are set to do so, people's
 * browsers, and webhooks with the template `generic`.
 */
export async function wakingEntries(trx: Trx, entries: readonly string[]): Promise<string[]> {
  const settings = await readSettings(trx)
  const rows = await trx.selectFrom('destination').select(['name', 'kind', 'options', 'route']).execute()
  const waking = new Set(rows.filter(wakesSomebody).map(({ name }) => `${destinationPrefix}${name}`))
  return entries.filter((entry) => {
    if (entry.startsWith('webhook.')) return settings.value<string>(`${entry}.template`) === 'generic'
    return entry.startsWith(pushPrefix) || waking.has(entry)
  })
}

export function heldNote(until: string): GateNote {
  return gateNote('page_held', describeHeld(until))
}

/**
 * Applies a new log row to the page of its incident. Called for every row, but queries the database
 * only for a few kinds of rows.
 */
export async function followPage(trx: Trx, incidentId: string, event: NewEvent): Promise<GateNote | null> {
  const step = stepOfGate(event)
  if (step === null) return null
  return step.do === 'release'
    ? await releasePage(trx, incidentId, step.why)
    : await settlePage(trx, incidentId, { isRepaired: true })
}

/** Releases an incident's page. Null if no page waits. The caller holds the incident's lock. */
export async function releasePage(
  trx: Trx,
  incidentId: string,
  why: Exclude<ReleaseReason, 'repaired'>,
): Promise<GateNote | null> {
  const released = await trx
    .updateTable('delivery')
    .set({ releasedAt: now, releasedWhy: why, nextAt: sql`least(next_at, nightshift_now())` })
    .where('incidentId', '=', incidentId)
    .where(isHeld)
    .$if(why !== 'time', (query) => query.where('status', '=', 'pending'))
    .returning('id')
    .execute()
  return released.length === 0 ? null : gateNote('page_released', describeReleased(why))
}

/**
 * Decides whether the page of a repaired incident is needed. The caller holds the incident's lock.
 */
export async function settlePage(
  trx: Trx,
  incidentId: string,
  { isRepaired }: { isRepaired: boolean },
): Promise<GateNote | null> {
  const held = await trx
    .selectFrom('delivery')
    .select('id')
    .where('incidentId', '=', incidentId)
    .where(isHeld)
    .limit(1)
    .executeTakeFirst()
  if (!held) return null
  const { rows } = await sql<{ hasHeld: boolean; isOver: boolean; seconds: number }>`
    select coalesce((
        select metadata->>'outcome' = 'held' from incident_event
        where incident_id = ${incidentId} and kind = 'verification' and attempt = incident.attempt
        order by seq desc limit 1), false) as "hasHeld",
      (select count(*) > 0 and bool_and(status = 'resolved' and end_reason is null) from alert
        where incident_id = ${incidentId}) as "isOver",
      extract(epoch from nightshift_now() - created_at)::float8 as seconds
    from incident where id = ${incidentId}`.execute(trx)
  const facts = rows[0]
  if (!facts) return null
  const decided = settleGate({ isRepaired, ...facts })
  if (decided === 'wait') return null
  if (decided === 'release') return await releasePage(trx, incidentId, 'ended')
  return await sparePage(trx, incidentId, facts.seconds)
}

/**
 * Marks a page as not needed, and keeps its outbox row. A page whose delay is over stays as it is,
 * because it is being sent.
 */
async function sparePage(trx: Trx, incidentId: string, seconds: number): Promise<GateNote | null> {
  const text = describeSpared(seconds)
  const spared = await trx
    .updateTable('delivery')
    .set({ status: 'dropped', response: text, finishedAt: now, releasedAt: now, releasedWhy: 'repaired' })
    .where('incidentId', '=', incidentId)
    .where(isHeld)
    .where('status', '=', 'pending')
    .where('holdUntil', '>', now)
    .returning('id')
    .execute()
  return spared.length === 0 ? null : gateNote('page_spared', text)
}

/** Whether the page of an incident is delayed now. */
export const isHeld: RawBuilder<boolean> = sql<boolean>`(hold_until is not null and released_at is null)`

function gateNote(code: 'page_held' | 'page_released' | 'page_spared', text: string): GateNote {
  return { kind: 'noted', actor: systemActor, detail: text, metadata: { code, text } }
}
