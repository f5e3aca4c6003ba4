import { type Kysely, sql } from 'kysely'

/**
 * Adds web push: the key pair with which this installation signs its messages, and the browsers
 * that people subscribed.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table push_key (
      one boolean primary key default true check (one),
      public_key text not null,
      private_key text not null,
      created_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table push_subscription (
      id text primary key,
      operator_id text not null references operator (id),
      endpoint text not null unique check (length(endpoint) <= 1000),
      p256dh text not null,
      auth text not null,
      name text not null,
      created_at timestamptz not null default nightshift_now(),
      last_sent_at timestamptz
    )`.execute(db)
  await sql`create index push_subscription_of_operator on push_subscription (operator_id)`.execute(db)
  await sql`grant select, insert on push_key to nightshift_app`.execute(db)
  await sql`grant select, insert, update, delete on push_subscription to nightshift_app`.execute(db)
}
