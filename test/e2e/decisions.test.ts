import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval, Decision } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
}, 300_000)
afterAll(async () => {
  await spine?.stop()
})
afterEach(async () => {
  await spine.lab.heal()
  await sql`delete from platform_config`.execute(spine.db)
})

async function tokenFor(approval: Approval, as: string, decision: Decision = 'approve'): Promise<string> {
  return String((await spine.post(`/approvals/${approval.id}/token`, { decision }, { token: as })).body.token)
}

async function decided(approval: Approval, as: string, decision: Record<string, unknown>) {
  const token = await tokenFor(approval, as)
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
}, 300_000)

test('where configuration asks for two people, one is not enough, the same one twice neither', async () => {
  await sql`insert into platform_config (key, value) values ('approval.required.execute_migration', '2')`.execute(
    spine.db,
  )
  await spine.lab.break('host_down', 'host-osl-2')
  const asked = await spine.pendingApproval()
  expect(asked.required).toBe(2)
  expect((await decided(asked, spine.tokens.approver, { decision: 'approve' })).body).toMatchObject({
    status: 'pending',
  })
  const again = await decided(asked, spine.tokens.approver, { decision: 'approve' })
  expect(again.body).toMatchObject({ outcome: 'repeated', status: 'pending' })
  expect((await decided(asked, spine.tokens.admin, { decision: 'approve' })).body).toMatchObject({ status: 'approved' })
  const events = await ended(asked.incidentId, 'escalated')
  expect(events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toHaveLength(1)
}, 300_000)

test('a denial by signal ends it with its reason, and a risk that configuration raised is asked about', async () => {
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'high')`.execute(spine.db)
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
}, 300_000)

test('what is stored of all this holds against the log', async () => {
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
  expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
})
