import { type Kysely, sql } from 'kysely'

/**
 * Creates the registry of resources: which resources every source reports, and how they are
 * related. `resource` is computed from `resource_source`. `relation` keeps its source, because only
 * some sources may widen what runs without approval.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table registry_source (
      source text primary key,
      has_authority boolean not null,
      digest text not null,
      seen_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create table resource_source (
      kind text not null,
      id text not null,
      source text not null references registry_source (source) on delete cascade,
      name text not null,
      aliases text[] not null default '{}',
      names text[] not null,
      attributes jsonb not null default '{}',
      seen_at timestamptz not null default nightshift_now(),
      primary key (source, kind, id)
    )`.execute(db)
  await sql`create index resource_source_by_resource on resource_source (kind, id)`.execute(db)
  await sql`
    create table resource (
      kind text not null,
      id text not null,
      name text not null,
      names text[] not null,
      canonical text not null,
      lease_key text not null,
      team text,
      first_seen_at timestamptz not null default nightshift_now(),
      primary key (kind, id)
    )`.execute(db)
  await sql`create index resource_by_name on resource using gin (names)`.execute(db)
  await sql`create index resource_by_canonical on resource (canonical)`.execute(db)
  await sql`
    create table relation (
      from_kind text not null,
      from_id text not null,
      kind text not null,
      to_kind text not null,
      to_id text not null,
      source text not null references registry_source (source) on delete cascade,
      primary key (from_kind, from_id, kind, to_kind, to_id, source)
    )`.execute(db)
  await sql`create index relation_backwards on relation (to_kind, to_id, kind)`.execute(db)
  await sql`create index relation_by_source on relation (source)`.execute(db)
  await sql`create index relation_same_as on relation (kind) where kind = 'same_as'`.execute(db)
  await sql`
    grant select, insert, update, delete on registry_source, resource_source, resource, relation to nightshift_app`.execute(
    db,
  )
}
