import { sql } from 'kysely'
import {
  packCounts,
  type StatementCounts,
  type StatementSnapshot,
  unpackCounts,
} from '../../domain/statement-snapshot.ts'
import { cleanse } from '../../safety/redact.ts'
import { onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'

/** Snapshots of the statement counters of database servers: one for each source and day (UTC). */

const keptDays = sql`interval '8 days'`

export async function hasSnapshotOfToday(db: Db, source: string): Promise<boolean> {
  const today = sql<string>`(${onceNow} at time zone 'UTC')::date`
  const row = await db
    .selectFrom('statementSnapshot')
    .select('source')
    .where('source', '=', source)
    .where('day', '=', today)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Stores a snapshot, unless another process has already stored one today, or the source was removed
 * in between.
 */
export async function keepSnapshot(db: Db, source: string, counted: StatementCounts): Promise<void> {
  const { server, version, countedSince } = counted
  const counts = cleanse(counted.counts)
  const { text, isWhole } = packCounts({ ...counted, counts })
  await sql`
    insert into statement_snapshot (source, day, server, version, counted_since, is_whole, counts)
    select name, (nightshift_now() at time zone 'UTC')::date, ${server}, ${version}, ${countedSince}::timestamptz, ${isWhole}, ${text}
    from source where name = ${source}
    on conflict do nothing`.execute(db)
}

/** Lists the snapshots of a source, the oldest first. */
export async function listSnapshots(db: Db, source: string): Promise<StatementSnapshot[]> {
  const rows = await db
    .selectFrom('statementSnapshot')
    .select(['takenAt', 'server', 'version', 'countedSince', 'isWhole', 'counts'])
    .where('source', '=', source)
    .where('takenAt', '>', sql<string>`${onceNow} - ${keptDays}`)
    .orderBy('takenAt')
    .execute()
  return rows.map((row) => ({ ...row, counts: unpackCounts(row.counts) }))
}

export async function dropOldSnapshots(db: Db): Promise<void> {
  await sql`delete from statement_snapshot where taken_at < ${onceNow} - ${keptDays}`.execute(db)
}
