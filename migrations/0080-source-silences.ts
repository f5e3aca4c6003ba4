import { type Kysely, sql } from 'kysely'

/**
 * What each Alertmanager of the site silences: a row a source, written again at each reading, and gone with it. `url`: of another server nothing is
 * known.
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
