import { type Kysely, sql } from 'kysely'

/**
 * Adds agents that connect to the API: the key that proves a device, which process of the API holds
 * its connection, and messages that one process asks another to pass on. A device without an
 * address has an agent that connects.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table device alter column url drop not null`.execute(db)
  await sql`alter table device add column agent_key text check (length(agent_key) <= 200)`.execute(db)
  await sql`grant update (agent_key) on device to nightshift_app`.execute(db)

  await sql`
    create table mesh_process (
      id uuid primary key,
      name text not null check (length(name) <= 300),
      started_at timestamptz not null default nightshift_now(),
      seen_at timestamptz not null default nightshift_now()
    )`.execute(db)
  // A row is kept after its connection has ended, because it shows since when the device is not
  // connected.
  await sql`
    create table device_connection (
      device_id text primary key references device (id) on delete cascade,
      connection uuid not null,
      process_id uuid references mesh_process (id) on delete set null,
      process text not null check (length(process) <= 300),
      address text not null check (length(address) <= 100),
      agent_version text not null check (length(agent_version) <= 100),
      connected_at timestamptz not null default nightshift_now(),
      ended_at timestamptz
    )`.execute(db)
  await sql`create index device_connection_process on device_connection (process_id) where ended_at is null`.execute(db)

  // Messages are encrypted with a key of the mesh, and are kept for seconds. A crash of the
  // database may lose messages; the caller then repeats its request with its key.
  await sql`
    create unlogged table mesh_relay (
      id uuid primary key,
      device_id text not null,
      to_process uuid not null,
      from_process uuid not null,
      sealed bytea not null check (length(sealed) <= 2000000),
      expires_at timestamptz not null
    )`.execute(db)
  await sql`create index mesh_relay_to on mesh_relay (to_process)`.execute(db)
  await sql`
    create unlogged table mesh_relay_piece (
      relay_id uuid not null,
      n integer not null,
      to_process uuid not null,
      sealed bytea not null check (length(sealed) <= 2000000),
      expires_at timestamptz not null,
      primary key (relay_id, n)
    )`.execute(db)
  await sql`create index mesh_relay_piece_to on mesh_relay_piece (to_process)`.execute(db)

  await sql`
    grant select, insert, update, delete on mesh_process, device_connection, mesh_relay, mesh_relay_piece
    to nightshift_app`.execute(db)
}
