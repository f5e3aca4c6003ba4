import { type Kysely, sql } from 'kysely'

/**
 * Records the silences of each Alertmanager: one row per source, rewritten at each reading, and
 * deleted with the source. `url`: the server that was read. If a source gets another server,
 * nothing is known about the silences of the new server.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table source_silences (
      source text primary key references source (name) on delete cascade,
      url text not null,
      tried_at timestamptz not null,
      read_at timestamptz,
      fault text check (length(fault) <= 300),
      digest text not null default '',
      silences text not null default '[]' check (octet_length(silences) <= 40000000)
    )`.execute(db)
  await sql`revoke all on source_silences from nightshift_app`.execute(db)
  await sql`
    grant select, insert, update (url, tried_at, read_at, fault, digest, silences) on source_silences
    to nightshift_app`.execute(db)
}
