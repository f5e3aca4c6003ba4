import { type Kysely, sql } from 'kysely'

/**
 * `outbox_address`: a receiver takes one message at a time, and is left alone until `ready_at` where it asked for patience. `given_up_at`: the
 * message reached nobody here; `told_elsewhere_at`: another way has told so. 0.2.0 gave up what failed three times, webhooks and browsers.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table outbox_address (
      address text primary key,
      ready_at timestamptz not null default clock_timestamp())`.execute(db)
  await sql`grant select, insert, update on outbox_address to nightshift_app`.execute(db)
  await sql`alter table delivery add column given_up_at timestamptz, add column told_elsewhere_at timestamptz`.execute(
    db,
  )
  await sql`create index delivery_given_up on delivery (given_up_at) where given_up_at is not null`.execute(db)
  await sql`
    update delivery set given_up_at = finished_at, told_elsewhere_at = finished_at
    where status = 'failed' and attempt >= 3 and destination not like 'slack.%'`.execute(db)
}
