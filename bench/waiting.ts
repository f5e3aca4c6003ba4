import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client, Connection } from '@temporalio/client'
import { sql } from 'kysely'
import { principalOf } from '../db/access/principals.ts'
import { createToken, ensureOperator } from '../db/access/tokens.ts'
import { ingestAlert } from '../db/alerts/ingest-body.ts'
import { decide } from '../db/approvals/decide.ts'
import { mintDecisionToken } from '../db/approvals/tokens.ts'
import { connect, type Db } from '../db/connect.ts'
import type { Principal } from '../domain/permissions.ts'
import { type ChatRequest, type Line, scriptedModel } from '../test/support/scripted-model.ts'
import type { MemoryUse } from './memory-probe.ts'
import { startServers } from './servers.ts'
import { median, percentile, report, scriptedCore } from './stage.ts'

const waiting = Number(process.env.WAITING ?? 2_000)
const warmUp = 50
const decisions = 200
const startersAtOnce = 24
/** Milliseconds after which the worker has freed memory, which it does after 15 idle seconds. */
const settleMs = 50_000
/**
 * Variables of the worker other than the addresses. Set them in the environment of the bench to try
 * other values.
 */
const workerSettings = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^(WORKER_(?!PORT)|MALLOC_|NODE_OPTIONS)/.test(name)),
) as Record<string, string>
/**
 * The most milliseconds for the set-up. Ten thousand investigations take up to an hour on two busy
 * cores.
 */
const setUpWithinMs = 3 * 3_600_000
const rootDir = fileURLToPath(new URL('..', import.meta.url))

/**
 * Measures many investigations that wait for people: how much more memory the worker (a separate
 * process) uses than after a warm-up, its busy connections, and the time from a decision to the
 * act. `WAITING=10000` sets the number of investigations. Their start is not measured.
 */
export async function waitingBench(): Promise<void> {
  const servers = await startServers()
  const db = connect(servers.databaseUrl)
  await askForApprovals(db)
  const model = await scriptedModel((_turn, request) => script(request))
  const core = await scriptedCore((path) =>
    path.includes('/nodes') ? { items: [node] } : { id: path.split('/').at(-1), status: 'nominal' },
  )
  const worker = startWorker({
    PATH: process.env.PATH ?? '',
    DATABASE_URL: servers.databaseUrl,
    TEMPORAL_ADDRESS: servers.temporalAddress,
    AGENT_ENABLED: 'true',
    AGENT_API_KEY: 'bench',
    LLM_BASE_URL: model.url,
    LLM_REQUESTS_PER_SECOND: '1000',
    CORE_API_URL: core.url,
    WORKER_PORT: '0',
    LOG_LEVEL: 'error',
    QUEUE_INTERVAL_SECONDS: '3600',
    logFile: join(servers.dir, 'worker.log'),
  })
  const connection = await Connection.connect({ address: servers.temporalAddress })
  const client = new Client({ connection })
  const person = await approver(db)

  await startInvestigations(db, client, 0, warmUp)
  await untilAsked(db, warmUp)
  await sleep(settleMs)
  const idle = await memoryOf(worker)
  const startedAt = performance.now()
  await startInvestigations(db, client, warmUp, waiting - warmUp)
  await untilAsked(db, waiting)
  const setUpSeconds = Math.round((performance.now() - startedAt) / 1000)
  const started = await memoryOf(worker)
  await sleep(settleMs)
  const settled = await memoryOf(worker)
  const busy = await busyConnections(db)

  const latencies = await decideSome(db, client, person)
  const decided = await memoryOf(worker)
  await sleep(settleMs)
  const after = await memoryOf(worker)
  memoryTable({ idle, 'all asked': started, 'all wait': settled, decided, after })
  report('waiting', {
    'investigations that wait': waiting,
    'settings of the worker': Object.keys(workerSettings).length > 0 ? JSON.stringify(workerSettings) : 'defaults',
    'set-up, not measured (s)': setUpSeconds,
    'worker idle (MB)': idle.residentMb,
    'worker with all waiting (MB)': settled.residentMb,
    'growth (MB, less than 200)': settled.residentMb - idle.residentMb,
    'worker after the decisions (MB)': after.residentMb,
    'growth after the decisions (MB)': after.residentMb - idle.residentMb,
    'connections of the worker that do something (0)': busy,
    'decisions, one after the other': latencies.length,
    'decision to act, median (ms, under 250)': Math.round(median(latencies)),
    'decision to act, p99 (ms, under 1,000)': Math.round(percentile(latencies, 99)),
    'decision to act, longest (ms)': Math.round(Math.max(...latencies)),
  })
  worker.kill('SIGKILL')
  await connection.close()
  await db.destroy()
  await Promise.all([model.stop(), core.stop()])
  await servers.stop()
}

