import { sql } from 'kysely'
import type { EventKind, IncidentEvent } from '../../domain/event.ts'
import { type CallRef, stepKey } from '../../domain/step-key.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { fromRow } from './append.ts'

/** Lists log rows of an incident after a row number, oldest first. */
export async function eventsOf(
  db: Db | Trx,
  incidentId: string,
  options: { afterSeq?: number; attempt?: number; limit?: number } = {},
): Promise<IncidentEvent[]> {
  let query = db
    .selectFrom('incidentEvent')
    .selectAll()
    .where('incidentId', '=', incidentId)
    .where('seq', '>', options.afterSeq ?? 0)
    .orderBy('seq')
  if (options.attempt !== undefined) query = query.where('attempt', '=', options.attempt)
  if (options.limit !== undefined) query = query.limit(options.limit)
  return (await query.execute()).map(fromRow)
}

/** Maps incidents to their newest log rows. */
export async function lastEventsOf({ db }: Scope, incidentIds: string[]): Promise<Map<string, IncidentEvent>> {
  if (incidentIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('incidentEvent')
    .innerJoin('incident', 'incident.id', 'incidentEvent.incidentId')
    .selectAll('incidentEvent')
    .where('incident.id', 'in', incidentIds)
    .whereRef('incidentEvent.seq', '=', sql`incident.next_seq - 1`)
    .execute()
  return new Map(rows.map((row) => [row.incidentId, fromRow(row)]))
}

/** Reads the log row with this step key; null if there is none or its kind differs. */
export async function eventByStepKey<K extends EventKind>(
  db: Db | Trx,
  stepKey: string | null,
  kind: K,
): Promise<IncidentEvent<K> | null> {
  if (stepKey === null) return null
  const row = await db
    .selectFrom('incidentEvent')
    .selectAll()
    .where('stepKey', '=', stepKey)
    .where('kind', '=', kind)
    .executeTakeFirst()
  return row ? (fromRow(row) as IncidentEvent<K>) : null
}

/**
 * Finds the log row of one kind for a call. Rows of a turn or run are read by their own key
 * instead.
 */
export async function eventOfCall<K extends EventKind>(
  db: Db | Trx,
  place: CallRef,
  kind: K,
): Promise<IncidentEvent<K> | null> {
  return await eventByStepKey(db, stepKey(place, place.turn, kind, place.call), kind)
}

/** Counts log rows of one kind in this attempt. */
export async function countEvents(
  db: Db | Trx,
  { incidentId, attempt }: { incidentId: string; attempt: number },
  kind: EventKind,
): Promise<number> {
  const { count } = await db
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow()
  return count
}
