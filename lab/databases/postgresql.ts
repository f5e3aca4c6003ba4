import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../monitoring.ts'
import type { Lab } from '../state.ts'
import { programPath } from './programs.ts'
import { postgresqlSchema } from './schema.ts'
import { adminName, type DrawerPlace, type LabServer, runAsNode, type Secrets, serverUrl } from './server.ts'

/** The name of the replica's slot on its primary. */
export const replicaSlot = 'pg_2'
/** Milliseconds that the admin waits for a lock. */
const maxLockMs = 2_000

/**
 * The most connections of a server, few enough for one pool to use them up. A replica needs at
 * least the limit of its primary.
 */
export const maxConnections = 40

/**
 * Settings for small servers. They do not sync, so a crash of the machine may lose data. The limits
 * of age and replay are low, so that a fault shows within a scenario.
 */
const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  shared_buffers: '32MB',
  dynamic_shared_memory_type: 'mmap',
  max_connections: String(maxConnections),
  max_worker_processes: '4',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  wal_level: 'logical',
  max_wal_senders: '5',
  max_replication_slots: '8',
  max_slot_wal_keep_size: '512MB',
  max_wal_size: '128MB',
  max_prepared_transactions: '8',
  max_standby_streaming_delay: '-1',
  hot_standby_feedback: 'off',
  wal_receiver_status_interval: '1s',
  autovacuum_naptime: '2s',
  autovacuum_freeze_max_age: '100000',
  deadlock_timeout: '300ms',
  temp_file_limit: '300MB',
  shared_preload_libraries: 'pg_stat_statements',
  track_io_timing: 'on',
  'pg_stat_statements.max': '500',
}

/** Starts the primary with the shop in it, then the replica on its slot. */
export async function startPostgresql(lab: Lab, place: DrawerPlace, secrets: Secrets): Promise<LabServer[]> {
  const [port, replicaPort] = [await freePort(), await freePort()]
  const secret = join(place.directory, 'pg-password')
  writeFileSync(secret, secrets.admin, { mode: 0o600 })
  place.giveAway(secret)
  const words = ['-D', 'pg-1', '-U', adminName, '--pwfile=pg-password', '--no-sync', '-E', 'UTF8', '--locale=C']
  await runAsNode(place, programPath('initdb'), [...words, '--auth=scram-sha-256', '--wal-segsize=4'])
  await startServer(lab, place, 'pg-1', port)
  const primary = serverOf('pg-1', 'primary', port)
  await eventuallyAnswers(primary, secrets)
  await prepare(primary, secrets)
  const login = ['-h', '127.0.0.1', '-p', String(port), '-U', 'replicator', '-S', replicaSlot]
  const copy = ['-D', 'pg-2', '-R', '-X', 'stream', '-c', 'fast', '--no-sync']
  await runAsNode(place, programPath('pg_basebackup'), [...login, ...copy], { PGPASSWORD: secrets.replicator })
  await startServer(lab, place, 'pg-2', replicaPort)
  const replica = serverOf('pg-2', 'replica', replicaPort)
  await eventuallyAnswers(replica, secrets)
  return [primary, replica]
}

const serverOf = (name: 'pg-1' | 'pg-2', role: LabServer['role'], port: number): LabServer => ({
  name,
  kind: 'postgresql',
  role,
  replicatesFrom: role === 'replica' ? 'pg-1' : null,
  port,
  url: `postgresql://127.0.0.1:${port}/shop`,
  instance: `${name}:5432`,
})

async function startServer(lab: Lab, { directory }: DrawerPlace, name: string, port: number): Promise<void> {
  const options = Object.entries({ ...settings, port: String(port), cluster_name: name })
  const args = ['-D', name, ...options.flatMap(([key, value]) => ['-c', `${key}=${value}`])]
  // Ends the server by SIGQUIT, at once but with the removal of its shared memory.
  await lab.children.start(name, 'database.ts', directory, {
    program: programPath('postgres'),
    args,
    port,
    signal: 'SIGQUIT',
  })
}

/**
 * Creates roles and the shop. Nightshift's rights are granted later, by Nightshift's own
 * statements.
 */
async function prepare(server: LabServer, secrets: Secrets): Promise<void> {
  const roles = [
    `create role shop_app login password '${secrets.app}'`,
    `create role replicator login replication password '${secrets.replicator}'`,
    `create role exporter login password '${secrets.exporter}'`,
    'grant pg_monitor to exporter',
    `create role nightshift_read login password '${secrets.read}'`,
    `create role nightshift_write login password '${secrets.write}'`,
    'create database shop owner shop_app',
  ]
  await runSql(server, secrets, roles, 'postgres')
  await runSql(server, secrets, [...postgresqlSchema, `select pg_create_physical_replication_slot('${replicaSlot}')`])
}

/**
 * Runs statements as the admin, one after the other, and returns the rows of the last statement.
 */
export async function runSql<Row extends pg.QueryResultRow>(
  server: LabServer,
  secrets: Secrets,
  statements: string[],
  database = 'shop',
): Promise<Row[]> {
  const url = serverUrl(server, adminName, secrets.admin, database)
  // Limits the wait for a lock that a fault holds, because a session that waits for a table blocks
  // all later sessions.
  const options = `-c lock_timeout=${maxLockMs}`
  const client = new pg.Client({
    connectionString: url,
    application_name: 'lab-admin',
    query_timeout: 50_000,
    options,
  })
  client.on('error', () => undefined)
  await client.connect()
  try {
    let rows: Row[] = []
    for (const statement of statements) rows = (await client.query<Row>(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

async function eventuallyAnswers(server: LabServer, secrets: Secrets): Promise<void> {
  const until = Date.now() + 15_000
  for (;;) {
    const error = await runSql(server, secrets, ['select 1'], 'postgres').then(() => null, String)
    if (error === null) return
    if (Date.now() > until) throw new Error(`${server.name} does not answer: ${error}`)
    await sleep(50)
  }
}