/** Makes each call wait for a person's approval, for longer than the measurement takes. */
async function askForApprovals(db: Db): Promise<void> {
  const settings = { 'approval.risk.converge_shard': 'high', 'approval.expiry.converge_shard': '86400' }
  for (const [key, value] of Object.entries(settings))
    await db.insertInto('platformConfig').values({ key, value }).execute()
}

const node = { id: 'n', hostname: 'n', ip: '10.0.0.1', shard: 's', status: 'nominal' }

/**
 * Returns the model's next response: it reads the shard that the alert names, proposes to converge
 * the shard, and escalates.
 */
function script({ messages }: ChatRequest): Line {
  const text = messages.map(({ content }) => content ?? '').join('\n')
  const shard = /shard-\d+/.exec(text)?.[0] ?? 'shard-0'
  const answers = messages.filter(({ role }) => role === 'assistant').length
  if (answers === 0) return [{ tool: 'get_shard', arguments: { id: shard } }]
  if (answers === 1) return [{ tool: 'converge_shard', arguments: { id: shard, reason: 'replica is behind' } }]
  const incident = /inc_[0-9a-z]{26}/.exec(text)?.[0] ?? ''
  return [{ tool: 'escalate_incident', arguments: { id: incident, reason: 'done' } }]
}

function startWorker({ logFile, ...environment }: Record<string, string> & { logFile: string }): ChildProcess {
  const log = openSync(logFile, 'a')
  const probe = new URL('./memory-probe.ts', import.meta.url).href
  const entry = join(rootDir, 'worker', 'main.ts')
  return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--import', probe, entry], {
    // Sets the variable as the image and `start` do.
    env: { MALLOC_ARENA_MAX: '2', ...environment, ...workerSettings },
    stdio: ['ignore', log, log, 'ipc'],
  })
}

async function memoryOf(worker: ChildProcess): Promise<MemoryUse> {
  worker.send('memory')
  const [memory] = await once(worker, 'message')
  return memory
}

/** Formats memory over time. The rows are the parts of memory, the columns are the moments. */
function memoryTable(moments: Record<string, MemoryUse>): void {
  const parts = Object.keys(Object.values(moments)[0] ?? {}) as (keyof MemoryUse)[]
  console.table(
    Object.fromEntries(
      parts.map((part) => [
        part,
        Object.fromEntries(Object.entries(moments).map(([moment, memory]) => [moment, memory[part]])),
      ]),
    ),
  )
}

async function approver(db: Db): Promise<Principal> {
  const operatorId = await ensureOperator(db, 'anna', 'approver')
  const token = await createToken(db, { name: 'anna', role: 'approver', operatorId })
  return (await principalOf(db, token)) as Principal
}

