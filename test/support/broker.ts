import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConnectionLike } from '@temporalio/client'
import pg from 'pg'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { startPostgres } from '../../start/postgres.ts'
import type { RunningProcess } from '../../start/process.ts'
import { isRunning, type Ledger, openLedger, stopLeftovers } from '../../start/process-table.ts'
import { searchAttributes, startTemporal } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { findTemporalTestServer } from './temporal-test-server.ts'

const rootDir = join(import.meta.dirname, '..', '..')
const dirPrefix = 'nightshift-test-'

/**
 * Opens the door behind which the servers of a test run stand: PostgreSQL with a migrated template,
 * Temporal's development server, the path of its time-skipping one. Each is started when a test
 * first asks, so a run of pure functions starts none, and all are stopped by `stop`, or by whatever
 * else ends this process.
 */
export async function startTestServers(): Promise<{ address: string; stop(): Promise<void> }> {
  await tidyUpAfterKilledRuns()
  const dir = mkdtempSync(join(tmpdir(), dirPrefix))
  // PostgreSQL may run as another user, who has to get through.
  chmodSync(dir, 0o711)
  const ledger = openLedger(join(dir, 'processes.json'))
  const processes: RunningProcess[] = []
  const servers = lazily({
    postgres: () => postgres(dir, ledger, processes),
    temporal: () => temporal(dir, ledger, processes),
    timeSkipping,
  })

  const door = createServer(async (request, response) => {
    const start = servers[request.url?.slice(1) as keyof typeof servers]
    // A test that was busy for long would use a connection again that this server is just closing.
    response.setHeader('connection', 'close')
    try {
      if (!start) throw new Error(`There is no test server ${request.url}`)
      response.end(await start())
    } catch (error) {
      response.statusCode = 500
      response.end((error as Error).message)
    }
  })
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  door.unref()

  const clear = () => {
    ledger.kill()
    rmSync(dir, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 })
  }
  process.once('exit', clear)
  // Jest leaves these to Node, which would end the process without telling anybody.
  const signals: [NodeJS.Signals, number][] = [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ]
  const handlers = signals.map(([signal, code]) => [signal, () => process.exit(code)] as const)
  for (const [signal, handler] of handlers) process.once(signal, handler)

  return {
    address: `http://127.0.0.1:${(door.address() as AddressInfo).port}`,
    async stop() {
      door.close()
      door.closeAllConnections()
      process.off('exit', clear)
      for (const [signal, handler] of handlers) process.off(signal, handler)
      await Promise.all(processes.map((server) => server.stop(0)))
      clear()
    },
  }
}

async function postgres(dir: string, ledger: Ledger, processes: RunningProcess[]): Promise<string> {
  const server = await startPostgres({ dir: join(dir, 'postgres'), durable: false, maxConnections: 300, ledger })
  processes.push(server.process)
  const template = server.url.replace(/[^/]*$/, 'nightshift_template')
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('create database nightshift_template')
  await client.end()
  await migrateToLatest(template)
  return server.url
}

async function temporal(dir: string, ledger: Ledger, processes: RunningProcess[]): Promise<string> {
  const cli = await findTemporalCli({ rootDir, env: process.env, progress: tellOnce('Temporal CLI') })
  const logFile = join(dir, 'temporal.log')
  const server = await startTemporal({ cli: cli.path, dir: null, searchAttributes, logFile, ledger, env: process.env })
  processes.push(server.process)
  return server.address
}

async function timeSkipping(): Promise<string> {
  return (await findTemporalTestServer({ rootDir, env: process.env, progress: tellOnce('Temporal test server') })).path
}

/** A download is worth one line; jest owns the rest of the screen. */
function tellOnce(what: string): (text: string) => void {
  let told = false
  return (text) => {
    if (!told) process.stderr.write(`${what}: ${text}\n`)
    told = true
  }
}

function lazily<T extends Record<string, () => Promise<string>>>(starts: T): T {
  const started = new Map<string, Promise<string>>()
  const entries = Object.entries(starts).map(([name, start]) => [
    name,
    () => {
      const running = started.get(name) ?? start()
      started.set(name, running)
      return running
    },
  ])
  return Object.fromEntries(entries) as T
}

/**
 * A run that was killed outright could not tidy up; the next one does, and leaves alone those that
 * are still running.
 */
async function tidyUpAfterKilledRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(dirPrefix))) {
    const dir = join(tmpdir(), name)
    const ledgerFile = join(dir, 'processes.json')
    if (!existsSync(ledgerFile)) continue
    const { owner } = JSON.parse(readFileSync(ledgerFile, 'utf8')) as { owner: { pid: number; identity: string } }
    if (isRunning(owner.pid, owner.identity)) continue
    await stopLeftovers(ledgerFile, 500)
    rmSync(dir, { recursive: true, force: true })
  }
}

/**
 * URL of the test run's PostgreSQL, as the owner of everything. The server starts when it is first
 * asked for.
 */
function postgresUrl(): Promise<string> {
  return ask('postgres')
}

/**
 * Address of the test run's Temporal development server: in memory, real time, the search
 * attributes registered.
 */
export function temporalAddress(): Promise<string> {
  return ask('temporal')
}

/** Path of the server whose clock skips ahead, for `TestWorkflowEnvironment.createTimeSkipping`. */
export function timeSkippingServerPath(): Promise<string> {
  return ask('timeSkipping')
}

/**
 * A database of its own for a test, migrated and empty. `drop` throws out what is still connected.
 */
export async function freshDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return await createDatabase('nightshift_template')
}

/** The same without a schema, for tests that migrate by themselves. */
export async function emptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return await createDatabase('template1')
}

async function createDatabase(template: string): Promise<{ url: string; drop(): Promise<void> }> {
  const server = await postgresUrl()
  const name = `test_${randomBytes(6).toString('hex')}`
  await execute(server, `create database ${name} template ${template}`)
  return {
    url: server.replace(/[^/]*$/, name),
    drop: () => execute(server, `drop database if exists ${name} with (force)`),
  }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

async function ask(server: string): Promise<string> {
  const door = process.env.NIGHTSHIFT_TEST_SERVERS
  if (!door) throw new Error('The test servers are only there under jest: run "npm test -- <file>".')
  const response = await fetch(`${door}/${server}`)
  const answer = await response.text()
  if (!response.ok) throw new Error(`The test server ${server} did not start: ${answer}`)
  return answer
}

/** Makes a namespace that keeps what is over for a day. */
export async function registerNamespace({ workflowService }: ConnectionLike, namespace: string) {
  await workflowService.registerNamespace({
    namespace,
    // The generated type asks for a Long, and takes a number.
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  })
}
