import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import { enrolLab } from '../../start/lab-devices.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { dumpRows, type Fixture, writeFixture } from './fixture.ts'

/**
 * Records what this version leaves behind, for `upgrade.test.ts` of later versions:
 *
 *     RECORD_FIXTURE=v0.2.0 npm test -- test/upgrade/record
 *
 * Run it on the commit that is released, before anything else changes. It plays the lab until its
 * database holds closed, running and waiting incidents of each kind, and stores rows, histories,
 * the agents' journals and unused decision tokens as they are at that moment.
 */
const version = process.env.RECORD_FIXTURE ?? ''
const keys = temporaryDirectory()
let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { ...ensureMeshKeys(keys.path) },
  })
  await spine.until('the inventory', async () => {
    const { items } = await spine.get<{ items: unknown[] }>('/resources?q=node-web&kind=node')
    return items.length >= 4
  })
  await enrolLab(spine.url, spine.tokens.admin, spine.lab)
})
afterAll(async () => {
  await spine?.stop()
  keys.remove()
})

/**
 * What the API answered; throws a refusal, so that a recording that went wrong ends where it did.
 */
async function post(path: string, body: unknown, as = spine.tokens.admin): Promise<Record<string, unknown>> {
  const answer = await spine.post(path, body, { token: as })
  if (answer.status >= 300)
    throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}\n${spine.printed().slice(-3000)}`)
  return answer.body
}

type Decision = { decision: 'approve' | 'deny'; reason?: string; grant?: { uses: number; hours: number } }

async function decide({ id }: Approval, decision: Decision): Promise<void> {
  const as = spine.tokens.approver
  const { token } = await post(`/approvals/${id}/token`, decision, as)
  await post(`/approvals/${id}/decision`, { token, ...decision }, as)
}

async function asked(tool: string): Promise<Approval> {
  return await spine.until(`a question about ${tool}`, async () => {
    const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
    return items.find((approval) => approval.tool === tool)
  })
}

const configure = (key: string, value: string | null) =>
  value === null
    ? sql`delete from platform_config where key = ${key}`.execute(spine.db)
    : sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.db)

/**
 * Denies whatever the run of an incident asks, until it gives up: a denied plan may be followed by
 * another.
 */
async function denyUntilClosed(type: string, reason: string): Promise<void> {
  const { id } = await spine.incident(type)
  await spine.until(`the end of ${type}`, async () => {
    const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
    for (const each of items) if (each.incidentId === id) await decide(each, { decision: 'deny', reason })
    return (await spine.get<{ status: string }>(`/incidents/${id}`)).status === 'escalated'
  })
}

async function playClosed(): Promise<void> {
  await spine.lab.break('service_down', 'web-osl-1')
  await spine.incident('service_down', 'resolved')

  await spine.lab.break('disk_pressure_tenant', 'web-osl-1')
  await spine.incident('disk_pressure', 'escalated')

  await spine.lab.break('runaway_process', 'web-ams-1')
  await decide(await asked('proc_kill'), { decision: 'approve' })
  await spine.incident('runaway_process', 'resolved')
  await spine.lab.heal()

  await spine.lab.break('bad_deploy', 'web-ams-1')
  await decide(await asked('fs_write'), { decision: 'approve', grant: { uses: 2, hours: 8 } })
  await decide(await asked('git_commit'), { decision: 'approve' })
  await spine.incident('bad_deploy', 'resolved')
  await spine.lab.heal()

  await spine.lab.break('drain', 'host-ams-1')
  await denyUntilClosed('host_draining', 'a backup runs there until six')
  await spine.lab.heal()

  const question = await post('/agent', { question: 'Is the shard web-osl-1 well?' })
  await spine.until('the answer', async () => {
    const incident = await spine.get<{ status: string }>(`/incidents/${question.incidentId ?? question.id}`)
    return ['resolved', 'escalated'].includes(incident.status)
  })
  const byHand = await post('/incidents', {
    title: 'The backup of db-ams-1 is late',
    type: 'backup_late',
    severity: 'warning',
  })
  await spine.until('its investigation', async () => {
    const incident = await spine.get<{ status: string }>(`/incidents/${byHand.id}`)
    return ['resolved', 'escalated'].includes(incident.status)
  })
  await post(`/incidents/${byHand.id}/resolve`, {
    outcome: 'repaired',
    resolution: 'The backup was started by hand.',
  })
}

/**
 * Alerts without a platform behind them: what ends before it is looked at, and what a person stops.
 */
async function playAlerts(): Promise<void> {
  await configure('agent.paused', 'true')
  const alert = (name: string, status: string) => ({
    version: '4',
    status,
    alerts: [
      { status, labels: { alertname: name, severity: 'warning' }, annotations: { summary: `${name} happened` } },
    ],
  })
  const send = (name: string, status: string) =>
    spine.post('/ingest/alertmanager', alert(name, status), { token: spine.tokens.ingest })
  await send('blip', 'firing')
  await send('blip', 'resolved')
  await send('planned_failover', 'firing')
  const stopped = await spine.incident('planned_failover', 'open')
  await spine.post(`/incidents/${stopped.id}/cancel`, { reason: 'A planned failover, nothing to investigate.' })
  await send('still_queued', 'firing')
  await configure('agent.paused', null)
}

async function playWaiting(): Promise<void> {
  await configure('approval.required.execute_migration', '2')
  await spine.lab.break('host_down', 'host-osl-1')
  await decide(await asked('execute_migration'), { decision: 'approve' })
  await configure('approval.risk.converge_shard', 'high')
  await spine.lab.break('service_down', 'node-web-ams-1a')
  await asked('converge_shard')
  await spine.lab.break('bad_deploy', 'web-osl-1')
  await asked('fs_write')
  await spine.lab.break('full_log', 'node-web-osl-1b')
  await spine.until('four questions', async () => {
    const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
    return items.length >= 4
  })
}

/**
 * What people and senders leave behind besides decisions: a source, a delivery that fails, an
 * expectation, an owner.
 */
async function playPeople(): Promise<void> {
  const nobodyListens = 'http://127.0.0.1:9'
  const source = { kind: 'prometheus', url: nobodyListens, credential: null, caFile: null, options: {} }
  const put = await fetch(`${spine.url}/api/v1/sources/main`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${spine.tokens.admin}`, 'content-type': 'application/json' },
    body: JSON.stringify(source),
  })
  if (!put.ok) throw new Error(await put.text())
  await configure('webhook.critical', `${nobodyListens}/hook`)
  const body = { title: 'The certificate of web-osl-1 ends soon', type: 'certificate', severity: 'warning' }
  const { id } = await post('/incidents', body)
  await spine.incident('certificate', 'resolved|escalated')
  const until = new Date(Date.now() + 7 * 86_400_000).toISOString()
  await post(`/incidents/${id}/expected`, { subject: 'type', until, reason: 'It is renewed on Monday.' })
}

