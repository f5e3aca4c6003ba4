import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import { enrolLab, ensureMeshKeys } from '../../start/web.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { dumpRows, type Fixture, writeFixture } from './fixture.ts'

/**
 * Records what this version leaves behind, for `upgrade.test.ts` of later versions:
 *
 *     RECORD_FIXTURE=v0.1.0 npm test -- test/upgrade/record
 *
 * Run it on the commit that is released, before anything else changes. It plays the lab until its database holds closed,
 * running and waiting incidents of each kind, and stores rows and histories as they are at that moment.
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
}, 300_000)
afterAll(async () => {
  await spine?.stop()
  keys.remove()
})

async function decide(approval: Approval, decision: Record<string, unknown>, as = spine.tokens.approver) {
  const { body } = await spine.post(`/approvals/${approval.id}/token`, {}, { token: as })
  return await spine.post(`/approvals/${approval.id}/decision`, { token: body.token, ...decision }, { token: as })
}

async function asked(tool: string): Promise<Approval> {
  return await spine.until(
    `a question about ${tool}`,
    async () => {
      const { items } = await spine.get<{ items: Approval[] }>('/approvals?status=pending')
      return items.find((approval) => approval.tool === tool)
    },
    120_000,
  )
}

const configure = (key: string, value: string | null) =>
  value === null
    ? sql`delete from platform_config where key = ${key}`.execute(spine.db)
    : sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.db)

async function playClosed(): Promise<void> {
  await spine.lab.break('service_down', 'web-osl-1')
  await spine.incident('service_down', 'resolved', 120_000)

  await spine.lab.break('disk_pressure_tenant', 'web-osl-1')
  await spine.incident('disk_pressure', 'escalated', 120_000)

  await spine.lab.break('runaway_process', 'web-ams-1')
  await decide(await asked('proc_kill'), { decision: 'approve' })
  await spine.incident('runaway_process', 'resolved', 120_000)
  await spine.lab.heal()

  await spine.lab.break('drain', 'host-ams-1')
  await decide(await asked('execute_migration'), { decision: 'deny', reason: 'a backup runs there until six' })
  await spine.incident('host_draining', 'escalated', 120_000)
  await spine.lab.heal()

  const { body } = await spine.post('/agent', { question: 'Is the shard web-osl-1 well?' })
  await spine.until('the answer', async () => {
    const incident = await spine.get<{ status: string }>(`/incidents/${body.incidentId ?? body.id}`)
    return ['resolved', 'escalated'].includes(incident.status)
  })
  const byHand = await spine.post('/incidents', {
    ...{ title: 'The backup of db-ams-1 is late', type: 'backup_late', severity: 'warning' },
  })
  await spine.until('its investigation', async () => {
    const incident = await spine.get<{ status: string }>(`/incidents/${byHand.body.id}`)
    return ['resolved', 'escalated'].includes(incident.status)
  })
  await spine.post(`/incidents/${byHand.body.id}/resolve`, { resolution: 'The backup was started by hand.' })
}

/** Alerts without a platform behind them: what ends before it is looked at, and what a person stops. */
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

async function playRunning(): Promise<void> {
  await fetch(`${spine.runbookUrl}/control/mood`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mood: 'hang' }),
  })
  await spine.lab.break('replication_lag', 'db-osl-1')
  await spine.incident('replication_lag', 'investigating', 120_000)
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

test('what this version leaves behind', async () => {
  await playClosed()
  await playAlerts()
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
    ...(await dumpRows(spine.databaseUrl)),
    histories: await histories(),
  }
  mkdirSync(join(import.meta.dirname, 'fixtures', version), { recursive: true })
  expect(JSON.stringify(fixture)).not.toContain(`@${hostname()}`)
  writeFixture(fixture)
}, 900_000)
