import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Account, unprivilegedAccount } from './account.ts'
import { postgresPrograms, postgresUser, prepareCluster } from './postgres-cluster.ts'
import { freePort, isFree, type RunningProcess, releasePort, startProcess, waitFor } from './process.ts'
import { groupMembers, identityOf, isRunning, type Ledger, sendSignal, workingDirectoryOf } from './process-table.ts'

const database = 'nightshift'

interface PostgresOptions {
  /** The directory that contains the data and the password. */
  dir: string
  /** The first port to try. If absent, any free port. */
  port?: number
  /** False gives up the safety of the data for speed, for tests. */
  durable?: boolean
  maxConnections?: number
  logFile?: string
  ledger?: Ledger | undefined
  /** Called with the name of a slow step. */
  progress?: (text: string) => void
  onExit?: Parameters<typeof startProcess>[0]['onExit']
}

export interface Postgres {
  /** The URL with the password, for the user `postgres` and the database `nightshift`. */
  url: string
  port: number
  /** The major version of PostgreSQL. */
  version: string
  dataDir: string
  process: RunningProcess
  stop(graceMs?: number): Promise<void>
}

/**
 * Starts npm's PostgreSQL on 127.0.0.1. Returns when the server accepts connections. The first
 * start in a directory creates the cluster (UTF8, locale C, random password). A later start finds
 * the data of the cluster again, also after a crash. First stops a PostgreSQL that a dead process
 * left running on the directory. Throws if a running process uses the directory.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const dir = resolve(options.dir)
  const progress = options.progress ?? (() => undefined)
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  const native = await postgresPrograms(account, progress)
  // Lets another user reach the data if root starts PostgreSQL, which refuses to run as root.
  mkdirSync(dir, { recursive: true })
  chmodSync(dir, account ? 0o711 : 0o700)

  await stopLeftover(dir)
  const dataDir = await prepareCluster(dir, native, options, account, progress)
  const password = readFileSync(join(dir, 'password'), 'utf8').trim()
  const server = await startServer(dir, dataDir, native, options, account)
  const url = (name: string) => `postgresql://${postgresUser}:${password}@127.0.0.1:${server.port}/${name}`
  try {
    await createDatabase(url('postgres'))
  } catch (error) {
    await server.process.stop()
    throw error
  }
  return {
    url: url(database),
    port: server.port,
    version: readFileSync(join(dataDir, 'PG_VERSION'), 'utf8').trim(),
    dataDir,
    process: server.process,
    async stop(graceMs) {
      await server.process.stop(graceMs)
      releasePort(server.port)
      rmSync(join(dir, 'owner.json'), { force: true })
    },
  }
}

async function startServer(
  dir: string,
  dataDir: string,
  native: string,
  options: PostgresOptions,
  account: Account | undefined,
): Promise<{ port: number; process: RunningProcess }> {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    // Uses no socket file, because its path may be too long, or its directory may belong to another
    // user.
    unix_socket_directories: '',
    max_connections: options.maxConnections ?? 100,
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(options.durable === false && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const logFile = options.logFile ?? join(dir, 'postgres.log')
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(options.port)
    let ready = false
    const server = await startProcess({
      name: 'postgres',
      command: join(native, 'bin', 'postgres'),
      args: [
        '-D',
        dataDir,
        '-p',
        String(port),
        ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
      ],
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      cwd: dataDir,
      logFile,
      ledger: options.ledger,
      account,
      // Stops by SIGINT, a fast shutdown, because SIGTERM would wait for clients. Without
      // durability, SIGQUIT also skips the checkpoint.
      stopSignal: options.durable === false ? 'SIGQUIT' : 'SIGINT',
      onExit: (exit) => ready && options.onExit?.(exit),
    })
    writeFileSync(
      join(dir, 'owner.json'),
      JSON.stringify({ pid: process.pid, identity: identityOf(process.pid), postmaster: server.pid }),
      { mode: 0o600 },
    )
    try {
      await waitFor(server, async () => whyNotReady(server, dataDir), { progress: options.progress })
      ready = true
      return { port, process: server }
    } catch (error) {
      const { tail } = server.hasExited() ? await server.exited : { tail: '' }
      await server.stop()
      releasePort(port)
      // Tries again if another program took the port after the search, or if a killed server is
      // still ending.
      const lostPort = tail !== '' && !(await isFree(port))
      const stillLeaving = /pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(tail)
      if (!(lostPort || stillLeaving) || attempt === 20) throw error
      await sleep(stillLeaving ? 250 : 0)
    }
  }
}

/**
 * Returns why the server is not ready. The last line of PostgreSQL's lock file shows its state;
 * pg_ctl reads this line too.
 */
function whyNotReady(server: RunningProcess, dataDir: string): string | null {
  const lock = readPostmasterLock(dataDir)
  if (lock?.pid !== server.pid) return 'it has not begun'
  return lock.state === 'ready' ? null : `its state is "${lock.state}"`
}

function readPostmasterLock(dataDir: string): { pid: number; state: string } | undefined {
  try {
    const lines = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number(lines[0]), state: lines[7]?.trim() ?? '' }
  } catch {
    return undefined
  }
}

/** Stops the PostgreSQL that a dead process left running on this directory. */
async function stopLeftover(dir: string): Promise<void> {
  const dataDir = join(dir, 'data')
  const lock = readPostmasterLock(dataDir)
  if (!lock || identityOf(lock.pid) === undefined) return
  const workingDir = workingDirectoryOf(lock.pid)
  const real = existsSync(join(dir, 'location')) ? readFileSync(join(dir, 'location'), 'utf8').trim() : dataDir
  if (workingDir !== real) {
    // Removes the lock file, because another program now has the pid, and PostgreSQL would mistake
    // it for a running PostgreSQL.
    unlinkSync(join(dataDir, 'postmaster.pid'))
    return
  }
  const owner = readOwner(dir)
  if (owner?.postmaster === lock.pid && isRunning(owner.pid, owner.identity)) {
    throw new Error(`PostgreSQL already runs on ${dir}, started by process ${owner.pid}. Stop that process first.`)
  }
  sendSignal(lock.pid, 'SIGINT')
  for (let round = 0; groupMembers(lock.pid).length > 0 && round < 200; round++) await sleep(25)
  sendSignal(-lock.pid, 'SIGKILL')
}

function readOwner(dir: string): { pid: number; identity: string; postmaster: number } | undefined {
  try {
    return JSON.parse(readFileSync(join(dir, 'owner.json'), 'utf8'))
  } catch {
    return undefined
  }
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database])
    if (rowCount === 0) await client.query(`create database ${database}`)
  } finally {
    await client.end()
  }
}
