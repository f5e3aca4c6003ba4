import { type Kysely, sql } from 'kysely'

/** Adds which person is which Slack user, and which messages in Slack are Nightshift's. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table operator add column slack_user_id text unique check (slack_user_id ~ '^[UW][A-Z0-9]{2,30}$')`.execute(
    db,
  )
  // At most one row is active. `ready_at` sets the pace (one call per second) and is also the lease
  // of the caller.
  await sql`
    create table slack_channel (
      channel text primary key,
      active boolean not null,
      ready_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`create unique index slack_channel_active on slack_channel (active) where active`.execute(db)
  // A row exists as soon as somebody should be notified. `ts` is set when Slack has the message,
  // and null again when Slack lost it.
  await sql`
    create table slack_thread (
      incident_id text primary key references incident (id),
      channel text,
      ts text,
      posted boolean not null default false,
      check ((channel is null) = (ts is null))
    )`.execute(db)
  await sql`
    create table slack_card (
      approval_id text primary key references approval (id),
      channel text,
      ts text,
      check ((channel is null) = (ts is null))
    )`.execute(db)
  await sql`
    create table slack_request (
      signature text primary key,
      received_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`create index slack_request_age on slack_request (received_at)`.execute(db)
  await sql`create index delivery_of_incident on delivery (incident_id, destination)`.execute(db)
  await sql`grant select, insert, update on slack_channel, slack_thread, slack_card to nightshift_app`.execute(db)
  await sql`grant select, insert, delete on slack_request to nightshift_app`.execute(db)
}
