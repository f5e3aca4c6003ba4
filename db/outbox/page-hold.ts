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
 * The page of a new incident may wait while a run looks and repairs. Its outbox row has the end
 * from the beginning; this file only lets it go earlier, in the transaction of the fact that makes
 * it. Each function answers the row that the log gets.
 */

type GateNote = NewEvent<'noted'>

/** Until when the page of this incident waits, as it opens; null where it leaves at once. */
export async function holdUntilOf(trx: Trx, row: IncidentRow): Promise<string | null> {
  const settings = await readSettings(trx)
  const { severity, resourceKind, resourceId } = row
  const resource = resourceKind && resourceId ? { kind: resourceKind as ResourceKind, id: resourceId } : null
  const seconds = holdSecondsOf(settings.value<HoldRule[]>('page.hold', row.type), { severity, resource })
  // Nobody will look: there is nothing to wait for.
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
 * Entries that wake somebody: destinations set to, browsers of people, and webhooks of the template
 * `generic`.
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
 * The effect of a log's new row on its incident's page. Called for every row; asks the database for
 * few.
 */
export async function followPage(trx: Trx, incidentId: string, event: NewEvent): Promise<GateNote | null> {
  const step = stepOfGate(event)
  if (step === null) return null
  return step.do === 'release'
    ? await releasePage(trx, incidentId, step.why)
    : await settlePage(trx, incidentId, { isRepaired: true })
}

/** Lets a page go that waits. Null where none does. The caller holds the incident's lock. */
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

/** Decides whether a repaired incident's page is needed. The caller holds the incident's lock. */
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

/** The page is not needed: its row stays, and says so. One whose time is over is on its way. */
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

/** A page that waits. */
export const isHeld: RawBuilder<boolean> = sql<boolean>`(hold_until is not null and released_at is null)`

function gateNote(code: 'page_held' | 'page_released' | 'page_spared', text: string): GateNote {
  return { kind: 'noted', actor: systemActor, detail: text, metadata: { code, text } }
}
