import { type Kysely, sql } from 'kysely'

/**
 * Records when the database was restored from a backup, and the time of the backup. The database
 * lacks everything that happened between the two times.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table restoration (
      id bigint generated always as identity primary key,
      backup_at timestamptz not null,
      restored_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`revoke all on restoration from nightshift_app`.execute(db)
  await sql`grant select on restoration to nightshift_app`.execute(db)
}
