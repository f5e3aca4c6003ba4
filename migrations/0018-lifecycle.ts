import { type Kysely, sql } from 'kysely'

/**
 * Adds how an incident was closed, what its alerts did since, and when somebody has to check it
 * again. Incidents that were closed before this migration have no `closed_by`. They are not
 * watched, and their next alert opens a new incident.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Adds the status of an alert that neither fires nor has ended, because nobody knows whether it
  // continues.
  await sql`alter table alert drop constraint alert_status_check`.execute(db)
  await sql`
    alter table alert
      add constraint alert_status_check check (status in ('firing', 'resolved', 'unknown')),
      add column start_given boolean not null default true,
      add column start_seen integer not null default 1,
      add column start_received_at timestamptz not null default nightshift_now(),
      add column end_received_at timestamptz,
      add column unknown_since timestamptz,
      add column unknown_why text check (unknown_why in ('crowd', 'stale'))`.execute(db)
  await sql`update alert set start_seen = count, start_received_at = first_seen_at`.execute(db)
  await sql`drop index alert_open`.execute(db)
  await sql`create unique index alert_open on alert (source, fingerprint) where status in ('firing', 'unknown')`.execute(
    db,
  )
  await sql`create index alert_identity on alert (source, fingerprint)`.execute(db)
  await sql`create index alert_going_on on alert (incident_id) where status in ('firing', 'unknown')`.execute(db)
  await sql`create index alert_end on alert (source, end_received_at) where end_received_at is not null`.execute(db)

  await sql`create index alert_crowd on alert (source, unknown_since) where unknown_why = 'crowd'`.execute(db)

  await sql`
    create table expectation (
      id text primary key,
      subject text not null check (subject in ('alert', 'resource', 'type')),
      source text,
      fingerprint text,
      resource_kind text,
      resource_id text,
      type text,
      until timestamptz not null,
      reason text not null,
      -- What was true when it was marked: an occurrence that looks otherwise is not expected.
      state jsonb not null,
      created_by text not null references operator (id),
      created_at timestamptz not null default nightshift_now(),
      ended_by text references operator (id),
      ended_at timestamptz,
      check (
        (subject = 'alert' and source is not null and fingerprint is not null)
        or (subject = 'resource' and resource_kind is not null and resource_id is not null)
        or (subject = 'type' and type is not null)
      )
    )`.execute(db)
  await sql`create index expectation_in_force on expectation (until) where ended_at is null`.execute(db)

  await sql`
    alter table incident
      add column outcome text,
      add column category text,
      add column closed_by text check (closed_by in ('agent', 'person', 'code')),
      add column watch_until timestamptz,
      add column repair_confirmed_at timestamptz,
      add column cancelled_until timestamptz,
      add column reminded_at timestamptz,
      add column owner_id text references operator (id),
      add column owned_at timestamptz,
      add column kept_reason text,
      add column previous_id text references incident (id),
      add column expectation_id text references expectation (id),
      add column look_wanted text check (look_wanted in ('watch', 'expected', 'crowd')),
      add column look_wanted_at timestamptz,
      add column check_at timestamptz`.execute(db)
  await sql`create index incident_check on incident (check_at) where check_at is not null`.execute(db)
  await sql`create index incident_look on incident (look_wanted_at) where look_wanted is not null`.execute(db)
  await sql`create index incident_owned on incident (owner_id) where owner_id is not null`.execute(db)

  // One row for each destination, with the time of its last digest.
  await sql`
    create table digest (
      destination text primary key,
      sent_at timestamptz not null
    )`.execute(db)
  await sql`grant select, insert, update on expectation, digest to nightshift_app`.execute(db)
}
