import { type Kysely, sql } from 'kysely'

/**
 * Creates the inventory that the core API serves. Its live columns contain what the platform last
 * reported.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table region (id text primary key)`.execute(db)
  await sql`
    create table shard (
      id text primary key,
      region text not null references region (id),
      role text not null,
      status text not null default 'unknown',
      config jsonb not null default '{}'
    )`.execute(db)
  await sql`
    create table node (
      id text primary key,
      shard text not null references shard (id),
      region text not null references region (id),
      role text not null,
      hostname text not null,
      ip text not null,
      status text not null default 'unknown',
      reason text,
      replication_lag_seconds double precision,
      disk_used_bytes bigint,
      disk_quota_bytes bigint,
      disk_by_directory jsonb not null default '{}'
    )`.execute(db)
  await sql`
    create table tenant (
      id text primary key,
      name text not null,
      shard text not null references shard (id),
      status text not null default 'unknown'
    )`.execute(db)
  await sql`
    create table host (
      id text primary key,
      region text not null references region (id),
      rack text not null,
      state text not null,
      ram_mib integer not null,
      cpu_mc integer not null
    )`.execute(db)
  await sql`
    create table vm (
      id text primary key,
      host text references host (id),
      running boolean not null,
      ram_mib integer not null,
      cpu_mc integer not null,
      ha_group text,
      tenant text
    )`.execute(db)
  await sql`
    create table link (
      a text not null references host (id),
      b text not null references host (id),
      cost integer not null,
      up boolean not null,
      primary key (a, b)
    )`.execute(db)
  await sql`
    create table inventory_sync (
      only_row boolean primary key default true check (only_row),
      at timestamptz not null
    )`.execute(db)
}
