import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import mysql, { type Connection } from 'mysql2/promise'
import { type DatabaseProduct, listRights } from '../../../domain/database-rights.ts'
import { unprivilegedAccount } from '../../../start/account.ts'
import { eventually, freePort } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'

/**
 * A server of a site that speaks MySQL, with the two logins that the rights give, and sessions of
 * its application.
 */
export type SiteMysql = {
  port: number
  /** As a source names it. */
  url: string
  credential: string
  writeCredential: string
  run(sql: string): Promise<Record<string, unknown>[]>
  /** A session of the application. */
  open(): Promise<{ connection: Connection; pid: number }>
  stop(): Promise<void>
}

const app = 'apppass-12345'

/**
 * Debian's MariaDB below this directory. `id` tells several apart; `more`: its settings beside the
 * usual ones.
 */
export async function startMariadb(directory: string, id: number, more: readonly string[] = []): Promise<SiteMysql> {
  const place = join(directory, `maria-${id}`)
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  mkdirSync(place)
  chmodSync(place, 0o755)
  if (account) chownSync(place, account.uid, account.gid)
  const [data, socket, port] = [join(place, 'data'), join(place, 's'), await freePort()]
  const as = ['--no-defaults', `--datadir=${data}`]
  const options = { stdio: 'ignore' as const, ...account }
  execFileSync('mariadb-install-db', [...as, '--auth-root-authentication-method=normal', '--skip-test-db'], options)
  const settings = [
    `--socket=${socket}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--server-id=${id}`,
    '--log-bin=binlog',
    '--binlog-format=ROW',
  ]
  const small = [
    '--innodb-buffer-pool-size=16M',
    '--innodb-flush-log-at-trx-commit=0',
    '--performance-schema=ON',
    '--skip-slave-start',
    ...more,
  ]
  const server = spawn(findProgram('mariadbd')!, [...as, ...settings, ...small], options)
  const root = await connectRoot(() => existsSync(socket), { socketPath: socket, user: 'root' })
  return await openSite(directory, root, { port, product: 'MariaDB', stop: () => ended(server) })
}

/**
 * A MySQL that runs already, named by its administrator's address: no package of Debian's has one.
 */
export async function findMysql(directory: string, url: string): Promise<SiteMysql> {
  const { hostname, port, username, password } = new URL(url)
  const root = await connectRoot(() => true, { host: hostname, port: Number(port), user: username, password })
  return await openSite(directory, root, { port: Number(port), product: 'MySQL', stop: async () => undefined })
}

async function connectRoot(isThere: () => boolean, options: mysql.ConnectionOptions): Promise<Connection> {
  let root: Connection | undefined
  await eventually('the server to answer', async () => {
    if (!isThere()) return false
    root = await mysql.createConnection(options).catch(() => undefined)
    return root !== undefined
  })
  return root as Connection
}

async function openSite(
  directory: string,
  root: Connection,
  { port, product, stop }: { port: number; product: DatabaseProduct; stop(): Promise<void> },
): Promise<SiteMysql> {
  const run = async (sql: string) => (await root.query(sql))[0] as Record<string, unknown>[]
  // Rows made here go to no replica: each has its own.
  await run('set sql_log_bin = 0')
  const suffix = randomBytes(3).toString('hex')
  for (const sql of [
    'create database if not exists shop',
    'drop table if exists shop.orders',
    'create table shop.orders (id int primary key, note varchar(200)) engine = innodb',
    `insert into shop.orders values ${Array.from({ length: 50 }, (_, n) => `(${n + 1}, null)`).join(', ')}`,
    `create user shop_app_${suffix} identified by '${app}'`,
    `grant all on shop.* to shop_app_${suffix}`,
  ])
    await run(sql)
  const give = async (login: 'read' | 'write') => {
    const [user, password] = [`nightshift_${login}_${suffix}`, randomBytes(12).toString('hex')]
    for (const statement of listRights(product, login))
      await run(statement.replaceAll(`nightshift_${login}`, user).replace('choose-one', password))
    const file = join(directory, user)
    writeFileSync(file, `${user}:${password}\n`, { mode: 0o600 })
    return `file:${file}`
  }
  const [credential, writeCredential] = [await give('read'), await give('write')]
  const opened: Connection[] = []
  return {
    port,
    url: `mysql://127.0.0.1:${port}/shop`,
    credential,
    writeCredential,
    run,
    async open() {
      const login = { host: '127.0.0.1', port, user: `shop_app_${suffix}`, password: app, database: 'shop' }
      const connection = await mysql.createConnection(login)
      // It may be ended by what is tested.
      connection.on('error', () => undefined)
      opened.push(connection)
      return { connection, pid: connection.threadId }
    },
    async stop() {
      for (const each of opened) each.destroy()
      root.destroy()
      await stop()
    },
  }
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exit = new Promise((resolve) => server.once('exit', resolve))
  server.kill('SIGTERM')
  await exit
}
