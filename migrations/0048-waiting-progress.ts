import { type Kysely, sql } from 'kysely'

/**
 * `is_any_waiting` is asked for each body that comes in, and each of its keys was held against each that waits: the index finds them. The
 * planner takes the few long rows for cheap to read through, and an index with a list of what is still to be put into it (`fastupdate`) is read
 * through as well. `taken_at`: when a part was taken up last, for a long body that is at work is not lost.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index waiting_part_keys on waiting_part using gin (keys) with (fastupdate = off)`.execute(db)
  await sql`
    create function is_any_waiting(wanted text[]) returns boolean language sql stable
      set enable_seqscan = off set search_path = pg_catalog, public, pg_temp
      as $$ select exists (select from waiting_part where keys && wanted) $$`.execute(db)
  await sql`alter table waiting_body add column taken_at timestamptz`.execute(db)
}
