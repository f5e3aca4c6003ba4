import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import pg from 'pg'
import { putSource } from '../../../db/inventory/sources.ts'
import { listRights } from '../../../domain/database-rights.ts'
import type { DatabaseAct } from '../../../domain/database-write.ts'
import { prepareDatabaseWrite } from '../../../effects/databases/write.ts'
import { unprivilegedAccount } from '../../../start/account.ts'
import { useDatabase } from '../../support/database.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { findProgram, whyNot } from '../kinds.ts'

/**
 * Debian's Patroni over etcd, with one member: the card names it, and a slot that it keeps is not
 * dropped.
 */

const lacking = whyNot('databases')
const place = temporaryDirectory()
const database = useDatabase()
const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
const children: ChildProcess[] = []
const plain = {
  scheme: null,
  headers: {},
  caFile: null,
  certFile: null,
  keyFile: null,
  options: {},
  timeoutSeconds: 60,
}
let admin: pg.Client

function start(program: string, words: string[]): void {
  // In a group of its own: the server that Patroni starts ends with it.
  children.push(spawn(findProgram(program)!, words, { stdio: 'ignore', detached: true, cwd: place.path, ...account }))
}

async function startPatroni(): Promise<number> {
  const [client, peer, api, port] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const [at, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
  const listen = ['--listen-client-urls', at, '--advertise-client-urls', at, '--listen-peer-urls', peers]
  const cluster = ['--initial-advertise-peer-urls', peers, '--initial-cluster', `default=${peers}`]
  start('etcd', ['--data-dir', join(place.path, 'etcd'), ...listen, ...cluster, '--unsafe-no-fsync'])
  const config = {
    scope: 'shop',
    name: 'member-1',
    etcd3: { host: `127.0.0.1:${client}` },
    restapi: { listen: `127.0.0.1:${api}`, connect_address: `127.0.0.1:${api}` },
    bootstrap: {
      dcs: {
        loop_wait: 1,
        ttl: 20,
        retry_timeout: 5,
        slots: { archive: { type: 'physical' } },
        postgresql: { use_slots: true },
      },
      initdb: ['no-sync', { encoding: 'UTF8' }, { locale: 'C' }],
      pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: join(place.path, 'data'),
      bin_dir: join(findProgram('postgres')!, '..'),
      pgpass: join(place.path, 'pgpass'),
      authentication: { superuser: { username: 'site' }, replication: { username: 'copies' } },
      parameters: { unix_socket_directories: place.path, fsync: 'off' },
    },
  }
  // JSON is YAML.
  writeFileSync(join(place.path, 'patroni.yml'), JSON.stringify(config))
  start('patroni', [join(place.path, 'patroni.yml')])
  return port
}

const card = async (act: DatabaseAct) =>
  await prepareDatabaseWrite(
    { db: database.db, locks: database.db, sources: { directory: place.path } },
    { name: 'pg-1', act },
  )

const when = lacking ? describe.skip : describe

when(`a server that a real Patroni manages${lacking ? ` (${lacking})` : ''}`, () => {
  beforeAll(async () => {
    chmodSync(place.path, 0o777)
    mkdirSync(join(place.path, 'sources'))
    const port = await startPatroni()
    admin = await eventually('Patroni to start its server', async () => {
      const client = new pg.Client({ host: '127.0.0.1', port, user: 'site', database: 'postgres' })
      client.on('error', () => undefined)
      return await client.connect().then(
        () => client,
        () => null,
      )
    })
    const isLeader = async () => (await admin.query('select pg_is_in_recovery() as is')).rows[0].is === false
    await eventually('it to lead', isLeader)
    for (const statement of listRights('PostgreSQL', 'write')) await admin.query(statement)
    const credential = join(place.path, 'write')
    writeFileSync(credential, 'nightshift_write:choose-one\n', { mode: 0o600 })
    const login = { credential: `file:${credential}`, writeCredential: `file:${credential}` }
    const url = `postgresql://127.0.0.1:${port}/postgres`
    await putSource(database.db, 'pg-1', { kind: 'postgresql', url, ...plain, ...login }, 'anna')
  })
  afterAll(async () => {
    await admin?.end().catch(() => undefined)
    for (const { pid } of children.reverse())
      try {
        process.kill(-pid!, 'SIGKILL')
      } catch {
        // It has ended.
      }
    place.remove()
  })

  const slotNames = async () =>
    (await admin.query('select slot_name from pg_replication_slots')).rows.map((row) => row.slot_name)

  test('has an owner on the card of a session', async () => {
    await admin.query('create role shop login')
    const client = new pg.Client({ host: '127.0.0.1', port: admin.port, user: 'shop', database: 'postgres' })
    client.on('error', () => undefined)
    await client.connect()
    const { rows } = await client.query(
      `select pid, to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as began from pg_stat_activity where pid = pg_backend_pid()`,
    )
    const { dryRun } = await card({ write: 'terminate_session', pid: rows[0].pid, began: rows[0].began })
    expect(JSON.stringify(dryRun)).toContain('Patroni manages this server (cluster shop)')
    await client.end()
  })

  test('keeps its slots: one is not dropped, and Patroni makes it again after a drop by hand', async () => {
    await eventually('the permanent slot', async () => (await slotNames()).includes('archive'))
    await expect(card({ write: 'drop_replication_slot', slot: 'archive' })).rejects.toMatchObject({
      code: 'OWNED',
      message: expect.stringContaining('would create the slot archive again'),
    })
    // By hand it comes to nothing.
    await admin.query(`select pg_drop_replication_slot('archive')`)
    await eventually('Patroni to make it again', async () => (await slotNames()).includes('archive'))
  })
})
