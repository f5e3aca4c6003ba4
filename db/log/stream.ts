import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Scope } from '../scope.ts'
import { fromRow } from './append.ts'

/** A place in the stream of all rows: transaction first, as identity values commit out of order. */
export type StreamPosition = { tx: string; id: number }

export type StreamedEvent = IncidentEvent & { position: StreamPosition }

/**
 * The next rows of the stream after a position. Only rows of transactions older than every running
 * one, so that none appears later before a position handed out: no gap, no overlap.
 */
export async function streamAfter(
  { db }: Scope,
  after: StreamPosition,
  options: { incidentId?: string; limit: number },
): Promise<StreamedEvent[]> {
  let query = db
    .selectFrom('incidentEvent')
    .selectAll()
    .where(sql<boolean>`tx < pg_snapshot_xmin(pg_current_snapshot())`)
    .where(sql<boolean>`(tx, id) > (${after.tx}::xid8, ${after.id}::bigint)`)
    .orderBy('tx')
    .orderBy('id')
    .limit(options.limit)
  if (options.incidentId) query = query.where('incidentId', '=', options.incidentId)
  const rows = await query.execute()
  return rows.map((row) => ({ ...fromRow(row), position: { tx: String(row.tx), id: row.id } }))
}

/** Where the stream ends now: what a new listener starts from. */
export async function streamEnd({ db }: Scope): Promise<StreamPosition> {
  const { rows } = await sql<{ tx: string }>`select (pg_snapshot_xmin(pg_current_snapshot())::text) as tx`.execute(db)
  // Rows of that transaction are not visible yet: a position before its first row misses nothing.
  return { tx: String(BigInt(rows[0]?.tx ?? '1') - 1n), id: Number.MAX_SAFE_INTEGER }
}
