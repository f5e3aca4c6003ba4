import { type Kysely, sql } from 'kysely'

/**
 * `waiting_body`, `waiting_part`: alerts of a request that is too large to be handled in one
 * response, until a worker has processed them part by part. `refused_body`: refused requests of a
 * known sender, one row per sender and hour.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table waiting_body (
      id bigint generated always as identity primary key,
      dialect text not null,
      sender text not null,
      alerts integer not null,
      parts integer not null,
      failures integer not null default 0,
      refused integer not null default 0,
      next_at timestamptz not null default nightshift_now(),
      received_at timestamptz not null default nightshift_now(),
      ended_at timestamptz)`.execute(db)
  await sql`
    create table waiting_part (
      body_id bigint not null references waiting_body,
      part integer not null,
      alerts jsonb not null,
      keys text[] not null,
      primary key (body_id, part))`.execute(db)
  await sql`
    create table refused_body (
      sender text not null,
      hour timestamptz not null,
      count integer not null default 1,
      dialect text not null,
      code text not null,
      reason text not null,
      last_at timestamptz not null default nightshift_now(),
      primary key (sender, hour))`.execute(db)
  await sql`grant select, insert, update, delete on waiting_body, waiting_part, refused_body to nightshift_app`.execute(
    db,
  )
}
