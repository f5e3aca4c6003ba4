import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { type Spine, startSpine } from '../support/spine.ts'
import { type Relay, startRelay } from '../support/temporal-proxy.ts'

let spine: Spine
let relay: Relay

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api'] })
  relay = await startRelay(spine.url)
})
afterAll(async () => {
  await spine?.stop()
  await relay?.stop()
})
afterEach(() => spine.turnThePage())

async function expectOneRepair(incidentId: string) {
  const events = await spine.events(incidentId)
  expect(
    events.filter((event) => event.kind === 'tool_finished' && event.metadata.tool === 'converge_shard'),
  ).toHaveLength(1)
  const converges = (await spine.effects()).filter((effect) => effect.request.includes('converge'))
  expect(converges).toMatchObject([{ runs: 1, status: 'done' }])
  expect(await spine.get(`/incidents/${incidentId}/verify`)).toMatchObject({ ok: true })
}

const askedOfModel = async () =>
  (await (await fetch(`${spine.runbookUrl}/control/requests`)).json()) as {
    total: number
    items: { digest: string }[]
  }

test('a worker that SIGTERM ends during a model call returns it: another worker asks before a heartbeat or lease expires', async () => {
  await spine.start('worker')
  await spine.start('worker2')
  const hang = () =>
    fetch(`${spine.runbookUrl}/control/mood`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ mood: 'hang', times: 1 }),
    })
  const before = await askedOfModel()
  await hang()
  await spine.lab.break('service_down', 'web-ams-1')
  await spine.until('the hanging request', async () => (await askedOfModel()).total > before.total)
  // Which of them asks is not known: both are ended, one after the other, and one is always there.
  await spine.kill('worker', 'SIGTERM')
  await spine.start('worker')
  await spine.kill('worker2', 'SIGTERM')
  const incident = await spine.incident('service_down', 'resolved')
  const rows = await spine.db.selectFrom('modelSlot').select('holder').where('incidentId', '=', incident.id).execute()
  expect(rows).toEqual([])
  const attempts: (string | undefined)[] = []
  const handle = spine.client.workflow.getHandle(`investigate:${incident.id}:1`)
  for (const event of (await handle.fetchHistory()).events ?? [])
    attempts.push(event.activityTaskStartedEventAttributes?.lastFailure?.message ?? undefined)
  // A heartbeat or a lease that ran out would stand here.
  expect(attempts.filter(Boolean).join()).not.toMatch(/heartbeat|timeout/i)
  await expectOneRepair(incident.id)
  // The next one has a relay before it.
  await spine.kill('worker')
})

test('a worker killed between a write and its row finds out the outcome and does not write again', async () => {
  await spine.start('worker', { CORE_API_URL: relay.url })
  const held = relay.holdNext((method, path) => method === 'POST' && path.endsWith('/converge'))
  await spine.lab.break('replication_lag', 'db-osl-1')
  await held
  await spine.kill('worker')
  const incident = await spine.incident('replication_lag', 'investigating')
  const before = await spine.events(incident.id)
  expect(before.some((event) => event.kind === 'tool_started' && event.metadata.tool === 'converge_shard')).toBe(true)
  expect(before.some((event) => event.kind === 'tool_finished' && event.metadata.tool === 'converge_shard')).toBe(false)

  await spine.start('worker', { CORE_API_URL: relay.url })
  await spine.incident('replication_lag', 'resolved')
  expect(relay.passed.filter((line) => line.startsWith('POST') && line.endsWith('/converge'))).toHaveLength(1)
  expect(relay.passed.some((line) => line.startsWith('GET /api/v1/effects/'))).toBe(true)
  await expectOneRepair(incident.id)
  // The next one has no relay before it.
  await spine.kill('worker')
  await spine.start('worker')
})

test('a worker killed during a model call asks again, and no committed answer is paid for twice', async () => {
  const before = await askedOfModel()
  await fetch(`${spine.runbookUrl}/control/mood`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mood: 'hang', times: 1 }),
  })
  await spine.lab.break('service_down', 'web-osl-1')
  await spine.until('the hanging request', async () => (await askedOfModel()).total > before.total)
  await spine.kill('worker')
  await spine.start('worker')
  const incident = await spine.incident('service_down', 'resolved')
  // By what was asked: on a busy machine the lab may have another alert, whose questions are
  // others.
  const items = (await askedOfModel()).items.slice(before.items.length)
  const times = Object.values(Object.groupBy(items, ({ digest }) => digest)).map((same) => same?.length)
  expect(times.filter((count) => count !== 1)).toEqual([2])
  await expectOneRepair(incident.id)
})

test('a worker killed while an approval waits returns to the decision that was made meanwhile', async () => {
  await spine.lab.break('host_down', 'host-osl-1')
  const approval = await spine.pendingApproval()
  await spine.kill('worker')
  const minted = await spine.post(
    `/approvals/${approval.id}/token`,
    { decision: 'approve' },
    { token: spine.tokens.approver },
  )
  const decided = await spine.post(
    `/approvals/${approval.id}/decision`,
    { decision: 'approve', token: minted.body.token },
    { token: spine.tokens.approver },
  )
  expect(decided.status).toBe(200)
  await spine.start('worker')
  const incident = await spine.incident('host_down', 'escalated')
  expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
  const moved = (await spine.effects()).filter((effect) => effect.request.includes('/vms/'))
  expect(moved.every((effect) => effect.runs === 1)).toBe(true)
  expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
})

test('if one of two workers is killed, the other continues', async () => {
  await spine.start('worker2')
  await spine.lab.break('replication_lag', 'db-ams-1')
  await spine.incident('replication_lag', 'investigating')
  await spine.kill('worker')
  const incident = await spine.incident('replication_lag', 'resolved')
  await expectOneRepair(incident.id)
})
