import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval, ApprovalDetail } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type ChatRequest, type Said, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let model: ScriptedModel
let spine: Spine

/** Another shard that the same answer wants to repair too; null where one answer holds one call. */
let besides: string | null = null

/** Looks, wants a repair that needs a person, and hands over: the same words for every incident. */
function script(_turn: number, { messages }: ChatRequest): Said[] {
  const text = messages.map(({ content }) => content ?? '').join('\n')
  const incident = /inc_[0-9a-z]{26}/.exec(text)?.[0] ?? ''
  const shard = /web-osl-\d/.exec(text)?.[0] ?? ''
  const answers = messages.filter(({ role }) => role === 'assistant').length
  const shards = besides === null ? [shard] : [shard, besides]
  if (answers === 0) return shards.map((id) => ({ tool: 'get_shard', arguments: { id } }))
  if (answers === 1)
    return shards.map((id) => ({ tool: 'converge_shard', arguments: { id, reason: 'a service is down' } }))
  return [{ tool: 'escalate_incident', arguments: { id: incident, reason: 'a person should look at the cause' } }]
}

beforeAll(async () => {
  model = await scriptedModel(script)
  spine = await startSpine({
    parts: ['lab', 'api', 'worker'],
    environment: { LLM_BASE_URL: model.url, LAB_WEB_SHARDS: '8' },
  })
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'high')`.execute(
    spine.owner,
  )
})
afterAll(async () => {
  await spine?.stop()
  await model?.stop()
})

/** What the model was told after the decision, without what tells one incident from another. */
async function afterDecision(shard: string, meanwhile: () => Promise<void>): Promise<string> {
  model.requests.length = 0
  await spine.lab.break('service_down', shard)
  const asked: Approval = await spine.pendingApproval()
  await meanwhile()
  const { body } = await spine.post(
    `/approvals/${asked.id}/token`,
    { decision: 'approve' },
    { token: spine.tokens.approver },
  )
  const decision = { decision: 'approve', token: body.token }
  await spine.post(`/approvals/${asked.id}/decision`, decision, { token: spine.tokens.approver })
  await spine.until('its end', async () => {
    const { status } = await spine.get<{ status: string }>(`/incidents/${asked.incidentId}`)
    return status === 'escalated'
  })
  const told = model.requests.find(({ messages }) => messages.filter(({ role }) => role === 'assistant').length === 2)
  return (
    JSON.stringify(told?.messages.slice(2))
      .replaceAll(/(inc|alr|msg)_[0-9a-z]{26}/g, '$1_X')
      .replaceAll(shard, 'web-X')
      // A postcondition may be looked at once more on a busy machine, which is one row more.
      .replaceAll(/seq\\":\d+/g, 'seq\\":N')
      .replaceAll(/seq \d+/g, 'seq N')
      // The clock, which a result says where its minute is another one, and what is left of the
      // limits: a wait and longer ids change both.
      .replaceAll(/(,?)\\"(at|budget)\\":\\"[^"\\]*\\"/g, '')
      .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, 'TIME')
  )
}

test('after a wait over a dead worker the model reads exactly what it would have read without it', async () => {
  const prompt = await afterDecision('web-osl-1', async () => {})
  const waited = await afterDecision('web-osl-2', async () => {
    const startedAt = async () => (await spine.get<{ workerStartedAt: string }>('/config/environment')).workerStartedAt
    const before = await startedAt()
    await spine.kill('worker')
    await spine.start('worker')
    await spine.until('another worker', async () => (await startedAt()) !== before)
  })
  expect(prompt).toContain('verification')
  expect(waited).toBe(prompt)
})

/** The two questions of one answer, the first of its card first. */
async function askedTogether(shard: string, other: string): Promise<[Approval, Approval]> {
  besides = other
  await spine.lab.break('service_down', shard)
  const items = await spine.until('both questions', async () => {
    const pending = (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items
    return pending.length === 2 && pending
  })
  const of = (id: string) => items.find(({ targets }) => targets[0]?.id === id) as Approval
  return [of(shard), of(other)]
}

async function say(approval: Approval, decision: 'approve' | 'deny') {
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision }, as)
  return await spine.post(`/approvals/${approval.id}/decision`, { decision, token: body.token }, as)
}

/** A run has done what its last signal made it do once a task after that signal is completed. */
async function hasHeard({ incidentId, attempt }: Approval): Promise<boolean> {
  const { events } = await spine.client.workflow.getHandle(`investigate:${incidentId}:${attempt}`).fetchHistory()
  const lastOf = (kind: 'workflowExecutionSignaledEventAttributes' | 'workflowTaskCompletedEventAttributes') =>
    (events ?? []).findLastIndex((event) => event[kind])
  const heard = lastOf('workflowExecutionSignaledEventAttributes')
  return heard >= 0 && lastOf('workflowTaskCompletedEventAttributes') > heard
}

async function rowsAtTheEnd({ incidentId }: Approval): Promise<IncidentEvent[]> {
  await spine.until('its end', async () => {
    const { status } = await spine.get<{ status: string }>(`/incidents/${incidentId}`)
    return status === 'escalated'
  })
  return await spine.events(incidentId)
}

const ran = (events: IncidentEvent[]) =>
  events.flatMap((event) =>
    event.kind === 'tool_started' && event.metadata.effect === 'write' ? [event.metadata.arguments.id] : [],
  )

test('the writes of one answer are asked about on one card, and an early approval is used when its turn comes', async () => {
  const [first, second] = await askedTogether('web-osl-3', 'web-ams-1')
  expect([first.askedWith, second.askedWith]).toEqual([first.id, first.id])
  const { together, next } = await spine.get<ApprovalDetail>(`/approvals/${first.id}`)
  expect([together.map(({ id }) => id), next]).toEqual([[second.id], []])
  // The later one first: it waits for its turn all the same.
  expect((await say(second, 'approve')).body).toMatchObject({ status: 'approved' })
  await spine.until('its run to hear of it', () => hasHeard(first))
  expect(ran(await spine.events(first.incidentId))).toEqual([])
  await say(first, 'approve')
  const events = await rowsAtTheEnd(first)
  expect(ran(events)).toEqual(['web-osl-3', 'web-ams-1'])
  expect(events.filter(({ kind }) => kind === 'approval_requested')).toHaveLength(2)
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [] })
})

test('each write on one card is decided by itself', async () => {
  const [first, second] = await askedTogether('web-osl-4', 'web-ams-2')
  await say(first, 'deny')
  // People are notified of the second when its turn comes, and only then.
  const announced = async () =>
    (await spine.db.selectFrom('approval').select('announced').where('id', '=', second.id).executeTakeFirst())
      ?.announced
  expect(await announced()).toBe(false)
  await say(first, 'deny')
  await spine.until('the turn of the second', announced)
  expect(await spine.get(`/incidents/${first.incidentId}`)).toMatchObject({ status: 'awaiting_approval' })
  await say(second, 'approve')
  expect(ran(await rowsAtTheEnd(first))).toEqual(['web-ams-2'])
})
