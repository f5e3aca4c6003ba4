import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client, Connection } from '@temporalio/client'
import { ensureFirstRunTokens, type FirstRunTokens } from '../../db/access/tokens.ts'
import { connect, type Db } from '../../db/connect.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { queueScheduleId } from '../../domain/step-key.ts'
import { labClient } from '../../lab/client.ts'
import { freshDatabase, registerNamespace, temporalAddress } from './broker.ts'
import { compileCache, freePort, patienceMs, temporaryDirectory } from './directory.ts'

const rootDir = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A connection of its own: a test that was busy for long would use one again that the server is
 * just closing.
 */
const once = { connection: 'close' }

type LabEffect = Awaited<ReturnType<ReturnType<typeof labClient>['effects']>>[number]

export type PartName = 'lab' | 'runbook' | 'runbook2' | 'api' | 'api2' | 'worker' | 'worker2'

type SpineOptions = {
  /** Parts to start; the others can be started later. */
  parts: PartName[]
  /** Servers of the test's own, where it is going to kill them. */
  databaseUrl?: string
  temporalAddress?: string
  environment?: Record<string, string>
  /**
   * Tokens that another build made in its database: this one makes none, and asks for no schema of
   * its own.
   */
  tokens?: FirstRunTokens
}

/**
 * The whole spine as an operator runs it: real processes, a database and a Temporal namespace of
 * its own. Parts can be killed and started again on the same ports.
 */
