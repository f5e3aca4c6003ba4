import { type Kysely, sql } from 'kysely'

/**
 * Records the statement statistics of database servers: one row per day and source, kept for eight
 * days. `counts` contains no values of statements.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table statement_snapshot (
      source text not null references source (name) on delete cascade,
      day date not null,
      taken_at timestamptz not null default nightshift_now(),
      server text not null check (length(server) <= 200),
      version text not null check (length(version) <= 200),
      counted_since timestamptz,
      is_whole boolean not null,
      counts text not null check (octet_length(counts) <= 20000),
      primary key (source, day)
    )`.execute(db)
  await sql`grant select, insert, delete on statement_snapshot to nightshift_app`.execute(db)
}
