import { type Kysely, sql } from 'kysely'

/**
 * Adds destinations that people configure in a form: their address, the messages that they get, and
 * which person is which PagerDuty user.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table destination (
      name text primary key check (name ~ '^[a-z][a-z0-9-]{0,39}$'),
      kind text not null check (kind in ('webhook', 'pagerduty', 'teams', 'email')),
      options jsonb not null,
      -- Never read back: an answer says which of them are set.
      secrets jsonb not null,
      route jsonb not null,
      enabled boolean not null,
      created_by text not null,
      created_at timestamptz not null default nightshift_now(),
      updated_at timestamptz not null default nightshift_now())`.execute(db)
  await sql`grant select, insert, update, delete on destination to nightshift_app`.execute(db)
  // Finds the newest messages to one destination, for the list of its deliveries.
  await sql`create index delivery_to on delivery (destination, id desc) where destination like 'to.%'`.execute(db)
  await sql`alter table operator add column pagerduty_user_id text unique check (pagerduty_user_id ~ '^[A-Z0-9]{3,30}$')`.execute(
    db,
  )
  await sql`grant update (pagerduty_user_id) on operator to nightshift_app`.execute(db)
}