export type Spine = {
  db: Db
  /** As the owner of the database writes, past what the services may. */
  owner: Db
  databaseUrl: string
  url: string
  /** The second API server, on the same database. */
  url2: string
  client: Client
  namespace: string
  tokens: FirstRunTokens
  lab: ReturnType<typeof labClient>
  labUrl: string
  /** Where the lab keeps what belongs to its nodes and agents. */
  labDirectory: string
  runbookUrl: string
  /** A second model, for a worker of another build. */
  runbook2Url: string
  workerUrl: string
  /** Starts a part of this build, or of one whose tree is named. */
  start(part: PartName, environment?: Record<string, string>, tree?: string): Promise<void>
  kill(part: PartName, signal?: NodeJS.Signals): Promise<void>
  /** Sends a signal that ends nothing: SIGSTOP, SIGCONT. */
  signal(part: PartName, signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Which API the following calls go to: `url` unless told otherwise. */
  talkTo(url: string): void
  get<T = unknown>(path: string, token?: string): Promise<T>
  post(
    path: string,
    body: unknown,
    options?: { token?: string; headers?: Record<string, string> },
  ): Promise<{ status: number; body: Record<string, unknown> }>
  incidents(query?: string): Promise<Incident[]>
  events(incidentId: string): Promise<IncidentEvent[]>
  /** Waits until the condition answers something, and answers that. */
  until<T>(what: string, condition: () => Promise<T | null | undefined | false>, timeoutMs?: number): Promise<T>
  /**
   * Waits for an incident of the type, in one of the statuses (`a|b`); a closed one has every call
   * of its run finished.
   */
  incident(type: string, status?: string, timeoutMs?: number): Promise<Incident>
  pendingApproval(timeoutMs?: number): Promise<Approval>
  /**
   * Puts an end to what a test began: the lab is healed, and `incident` and `effects` answer only
   * what comes after.
   */
  turnThePage(): Promise<void>
  /** What the lab was asked to change since the page was turned. */
  effects(): Promise<LabEffect[]>
  /** Everything the parts have printed. */
  printed(): string
  stop(): Promise<void>
}

export async function startSpine(options: SpineOptions): Promise<Spine> {
  const directory = temporaryDirectory()
  const database = options.databaseUrl ? { url: options.databaseUrl, drop: async () => {} } : await freshDatabase()
  const db = connect(database.url, { max: 5 })
  const owner = connect(database.url, { owner: true, max: 2 })
  const tokens = options.tokens ?? (await ensureFirstRunTokens(db))
  const address = options.temporalAddress ?? (await temporalAddress())
  const connection = await Connection.connect({ address })
  const namespace = `test-${randomBytes(4).toString('hex')}`
  await registerNamespace(connection, namespace)
  const client = new Client({ connection, namespace })
  const ports = Object.fromEntries(
    await Promise.all(
      ['lab', 'runbook', 'runbook2', 'api', 'api2', 'worker', 'worker2'].map(
        async (name) => [name, await freePort()] as const,
      ),
    ),
  ) as Record<PartName, number>
  const url = `http://127.0.0.1:${ports.api}`
  const url2 = `http://127.0.0.1:${ports.api2}`
  let current = url
  const labTokens = { platform: randomBytes(16).toString('hex'), control: randomBytes(16).toString('hex') }
  const common = {
    PATH: process.env.PATH ?? '',
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    PLATFORM_URL: `http://127.0.0.1:${ports.lab}`,
    PLATFORM_TOKEN: labTokens.platform,
    LOG_LEVEL: 'warn',
    AGENT_TRUST: 'act',
    ...options.environment,
  }
  const worker = {
    ...common,
    AGENT_ENABLED: 'true',
    AGENT_API_KEY: tokens.agent,
    CORE_API_URL: url,
    LLM_BASE_URL: `http://127.0.0.1:${ports.runbook}`,
    LLM_MODEL: 'runbook-rules',
    QUEUE_INTERVAL_SECONDS: '2',
    ...options.environment,
  }
  const programs: Record<PartName, { entry: string; environment: Record<string, string> }> = {
    lab: {
      entry: 'lab/main.ts',
      environment: {
        PATH: common.PATH,
        LAB_PORT: String(ports.lab),
        LAB_DIR: join(directory.path, 'lab'),
        LAB_PLATFORM_TOKEN: labTokens.platform,
        LAB_CONTROL_TOKEN: labTokens.control,
        ALERT_URL: `${url}/api/v1/ingest/alertmanager`,
        ALERT_TOKEN: tokens.ingest,
        LAB_PROBE_INTERVAL_MS: '500',
        ...options.environment,
      },
    },
    runbook: {
      entry: 'lab/runbook/main.ts',
      environment: { PATH: common.PATH, RUNBOOK_PORT: String(ports.runbook), ...options.environment },
    },
    runbook2: {
      entry: 'lab/runbook/main.ts',
      environment: { PATH: common.PATH, RUNBOOK_PORT: String(ports.runbook2), ...options.environment },
    },
    api: { entry: 'api/main.ts', environment: { ...common, PORT: String(ports.api) } },
    api2: { entry: 'api/main.ts', environment: { ...common, PORT: String(ports.api2) } },
    worker: { entry: 'worker/main.ts', environment: { ...worker, WORKER_PORT: String(ports.worker) } },
    worker2: { entry: 'worker/main.ts', environment: { ...worker, WORKER_PORT: String(ports.worker2) } },
  }
  const running = new Map<PartName, ChildProcess>()
  const programsStarted = new Set<PartName>()
  const logTails = () =>
    [...running.keys()]
      .map((part) => `--- ${part}\n${readFileSync(join(directory.path, `${part}.log`), 'utf8').slice(-1500)}`)
      .join('\n')

  /** Incidents and effects of tests that have ended. */
  const past = { incidents: new Set<string>(), effects: 0 }

  /** Has every call of the newest attempt that was started been finished? */
  async function isSettled(incidentId: string): Promise<boolean> {
    const events = await eventsOf(db, incidentId)
    const attempt = Math.max(...events.map((event) => event.attempt))
    const calls = (kind: 'tool_started' | 'tool_finished') =>
      events.filter((event) => event.kind === kind && event.attempt === attempt).length
    return calls('tool_started') === calls('tool_finished')
  }

  const spine: Spine = {
    db,
    owner,
    databaseUrl: database.url,
    url,
    url2,
    client,
    talkTo(other) {
      current = other
    },
    namespace,
    tokens,
    lab: labClient(`http://127.0.0.1:${ports.lab}`, labTokens.control),
    labUrl: `http://127.0.0.1:${ports.lab}`,
    labDirectory: join(directory.path, 'lab'),
    runbookUrl: `http://127.0.0.1:${ports.runbook}`,
    runbook2Url: `http://127.0.0.1:${ports.runbook2}`,
    workerUrl: `http://127.0.0.1:${ports.worker}`,

    async start(part, environment = {}, tree = rootDir) {
      const program = programs[part]
      const log = openSync(join(directory.path, `${part}.log`), 'a')
      const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', join(tree, program.entry)], {
        env: { NODE_COMPILE_CACHE: compileCache, ...program.environment, ...environment },
        stdio: ['ignore', log, log],
        detached: true,
      })
      running.set(part, child)
      programsStarted.add(part)
      await spine.until(`${part} to be ready`, async () => {
        if (child.exitCode !== null)
          throw new Error(`${part} ended with ${child.exitCode}: see ${directory.path}/${part}.log`)
        const answer = await fetch(`http://127.0.0.1:${ports[part]}/readyz`).catch(() => null)
        return answer?.status === 200
      })
    },
    async kill(part, signal = 'SIGKILL') {
      const child = running.get(part)
      running.delete(part)
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill(signal)
      await ended
    },
    signal(part, signal) {
      running.get(part)?.kill(signal)
    },
    async get(path, token = tokens.admin) {
      const answer = await fetch(`${current}/api/v1${path}`, { headers: { authorization: `Bearer ${token}`, ...once } })
      if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`)
      return (await answer.json()) as never
    },
    async post(path, body, { token = tokens.admin, headers = {} } = {}) {
      const answer = await fetch(`${current}/api/v1${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': randomBytes(8).toString('hex'),
          ...once,
          ...headers,
        },
        body: JSON.stringify(body),
      })
      return { status: answer.status, body: (await answer.json().catch(() => ({}))) as Record<string, unknown> }
    },
    incidents: async (query = '') => (await spine.get<{ items: Incident[] }>(`/incidents${query}`)).items,
    events: (incidentId) => eventsOf(db, incidentId),
    async until(what, condition, timeoutMs = patienceMs) {
      const deadline = Date.now() + timeoutMs
      let last: unknown = null
      for (;;) {
        // A server that is down just now is what some tests are about: the wait goes on.
        const answer = await condition().catch((error) => {
          last = error
          return null
        })
        if (answer) return answer as never
        if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}; last: ${last}\n${logTails()}`)
        await sleep(100)
      }
    },
    incident: (type, status, timeoutMs) =>
      spine.until(
        `an incident ${type} ${status ?? ''}`,
        async () => {
          const found = (await spine.incidents(`?type=${type}`)).find(
            ({ id, status: now }) => !past.incidents.has(id) && (!status || status.split('|').includes(now)),
          )
          // The core API closes an incident a moment before the worker writes the last row of the
          // call that closed it.
          if (found && ['resolved', 'escalated'].includes(found.status) && !(await isSettled(found.id))) return null
          return found
        },
        timeoutMs,
      ),
    pendingApproval: (timeoutMs) =>
      spine.until(
        'an approval',
        async () => (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items[0],
        timeoutMs,
      ),
    async turnThePage() {
      await spine.until('every incident to end', async () => {
        const all = await spine.incidents()
        return all.every(({ status }) => ['resolved', 'escalated'].includes(status)) && all
      })
      await spine.lab.heal()
      for (const { id } of await spine.incidents()) past.incidents.add(id)
      past.effects = (await spine.lab.effects()).length
    },
    effects: async () => (await spine.lab.effects()).slice(past.effects),
    printed: () =>
      [...programsStarted].map((part) => readFileSync(join(directory.path, `${part}.log`), 'utf8')).join('\n'),
    async stop() {
      // Its ticks would go on for as long as the test server runs, and every test after this one
      // pay for them.
      await client.schedule
        .getHandle(queueScheduleId)
        .delete()
        .catch(() => undefined)
      await Promise.all([...running.keys()].map((part) => spine.kill(part, part === 'lab' ? 'SIGTERM' : 'SIGKILL')))
      await connection.close()
      await db.destroy()
      await owner.destroy()
      await database.drop()
      directory.remove()
    },
  }
  const first = options.parts.filter((part) => !part.startsWith('worker'))
  await Promise.all(first.map((part) => spine.start(part)))
  for (const part of options.parts.filter((name) => name.startsWith('worker'))) await spine.start(part)
  return spine
}
