import { type Kysely, sql } from 'kysely'

/**
 * Topics of Amazon SNS that asked to be let in. `subscribe_url`: what a person's press asks for, until then the topic waits; `confirmed_at`: its
 * alarms are taken.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table sns_topic (
      id bigint generated always as identity primary key,
      arn text not null unique check (length(arn) <= 512),
      subscribe_url text check (length(subscribe_url) <= 2000),
      confirmed_at timestamptz,
      confirmed_by text,
      asked_at timestamptz not null default nightshift_now())`.execute(db)
  await sql`grant select, insert, update, delete on sns_topic to nightshift_app`.execute(db)
}
