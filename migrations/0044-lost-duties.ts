import { type Kysely, sql } from 'kysely'

/**
 * Records vital parts that an API process found failed: since when, when a process last found the
 * failure, and when people were notified.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table lost_duty (
      name text primary key,
      since timestamptz not null default clock_timestamp(),
      seen_at timestamptz not null default clock_timestamp(),
      told_at timestamptz)`.execute(db)
  await sql`grant select, insert, update, delete on lost_duty to nightshift_app`.execute(db)
}
