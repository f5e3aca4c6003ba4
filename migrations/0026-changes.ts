import { type Kysely, sql } from 'kysely'

/**
 * Records what was deployed or configured. A change to several resources has one row for each, with
 * the same `delivery`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table change (
      id text primary key,
      source text not null,
      delivery text not null,
      part integer not null,
      at timestamptz not null,
      received_at timestamptz not null default nightshift_now(),
      title text not null,
      author text,
      url text,
      revision text,
      environment text,
      resource_kind text,
      resource_id text,
      why text not null,
      labels jsonb not null default '{}',
      unique (source, delivery, part),
      check ((resource_kind is null) = (resource_id is null))
    )`.execute(db)
  await sql`create index change_by_time on change (at desc, id desc)`.execute(db)
  await sql`create index change_by_resource on change (resource_kind, resource_id, at desc)`.execute(db)
  await sql`create index change_by_receipt on change (received_at)`.execute(db)
  await sql`grant select, insert, delete on change to nightshift_app`.execute(db)
}
