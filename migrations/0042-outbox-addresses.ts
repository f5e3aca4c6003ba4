import { type Kysely, sql } from 'kysely'

/**
 * `outbox_address`: a receiver gets one message at a time, and none before `ready_at` if it asked
 * to wait. `given_up_at`: when the message was given up without reaching anybody.
 * `told_elsewhere_at`: when people were notified in another way that the message was given up.
 * Version 0.2.0 gave up a message to a webhook or browser after three failures.
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
