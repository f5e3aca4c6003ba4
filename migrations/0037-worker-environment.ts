import { type Kysely, sql } from 'kysely'

/**
 * Records the environment of the worker that started last: secrets only as set or not set,
 * addresses without credentials. The table has one row.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table worker_environment (
      singleton boolean primary key default true check (singleton),
      variables jsonb not null,
      started_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`grant select, insert, update on worker_environment to nightshift_app`.execute(db)
}
