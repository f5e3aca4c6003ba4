import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { Counter } from 'prom-client'
import type { Approval, Decision } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { StandingGrant } from '../../domain/grant.ts'
import { temporalRuns } from '../../effects/runs.ts'
import { runWatchdogRound } from '../../effects/watchdog.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { WATCHDOG_INTERVAL_SECONDS: '0.5' },
  })
})
afterAll(async () => {
  await spine?.stop()
})
afterEach(async () => {
  await spine.lab.heal()
  await sql`delete from platform_config`.execute(spine.owner)
})

async function tokenFor(approval: Approval, as: string, decision: Decision = 'approve'): Promise<string> {
  const said = { decision, purpose: 'temporal' }
  return String((await spine.post(`/approvals/${approval.id}/token`, said, { token: as })).body.token)
}

async function decided(approval: Approval, as: string, decision: Record<string, unknown>) {
  // A token carries the whole decision.
  const { token } = (await spine.post(`/approvals/${approval.id}/token`, decision, { token: as })).body
  return await spine.post(`/approvals/${approval.id}/decision`, { token, ...decision }, { token: as })
}

/** The rows of an incident that ended so. */
async function ended(incidentId: string, status: string): Promise<IncidentEvent[]> {
  await spine.until(`${incidentId} ${status}`, async () => {
    const incident = await spine.get<{ status: string }>(`/incidents/${incidentId}`)
    return incident.status === status
  })
  return await spine.events(incidentId)
}

const approve = (approval: Approval, more: Record<string, unknown> = {}) =>
  decided(approval, spine.tokens.approver, { decision: 'approve', ...more })

const judgements = (events: IncidentEvent[]) =>
  events.flatMap((event) => (event.kind === 'call_judged' && event.metadata.effect === 'write' ? [event] : []))

test("an approval with changed arguments is judged and asked again with the editor's vote, runs once, and the agent is told", async () => {
  await spine.lab.break('host_down', 'host-osl-1')
  const asked = await spine.pendingApproval()
  const args = { ...asked.arguments, reason: 'host-osl-1 is dead, agreed with storage' }
  const wrong = await decided(asked, spine.tokens.approver, {
    decision: 'approve',
    args: { ...args, proposal_id: 'prp_x' },
  })
  expect([wrong.status, wrong.body.code]).toEqual([422, 'EDIT_REFUSED'])
  const answer = await decided(asked, spine.tokens.approver, { decision: 'approve', args })
  expect([answer.status, answer.body.status]).toEqual([200, 'withdrawn'])

  const events = await ended(asked.incidentId, 'escalated')
  expect(judgements(events).map(({ metadata }) => metadata.code)).toEqual(['RISK_HIGH', 'RISK_HIGH', 'APPROVED'])
  const started = events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')
  expect(started).toMatchObject([{ metadata: { arguments: { reason: 'host-osl-1 is dead, agreed with storage' } } }])
  expect(judgements(events).at(-1)?.metadata.corrected).toMatchObject([{ code: 'EDITED_BY_PERSON' }])
  const { items } = await spine.get<{ items: Approval[] }>(`/approvals?incident=${asked.incidentId}`)
  expect(items.map(({ status }) => status)).toEqual(['consumed', 'withdrawn'])
  expect(items[1]?.edited).toMatchObject({ by: 'approver', arguments: args })
  expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
})

