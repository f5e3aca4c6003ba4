import { type Kysely, sql } from 'kysely'

/** What the worker that started last was started with: secrets as set or not, addresses without credentials. One row. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table worker_environment (
      singleton boolean primary key default true check (singleton),
      variables jsonb not null,
      started_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`grant select, insert, update on worker_environment to nightshift_app`.execute(db)
}
