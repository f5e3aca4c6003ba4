import { type Kysely, sql } from 'kysely'

/** Creates the clock, the incidents, and the log, which records what happened. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Every statement gets the time from this function, so that a test can move time by replacing one
  // function. It is volatile on purpose: after a wait for a row lock it must return the present
  // time, or an expired approval could still be decided.
  await sql`
    create function nightshift_now() returns timestamptz language sql volatile parallel safe
    as $$ select clock_timestamp() $$`.execute(db)

  await sql`
    create table incident (
      id text primary key,
      type text not null check (type ~ '^[a-z0-9_]{1,48}$'),
      severity text not null check (severity in ('critical', 'warning', 'info')),
      severity_source text not null default 'alert',
      status text not null default 'open'
        check (status in ('open', 'investigating', 'awaiting_approval', 'resolved', 'escalated', 'cancelled')),
      title text not null,
      resource_kind text,
      resource_id text,
      assigned_to text,
      attempt integer not null default 0,
      role text check (role in ('leader', 'follower')),
      group_id text,
      queued_at timestamptz,
      requested_by text,
      resolution text,
      time_budget_seconds integer not null default 1800,
      created_at timestamptz not null default nightshift_now(),
      updated_at timestamptz not null default nightshift_now(),
      last_event_at timestamptz not null default nightshift_now(),
      closed_at timestamptz,
      reopened integer not null default 0,
      next_seq integer not null default 1,
      head_hash text not null default '',
      -- Closed means nobody holds it: an incident assigned to a dead run is the one state that must not exist.
      check (status in ('investigating', 'awaiting_approval') = (assigned_to is not null))
    )`.execute(db)
  await sql`create index incident_queue on incident (type, severity, created_at) where status = 'open'`.execute(db)
  await sql`create index incident_running on incident (type) where status in ('investigating', 'awaiting_approval')`.execute(
    db,
  )
  await sql`create index incident_newest on incident (created_at desc, id desc)`.execute(db)

  await sql`
    create table incident_event (
      id bigint generated always as identity primary key,
      tx xid8 not null default pg_current_xact_id(),
      incident_id text not null references incident (id),
      attempt integer not null,
      seq integer not null,
      step_key text unique,
      turn integer,
      kind text not null,
      action text not null,
      actor text not null,
      detail text not null,
      metadata jsonb not null,
      at timestamptz not null,
      prev_hash text not null,
      hash text not null,
      unique (incident_id, seq)
    )`.execute(db)
  await sql`create index incident_event_stream on incident_event (tx, id)`.execute(db)

  await sql`
    create table result_body (
      digest text primary key,
      bytes bytea not null,
      created_at timestamptz not null default nightshift_now()
    )`.execute(db)

  await sql`
    create function refuse_change() returns trigger language plpgsql as $$
    begin
      raise exception '% is append-only: % is refused', tg_table_name, tg_op using errcode = 'insufficient_privilege';
    end $$`.execute(db)
  await sql`
    create trigger incident_event_append_only before update or delete on incident_event
    for each row execute function refuse_change()`.execute(db)
  await sql`
    create trigger incident_event_no_truncate before truncate on incident_event
    for each statement execute function refuse_change()`.execute(db)

  await sql`
    create table alert (
      id text primary key,
      source text not null,
      fingerprint text not null,
      status text not null check (status in ('firing', 'resolved')),
      name text not null,
      labels jsonb not null,
      annotations jsonb not null,
      links jsonb not null,
      group_key text,
      starts_at timestamptz not null,
      ends_at timestamptz,
      count integer not null default 1,
      first_seen_at timestamptz not null default nightshift_now(),
      last_seen_at timestamptz not null default nightshift_now(),
      incident_id text references incident (id),
      raw jsonb not null
    )`.execute(db)
  await sql`create unique index alert_open on alert (source, fingerprint) where status = 'firing'`.execute(db)
  await sql`create index alert_incident on alert (incident_id)`.execute(db)
  await sql`create index alert_recent on alert (last_seen_at desc)`.execute(db)
}
