import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Scope } from '../scope.ts'
import { fromRow } from './append.ts'

/**
 * A place in the stream of the rows of all logs. The transaction comes first, because ids are not
 * committed in order.
 */
export type StreamPosition = { tx: string; id: number }

export type StreamedEvent = IncidentEvent & { position: StreamPosition }

/**
 * Reads the next rows of the stream after a position. Returns only rows of transactions that are
 * older than every running transaction, so that no row can later appear before a returned position.
 * The stream therefore has no gaps and no repeats.
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

/** Returns the end of the stream, at which a new listener begins. */
export async function streamEnd({ db }: Scope): Promise<StreamPosition> {
  const { rows } = await sql<{ tx: string }>`select (pg_snapshot_xmin(pg_current_snapshot())::text) as tx`.execute(db)
  // Returns a position before the first row of the oldest running transaction. Its rows are not
  // visible yet and would otherwise be missed.
  return { tx: String(BigInt(rows[0]?.tx ?? '1') - 1n), id: Number.MAX_SAFE_INTEGER }
}
