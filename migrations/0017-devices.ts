import { type Kysely, sql } from 'kysely'

/**
 * Creates the devices that run an agent of the mesh: what each device may be asked to do, how it is
 * enrolled, and every call that was sent to it. The row of a call is written before the call is
 * sent. A caller that lost the response sends the call again with the same key, request and grant.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table device (
      id text primary key,
      resource_kind text not null check (resource_kind in ('node', 'host', 'vm')),
      resource_id text not null,
      url text not null,
      url_env text,
      mode text not null check (mode in ('user', 'sudo', 'all')),
      guests text check (guests in ('docker', 'pct')),
      timeout_seconds integer not null default 60 check (timeout_seconds between 1 and 3600),
      tools_allowed jsonb not null default '[]',
      enabled boolean not null default true,
      terms jsonb not null,
      manifest_days integer not null default 90 check (manifest_days between 1 and 366),
      manifest jsonb,
      manifest_expires_at timestamptz,
      refresh_sha256 text unique,
      health jsonb,
      health_problem text,
      health_at timestamptz,
      created_at timestamptz not null default nightshift_now(),
      enrolled_at timestamptz,
      revoked_at timestamptz
    )`.execute(db)
  // Each resource has one device, so that it is always clear on which machine a command runs.
  await sql`create unique index device_resource on device (resource_kind, resource_id) where revoked_at is null`.execute(
    db,
  )
  await sql`
    create table device_enrolment (
      sha256 text primary key,
      device_id text not null references device (id),
      created_by text not null,
      created_at timestamptz not null default nightshift_now(),
      expires_at timestamptz not null,
      used_at timestamptz
    )`.execute(db)
  await sql`
    create table mesh_key (
      id text primary key,
      public_key text not null unique,
      known_since timestamptz not null default nightshift_now(),
      signing_since timestamptz,
      not_after timestamptz
    )`.execute(db)
  await sql`
    create table device_call (
      key text primary key,
      request_id text not null unique,
      device_id text not null references device (id),
      incident_id text references incident (id),
      call_id text,
      capability text not null,
      args_digest text not null,
      rehearse boolean not null,
      grant_id text unique,
      authority text,
      begun_at timestamptz not null default nightshift_now(),
      finished_at timestamptz,
      ok boolean,
      error_code text,
      approval_status text,
      audit_hash text,
      truncated boolean,
      duration_ms integer,
      check ((grant_id is null) = (authority is null))
    )`.execute(db)
  // An approval allows one action once, so no second grant can be made from it.
  await sql`create unique index device_call_approval on device_call (authority) where authority like 'apr\_%'`.execute(
    db,
  )
  await sql`create index device_call_device on device_call (device_id, begun_at desc)`.execute(db)
  await sql`create index device_call_incident on device_call (incident_id) where incident_id is not null`.execute(db)
  await sql`grant select, insert, update on device, device_enrolment, mesh_key, device_call to nightshift_app`.execute(
    db,
  )
}
