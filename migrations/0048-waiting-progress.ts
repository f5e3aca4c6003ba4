import { type Kysely, sql } from 'kysely'

/**
 * Makes `is_any_waiting` fast, which is called for each request with alerts. Without the index,
 * each key of the request was compared with each waiting part. Sequential scans are off, because
 * the planner assumes that reading the few long rows is cheap. An index with a list of pending
 * entries (`fastupdate`) would also be read completely. `taken_at`: when a part was last processed.
 * A long request that is being processed is not lost.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index waiting_part_keys on waiting_part using gin (keys) with (fastupdate = off)`.execute(db)
  await sql`
    create function is_any_waiting(wanted text[]) returns boolean language sql stable
      set enable_seqscan = off set search_path = pg_catalog, public, pg_temp
      as $$ select exists (select from waiting_part where keys && wanted) $$`.execute(db)
  await sql`alter table waiting_body add column taken_at timestamptz`.execute(db)
}
