import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { listRights } from '../../../../domain/database-rights.ts'
import { unprivilegedAccount } from '../../../../start/account.ts'
import { eventually, freePort } from '../../../support/directory.ts'
import { findProgram } from '../../kinds.ts'
import { effectTables, siteTables } from './tables.ts'

/**
 * Debian's PostgreSQL with the tables of a shop, a session that stays open, and traps: code of the
 * site that acts under names that look harmless.
 */
export type QueryWorld = {
  /** Databases of the server; `shop` is a plain site, `traps` has code of its own besides. */
  url: string
  /**
   * Reference of the credential of the login that the rights of `nightshift sources rights` give,
   * and SELECT on the site's tables.
   */
  credential: string
  directory: string
  admin: pg.Client
  victim: { pid: number; isAlive(): Promise<boolean> }
  object: number
  trap: string
  /** Everything that is stored: databases, roles, sequences, large objects. */
  dump(): string
  /** Locks, settings, temporary tables and waits that a statement left with its session. */
  leftovers(): Promise<string[]>
  /** Files in the folders that a trap may write to. */
  files(): string[]
  stop(): Promise<void>
}

export async function startQueryWorld(directory: string): Promise<QueryWorld> {
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  const place = join(directory, 'query')
  const trap = join(place, 'trap')
  for (const each of [place, trap]) {
    mkdirSync(each)
    chmodSync(each, 0o755)
    if (account) chownSync(each, account.uid, account.gid)
  }
  const data = join(place, 'data')
  const quiet = { stdio: 'ignore' as const, ...account }
  const initdb = [
    '--pgdata',
    data,
    '--username',
    'site',
    '--auth',
    'trust',
    '--no-sync',
    '--encoding',
    'UTF8',
    '--locale',
    'C',
  ]
  execFileSync(findProgram('initdb')!, initdb, quiet)
  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${place}`,
    'fsync=off',
    'wal_level=logical',
    'shared_preload_libraries=pg_stat_statements',
    'max_prepared_transactions=2',
  ]
  const server = spawn(findProgram('postgres')!, ['-D', data, ...settings.flatMap((each) => ['-c', each])], quiet)
  const connect = async (application: string, database = 'shop') => {
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'site',
      database,
      application_name: application,
    })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const first = await eventually('PostgreSQL to answer', () => connect('site-admin', 'postgres').catch(() => null))
  const password = 'a-login-that-reads'
  for (const statement of listRights('PostgreSQL', 'read')) await first.query(statement.replace('choose-one', password))
  await first.query('create role reader')
  for (const database of ['shop', 'traps']) {
    await first.query(`create database ${database}`)
    const owner = await connect('site-admin', database)
    await owner.query(siteTables)
    if (database === 'traps') await owner.query(effectTables(trap, port))
    await owner.query('grant usage on schema billing to nightshift_read')
    await owner.query('grant select on all tables in schema public, billing to nightshift_read')
    await owner.query('vacuum analyze')
    await owner.end()
  }
  await first.end()
  const admin = await connect('site-admin')
  const object = Number((await admin.query("select lo_from_bytea(0, 'kept') as oid")).rows[0].oid)
  await admin.query("select pg_create_physical_replication_slot('keep', true)")
  const session = await connect('victim')
  await session.query('begin')
  const pid = Number((await session.query('select pg_backend_pid() as pid')).rows[0].pid)
  const file = join(directory, 'query-login')
  writeFileSync(file, `nightshift_read:${password}\n`, { mode: 0o600 })
  const dumpWords = ['-h', '127.0.0.1', '-p', String(port), '-U', 'site', '--no-sync']
  return {
    url: `postgresql://127.0.0.1:${port}/postgres`,
    credential: `file:${file}`,
    directory,
    admin,
    object,
    trap,
    victim: {
      pid,
      isAlive: async () => (await admin.query('select 1 from pg_stat_activity where pid = $1', [pid])).rowCount === 1,
    },
    dump: () =>
      execFileSync(findProgram('pg_dumpall')!, dumpWords, { encoding: 'utf8', maxBuffer: 1 << 28 }).replace(
        /^\\(?:un)?restrict .*$/gm,
        '',
      ),
    leftovers: async () => {
      const { rows } = await admin.query(`
        select 'advisory lock of ' || pid as what from pg_locks where locktype = 'advisory'
        union all select 'temporary ' || relname from pg_class where relpersistence = 't'
        union all select 'transaction of ' || pid from pg_stat_activity where usename = 'nightshift_read' and xact_start is not null
        union all select 'slot ' || slot_name from pg_replication_slots where slot_name <> 'keep'
        union all select 'prepared ' || gid from pg_prepared_xacts`)
      return rows.map(({ what }) => String(what))
    },
    files: () => [...readdirSync(trap), ...readdirSync(place), ...readdirSync(data)].sort(),
    async stop() {
      await session.end().catch(() => undefined)
      await admin.end().catch(() => undefined)
      const exit = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGINT')
      await exit
    },
  }
}