async function startInvestigations(db: Db, client: Client, from: number, count: number): Promise<void> {
  let next = from
  const starter = async () => {
    while (next < from + count) {
      const n = next
      next += 1
      const { incidentId } = await ingestAlert(db, alert(n))
      if (!incidentId) throw new Error('no incident')
      await client.workflow.start('InvestigateIncident', {
        workflowId: `investigate:${incidentId}:1`,
        taskQueue: 'nightshift',
        args: [{ incidentId, attempt: 1, role: 'leader', groupId: `grp_${n}`, group: 'none' }],
      })
    }
  }
  await Promise.all(Array.from({ length: startersAtOnce }, starter))
}

async function untilAsked(db: Db, count: number): Promise<void> {
  const deadline = Date.now() + setUpWithinMs
  for (;;) {
    const { asked } = await db
      .selectFrom('approval')
      .select(({ fn }) => fn.countAll<number>().as('asked'))
      .where('status', '=', 'pending')
      .executeTakeFirstOrThrow()
    if (Number(asked) >= count) return
    if (Date.now() > deadline) throw new Error(`only ${asked} of ${count} ask after three hours`)
    await sleep(500)
  }
}

async function busyConnections(db: Db): Promise<number> {
  const { rows } = await sql<{ busy: number }>`select count(*)::int as busy from pg_stat_activity
    where application_name = 'nightshift-worker' and state <> 'idle'`.execute(db)
  return rows[0]?.busy ?? 0
}

/**
 * Decides approvals one after the other, as people do. Returns the milliseconds from the row of
 * each decision to the row that starts the write. The same clock times both rows.
 */
async function decideSome(db: Db, client: Client, person: Principal): Promise<number[]> {
  const asked = await db
    .selectFrom('approval')
    .select(['id', 'incidentId'])
    .where('status', '=', 'pending')
    .orderBy(sql`random()`)
    .limit(decisions)
    .execute()
  for (const { id, incidentId } of asked) {
    const minted = await mintDecisionToken(db, person, id, { decision: 'approve' })
    if (minted.outcome !== 'minted') throw new Error(minted.message)
    const request = {
      approvalId: id,
      incidentId,
      token: minted.token,
      decision: 'approve' as const,
      caller: person.operatorId,
      via: 'api',
    }
    await decide(db, request)
    await client.workflow.getHandle(`investigate:${incidentId}:1`).signal('decided')
    // Waits for the end of the run, as a person decides one question at a time. Faster decisions
    // would measure how fast runs end.
    await untilOver(db, incidentId)
  }
  const { rows } = await sql<{ ms: number }>`
    select extract(epoch from started.at - decided.at)::float8 * 1000 as ms
    from incident_event decided
    join incident_event started on started.incident_id = decided.incident_id
      and started.kind = 'tool_started' and started.metadata->>'effect' = 'write'
    where decided.kind = 'approval_decided'`.execute(db)
  if (rows.length < asked.length)
    throw new Error(`${asked.length - rows.length} of ${asked.length} decisions became no act`)
  return rows.map(({ ms }) => ms)
}

/** Waits for the row of a run's last call, because the scripted core API closes no incident. */
async function untilOver(db: Db, incidentId: string): Promise<void> {
  for (let tries = 0; tries < 1_200; tries += 1) {
    const { rows } = await sql`select 1 from incident_event where incident_id = ${incidentId}
      and kind = 'tool_finished' and metadata->>'effect' = 'terminal'`.execute(db)
    if (rows.length > 0) return
    await sleep(50)
  }
  throw new Error(`${incidentId} did not end within a minute`)
}

function alert(n: number) {
  return {
    source: 'alertmanager' as const,
    fingerprint: `bench-${n}`,
    status: 'firing' as const,
    name: 'replication_lag',
    severity: 'critical' as const,
    severitySource: 'alert' as const,
    severityWord: 'critical',
    title: `shard-${n} is behind`,
    labels: {},
    annotations: {},
    startsAt: new Date().toISOString(),
    endsAt: null,
    groupKey: null,
    truncatedAlerts: 0,
    links: { generator: null, external: null, runbook: null },
    cappedFields: [],
  }
}