async function playRunning(): Promise<void> {
  await fetch(`${spine.runbookUrl}/control/mood`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mood: 'hang' }),
  })
  await spine.lab.break('replication_lag', 'db-osl-1')
  const { id } = await spine.incident('replication_lag', 'investigating')
  await post(`/incidents/${id}/messages`, { text: 'The replica was moved at noon.' })
}

/** The files of each agent's journal, by device. */
function journals(): NonNullable<Fixture['journals']> {
  const devices = readdirSync(join(spine.labDirectory, 'agents')).filter((name) => !name.includes('.'))
  return Object.fromEntries(
    devices.flatMap((device) => {
      const state = join(spine.labDirectory, 'agents', device)
      const files = readdirSync(state, { recursive: true, encoding: 'utf8' })
      const kept = files.filter((file) => /^(journal\/\d+\.jsonl|head\.json|nonces.*)$/.test(file))
      return kept.length > 0
        ? [[device, Object.fromEntries(kept.map((file) => [file, readFileSync(join(state, file), 'utf8')]))]]
        : []
    }),
  )
}

async function decisionTokens(): Promise<NonNullable<Fixture['decisionTokens']>> {
  const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
  return await Promise.all(
    items.map(async ({ id }) => {
      const { token } = await post(`/approvals/${id}/token`, { decision: 'approve' }, spine.tokens.approver)
      return { approvalId: id, token: String(token) }
    }),
  )
}

async function histories(): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for await (const { workflowId, runId, type } of spine.client.workflow.list()) {
    // Ticks are all alike.
    if (type === 'ProcessIncidentQueue' && Object.keys(found).some((id) => id.startsWith('tick'))) continue
    const history = await spine.client.workflow.getHandle(workflowId, runId).fetchHistory()
    const json = historyToJSON(history).replaceAll(`@${hostname()}`, '@worker')
    const name = type === 'ProcessIncidentQueue' ? 'tick' : workflowId
    found[found[name] ? `${name}/${runId}` : name] = JSON.parse(json)
  }
  return found
}

test('the state of this version is recorded', async () => {
  await playClosed()
  await playAlerts()
  await playPeople()
  await playWaiting()
  await playRunning()
  await spine
    .until('the queue', async () => (await spine.incidents('?status=open')).length === 0, 30_000)
    .catch(() => {})
  await configure('agent.paused', 'true')
  const fixture: Fixture = {
    version,
    commit: execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim(),
    recordedAt: new Date().toISOString(),
    decisionTokens: await decisionTokens(),
    ...(await dumpRows(spine.databaseUrl)),
    journals: journals(),
    histories: await histories(),
  }
  mkdirSync(join(import.meta.dirname, 'fixtures', version), { recursive: true })
  expect(JSON.stringify(fixture)).not.toContain(`@${hostname()}`)
  writeFixture(fixture)
}, 900_000)
