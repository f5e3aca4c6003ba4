import { type Kysely, sql } from 'kysely'

/**
 * Topics of Amazon SNS that asked to be subscribed. `subscribe_url`: the address that is requested
 * when a person confirms the topic; until then the topic waits. `confirmed_at`: since when alarms
 * of the topic are accepted.
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