test('if the configuration requires two people, one is not enough, and the same person twice neither', async () => {
  await sql`insert into platform_config (key, value) values ('approval.required.execute_migration', '2')`.execute(
    spine.owner,
  )
  await spine.lab.break('host_down', 'host-osl-2')
  const asked = await spine.pendingApproval()
  expect(asked.required).toBe(2)
  expect((await decided(asked, spine.tokens.approver, { decision: 'approve' })).body).toMatchObject({
    status: 'pending',
  })
  const again = await decided(asked, spine.tokens.approver, { decision: 'approve' })
  expect(again.body).toMatchObject({ outcome: 'repeated', status: 'pending' })
  expect((await decided(asked, spine.tokens.admin, { decision: 'approve' })).body).toMatchObject({
    status: 'approved',
  })
  const events = await ended(asked.incidentId, 'escalated')
  expect(events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toHaveLength(1)
})

test('a denial by signal ends the approval with its reason, and a raised risk is asked about', async () => {
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'high')`.execute(
    spine.owner,
  )
  await spine.lab.break('service_down', 'web-osl-1')
  const asked = await spine.pendingApproval()
  expect(asked).toMatchObject({ tool: 'converge_shard', risk: 'high' })
  const incident = await spine.incident('service_down', 'awaiting_approval')
  const handle = spine.client.workflow.getHandle(`investigate:${incident.id}:${incident.attempt}`)
  const token = await tokenFor(asked, spine.tokens.approver, 'deny')
  await handle.signal('deny', { token, reason: 'a deploy is running' })
  const events = await ended(asked.incidentId, 'escalated')
  expect(events.find((event) => event.kind === 'approval_decided')).toMatchObject({
    actor: 'user:approver',
    metadata: { decision: 'deny', category: 'other', via: 'signal' },
  })
  expect(JSON.stringify(events.find((event) => event.kind === 'escalated'))).toContain('a deploy is running')
})

const log = pino({ level: 'silent' })
const watchdog = new Counter({ name: 'watchdog', help: 'what was found', labelNames: ['why'], registers: [] })

async function watchdogRound(): Promise<void> {
  const { db, client } = spine
  await runWatchdogRound({ db, locks: db, runs: temporalRuns(client, log), metrics: { watchdog }, log })
}

/**
 * A host is down, and a second source tells of it: two incidents that want the same, the second of
 * which waits for the first's question.
 */
async function askOnceForTwo(host: string) {
  await sql`insert into platform_config (key, value) values ('agent.leader_wait', '0')`.execute(spine.owner)
  await spine.lab.break('host_down', host)
  const approval = await spine.pendingApproval()
  await spine.post(
    '/ingest/generic',
    {
      summary: `${host} does not answer`,
      severity: 'critical',
      dedup: `${host} once more`,
      name: 'host_down',
      labels: { host },
    },
    { token: spine.tokens.ingest },
  )
  const second = await spine.until('the second to wait', async () =>
    (await spine.incidents('?type=host_down')).find(
      (each) => each.id !== approval.incidentId && each.status === 'awaiting_approval',
    ),
  )
  return { approval, second }
}

test('two incidents that propose the same action ask once, and the second learns the decision and repeats nothing', async () => {
  const { approval, second } = await askOnceForTwo('host-ams-1')
  // Rounds of the watchdog: it is waiting, not lost.
  for (let round = 0; round < 3; round += 1) await watchdogRound()
  expect((await spine.get<{ items: unknown[] }>('/approvals?status=pending')).items).toHaveLength(1)
  expect(await spine.get(`/incidents/${second.id}`)).toMatchObject({ status: 'awaiting_approval' })
  expect((await watchdog.get()).values).toEqual([])

  await approve(approval)
  await spine.until('both ends', async () =>
    (await spine.incidents('?type=host_down')).every((each) => ['resolved', 'escalated'].includes(each.status)),
  )
  const events = await spine.events(second.id)
  expect(events.filter((event) => event.kind === 'approval_requested')).toEqual([])
  expect(events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toEqual([])
  expect(events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))).toContain(
    'DECIDED_ELSEWHERE',
  )
  expect(
    (await spine.lab.effects())
      .filter((effect) => effect.request.includes('/vms/'))
      .every((effect) => effect.runs === 1),
  ).toBe(true)
})

test('a denial of a question of two incidents tells both why, is counted once, and neither may ask the same again', async () => {
  const { approval, second } = await askOnceForTwo('host-ams-2')
  const reason = 'the host is being moved by hand'
  expect(await decided(approval, spine.tokens.approver, { decision: 'deny', reason })).toMatchObject({ status: 200 })
  const told = await spine.until('the second to be told', async () => {
    const events = await spine.events(second.id)
    return events.find((event) => event.kind === 'approval_decided')
  })
  const ruled = (await spine.events(second.id)).find((event) => event.kind === 'call_judged' && event.metadata.joins)
  expect(ruled).toMatchObject({ metadata: { joins: approval.incidentId, approvalId: approval.id } })
  expect(told).toMatchObject({
    actor: 'user:approver',
    metadata: {
      decision: 'deny',
      reason,
      joined: approval.incidentId,
      callId: ruled?.kind === 'call_judged' ? ruled.metadata.callId : null,
    },
  })
  await spine.until('both ends', async () =>
    (await spine.incidents('?type=host_down')).every((each) => ['resolved', 'escalated'].includes(each.status)),
  )
  expect((await spine.get<{ items: unknown[] }>('/approvals?status=pending')).items).toEqual([])
  const both = [approval.incidentId, second.id]
  const audit = await spine.get<{ items: { incidentId: string }[] }>('/audit?what=approval.denied')
  expect(audit.items.flatMap(({ incidentId }) => (both.includes(incidentId) ? [incidentId] : []))).toEqual([
    approval.incidentId,
  ])
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [] })
})

const grants = async () => (await spine.get<{ items: StandingGrant[] }>('/grants')).items
const ends = (id: string, status: string) =>
  spine.until(
    `${id} ${status}`,
    async () => (await spine.get<{ status: string }>(`/incidents/${id}`)).status === status,
  )
const codes = async (id: string) =>
  (await spine.events(id)).flatMap((event) =>
    event.kind === 'call_judged' && event.metadata.effect === 'write' ? [event.metadata.code] : [],
  )
const newest = async (type: string) => (await spine.incidents(`?type=${type}`))[0]?.id ?? ''

test('a standing grant lets the same action run without asking, once for each use, and no other action', async () => {
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'medium')`.execute(
    spine.owner,
  )
  await spine.lab.break('service_down', 'web-ams-1')
  const asked = await spine.pendingApproval()
  expect((await approve(asked, { grant: { uses: 30, hours: 1 } })).status).toBe(422)
  expect((await approve(asked, { grant: { uses: 1, hours: 1 } })).body).toMatchObject({ status: 'approved' })
  await ends(asked.incidentId, 'resolved')
  expect(await grants()).toMatchObject([{ tool: 'converge_shard', uses: 1, usesLeft: 1, grantedBy: 'approver' }])

  // The same shard drifts: another incident, the same action.
  await spine.lab.heal()
  await spine.lab.break('config_drift', 'web-ams-1')
  await spine.incident('config_drift', 'resolved')
  expect(await codes(await newest('config_drift'))).toEqual(['GRANTED'])
  expect(await grants()).toMatchObject([{ usesLeft: 0 }])

  // Used up, and for another shard it never counted.
  await spine.lab.break('disk_pressure', 'web-ams-1')
  const again = await spine.pendingApproval()
  expect(again.targets).toEqual([{ kind: 'shard', id: 'web-ams-1' }])
  await approve(again, { grant: { uses: 5, hours: 1 } })
  await ends(again.incidentId, 'resolved')
  await spine.lab.break('config_drift', 'web-osl-1')
  const elsewhere = await spine.pendingApproval()
  expect(elsewhere.targets).toEqual([{ kind: 'shard', id: 'web-osl-1' }])
})

