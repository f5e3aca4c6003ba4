import { type Kysely, sql } from 'kysely'

/**
 * Records when each alert that always fires (`Watchdog`) was last received. If such an alert is
 * missing, an incident is opened.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table heartbeat (
      source text not null,
      fingerprint text not null,
      name text not null,
      labels jsonb not null,
      first_seen_at timestamptz not null default nightshift_now(),
      last_seen_at timestamptz not null default nightshift_now(),
      sights integer not null default 1,
      longest_gap_seconds double precision not null default 0,
      stopped_at timestamptz,
      primary key (source, fingerprint)
    )`.execute(db)
  await sql`grant select, insert, update on heartbeat to nightshift_app`.execute(db)
}
