import { type Kysely, sql } from 'kysely'

/**
 * Counts how often somebody tried something that is limited, in a window that begins with the first
 * attempt.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table attempt (
      subject text primary key,
      count integer not null,
      resets_at timestamptz not null
    )`.execute(db)
  await sql`create index attempt_over on attempt (resets_at)`.execute(db)
  await sql`grant select, insert, update, delete on attempt to nightshift_app`.execute(db)
}