test('a revoked grant no longer counts, and a high risk is never granted', async () => {
  const open = (await grants()).find(({ usesLeft }) => usesLeft > 0)
  const as = { token: spine.tokens.approver }
  expect((await spine.post(`/grants/${open?.id}/revoke`, {}, as)).body).toMatchObject({ revoked: true })
  expect((await spine.post(`/grants/${open?.id}/revoke`, {}, as)).status).toBe(404)
  expect((await spine.post(`/grants/${open?.id}/revoke`, {}, { token: spine.tokens.agent })).status).toBe(403)
  await spine.lab.break('host_down', 'host-ams-4')
  const asked = await spine.until('the migration', async () =>
    (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
      ({ tool }) => tool === 'execute_migration',
    ),
  )
  const refused = await approve(asked, { grant: { uses: 1, hours: 1 } })
  expect([refused.status, refused.body.code]).toEqual([422, 'NOT_GRANTABLE'])
})

test('all stored rows agree with the log', async () => {
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
  expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
})

test('the API and the worker count the same as the log, with the model and its server', async () => {
  const scrape = async (url: string) =>
    (await (await fetch(`${url}/metrics`)).text()).split('\n').filter((line) => line.startsWith('nightshift_agentic'))
  const counted = await spine.until('both to have counted every turn', async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from incident_event where kind = 'model_answered'`.execute(spine.db)
    const [api, worker] = await Promise.all([scrape(spine.url), scrape(spine.workerUrl)])
    const total = api?.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    return total === rows[0]?.count && JSON.stringify(api) === JSON.stringify(worker) && api
  })
  expect(counted).toEqual([expect.stringContaining(`{provider="${new URL(spine.runbookUrl).host}",model=`)])
})
