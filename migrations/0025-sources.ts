import { type Kysely, sql } from 'kysely'

/**
 * Creates the sources from which metrics, alerts, logs and pages are read, and records which
 * complete responses belong to which incident.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table source (
      name text primary key,
      kind text not null,
      url text not null,
      credential text,
      ca_file text,
      options jsonb not null default '{}',
      timeout_seconds integer not null default 10,
      created_by text not null,
      created_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table source_reading (
      incident_id text not null references incident (id) on delete cascade,
      digest text not null,
      source text not null,
      tool text not null,
      at timestamptz not null default nightshift_now(),
      primary key (incident_id, digest)
    )`.execute(db)
  await sql`grant select, insert, update, delete on source to nightshift_app`.execute(db)
  await sql`grant select, insert on source_reading to nightshift_app`.execute(db)
}
