import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client, Connection } from '@temporalio/client'
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker, type WorkflowBundle } from '@temporalio/worker'
import pino from 'pino'
import { readConfig } from '../config/settings.ts'
import { ingestAlert } from '../db/alerts/ingest-body.ts'
import { connect, type Db } from '../db/connect.ts'
import type { Alert } from '../domain/alert.ts'
import { freePort } from '../start/process.ts'
import { type ChatRequest, type Line, scriptedModel } from '../test/support/scripted-model.ts'
import { startWorkers } from '../worker/workers.ts'
import { startServers } from './servers.ts'

/** Starts a core API that responds at once. `answer` returns the body of every response. */
export async function scriptedCore(answer: (path: string) => unknown): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume()
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer(request.url ?? '')))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/**
 * Returns a percentile: the smallest of the values that `percent` per cent of them do not exceed.
 */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] as number
}

/** Prints the measurement as a table for people, and as one line of JSON for programs. */
export function report(bench: string, rows: Record<string, string | number>): void {
  console.log(`\n${bench}`)
  const width = Math.max(...Object.keys(rows).map((key) => key.length))
  for (const [key, value] of Object.entries(rows)) console.log(`  ${key.padEnd(width)}  ${value}`)
  console.log(JSON.stringify({ bench, ...rows }))
}

export type Stage = {
  db: Db
  client: Client
  requests: { characters: number }[]
  /** Opens an incident, investigates it as a leader, and waits for the end of the investigation. */
  investigate(): Promise<{ incidentId: string; workflowId: string }>
  stop(): Promise<void>
}

/**
 * Starts PostgreSQL, Temporal and the real worker, with a model and a core API that respond at
 * once.
 */
export async function stage(options: {
  model: (turn: number) => Line
  core: (path: string) => unknown
  maxTurns: number
}): Promise<Stage> {
  const servers = await startServers()
  const db = connect(servers.databaseUrl)
  // Raises limits that would end an investigation early.
  await db.insertInto('platformConfig').values({ key: 'agent.token_budget', value: '100000000' }).execute()
  const requests: { characters: number }[] = []
  const model = await scriptedModel((turn, request) => {
    requests.push({ characters: charactersOf(request) })
    return options.model(turn)
  })
  const core = await scriptedCore(options.core)
  const maxTurns = String(Math.min(200, options.maxTurns))
  const config = configFor({
    model: model.url,
    core: core.url,
    postgres: servers.databaseUrl,
    temporal: servers.temporalAddress,
    maxTurns,
  })
  const bundle = await bundleWorkflows()
  const workers = await startWorkers(config, db, pino({ level: 'fatal' }), {
    bundle,
    schedule: false,
    taskQueue: 'bench',
    environment: { LLM_MAX_TURNS: maxTurns },
  })
  const bare = await startBareWorkers(servers.temporalAddress, bundle)
  const clientConnection = await Connection.connect({ address: servers.temporalAddress })
  const client = new Client({ connection: clientConnection })
  return {
    db,
    client,
    requests,
    async investigate() {
      const { incidentId } = await ingestAlert(db, alert())
      if (!incidentId) throw new Error('no incident')
      const workflowId = `investigate:${incidentId}:1`
      await client.workflow.execute('InvestigateIncident', {
        workflowId,
        taskQueue: 'bench',
        args: [{ incidentId, attempt: 1, role: 'leader', groupId: `grp_${incidentId}`, group: 'none' }],
      })
      return { incidentId, workflowId }
    },
    async stop() {
      await workers.stop()
      await bare.stop()
      await clientConnection.close()
      await db.destroy()
      await Promise.all([model.stop(), core.stop()])
      await servers.stop()
    },
  }
}

async function bundleWorkflows() {
  const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url))
  return await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') })
}

type Addresses = { model: string; core: string; postgres: string; temporal: string; maxTurns: string }

function configFor({ model, core, postgres, temporal, maxTurns }: Addresses) {
  return readConfig({
    AGENT_ENABLED: 'true',
    AGENT_API_KEY: 'bench',
    LLM_BASE_URL: model,
    LLM_MODEL: 'scripted',
    LLM_MAX_TURNS: maxTurns,
    LLM_REQUESTS_PER_SECOND: '1000',
    CORE_API_URL: core,
    DATABASE_URL: postgres,
    TEMPORAL_ADDRESS: temporal,
  })
}

/**
 * Starts workers for the bare activities. These workers use the same kinds of queues as the real
 * activities, so that the comparison is fair.
 */
async function startBareWorkers(address: string, workflowBundle: WorkflowBundle): Promise<{ stop(): Promise<void> }> {
  const connection = await NativeConnection.connect({ address })
  const bare = [
    await Worker.create({
      connection,
      taskQueue: 'bench-bare',
      workflowBundle,
      activities: { bareAct: async () => null },
    }),
    await Worker.create({ connection, taskQueue: 'bench-bare-llm', activities: { bareThink: async () => null } }),
  ]
  const running = Promise.all(bare.map((worker) => worker.run()))
  return {
    async stop() {
      for (const worker of bare) worker.shutdown()
      await running
      await connection.close()
    },
  }
}

let alerts = 0
function alert(): Alert {
  alerts += 1
  return {
    source: 'alertmanager',
    fingerprint: `bench-${alerts}`,
    status: 'firing',
    name: 'replication_lag',
    severity: 'critical',
    severitySource: 'alert',
    severityWord: 'critical',
    title: 'replica is behind',
    labels: {},
    annotations: {},
    startsAt: new Date().toISOString(),
    endsAt: null,
    links: { generator: null, external: null, runbook: null },
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: [],
  }
}

/**
 * Counts the characters that a tokenizer would read: contents and calls, without the JSON around
 * them.
 */
function charactersOf(request: ChatRequest): number {
  return request.messages.reduce(
    (sum, message) =>
      sum + (message.content?.length ?? 0) + (message.tool_calls ? JSON.stringify(message.tool_calls).length : 0),
    JSON.stringify(request.tools ?? []).length,
  )
}

const rootDir = fileURLToPath(new URL('..', import.meta.url))

type ApiProcess = { url: string; residentMb(): number; stop(): Promise<void> }

/** Starts the core API as deployed, as a separate process. Returns when it accepts requests. */
export async function startApi(options: {
  databaseUrl: string
  dir: string
  environment?: Record<string, string>
}): Promise<ApiProcess> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const log = openSync(join(options.dir, 'api.log'), 'a')
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', join(rootDir, 'api', 'main.ts')], {
    env: {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: options.databaseUrl,
      PORT: String(port),
      LOG_LEVEL: 'error',
      // Names a port on which nothing listens, because the measurement uses no Temporal.
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      ...options.environment,
    },
    stdio: ['ignore', log, log],
  })
  for (let tries = 0; !(await answers(`${url}/livez`)); tries += 1) {
    if (tries > 300 || child.exitCode !== null)
      throw new Error(`the API did not start:\n${readFileSync(join(options.dir, 'api.log'), 'utf8')}`)
    await sleep(100)
  }
  return { url, residentMb: () => residentMb(child), stop: () => ended(child) }
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
}

function residentMb({ pid }: ChildProcess): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await exited
}
