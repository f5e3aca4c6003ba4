import { type Kysely, sql } from 'kysely'

/**
 * Creates three tables. `run_wait`: what a run waits for while the core API does not respond, so
 * that a page can show why nothing happens. `run_missed`: incidents whose run was not found at
 * Temporal once; a second check decides. `schema_build`: the build that applied each migration, so
 * that an older build can name it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table run_wait (
      incident_id text primary key references incident (id) on delete cascade,
      attempt integer not null,
      waits_for text not null,
      since timestamptz not null default nightshift_now(),
      seen_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table run_missed (
      incident_id text primary key references incident (id) on delete cascade,
      attempt integer not null,
      missed_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table schema_build (
      migration text primary key,
      build text not null,
      applied_at timestamptz not null default clock_timestamp()
    )`.execute(db)
  await sql`grant select on schema_build to nightshift_app`.execute(db)
  await sql`grant select, insert, update, delete on run_wait, run_missed to nightshift_app`.execute(db)
}
