import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import { type ChatRequest, type Said, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let model: ScriptedModel
let spine: Spine

/** Looks, wants a repair that needs a person, and hands over: the same words for every incident. */
function script(_turn: number, { messages }: ChatRequest): Said[] {
  const text = messages.map(({ content }) => content ?? '').join('\n')
  const incident = /inc_[0-9a-z]{26}/.exec(text)?.[0] ?? ''
  const shard = /web-osl-\d/.exec(text)?.[0] ?? ''
  const answers = messages.filter(({ role }) => role === 'assistant').length
  if (answers === 0) return [{ tool: 'get_shard', arguments: { id: shard } }]
  if (answers === 1) return [{ tool: 'converge_shard', arguments: { id: shard, reason: 'a service is down' } }]
  return [{ tool: 'escalate_incident', arguments: { id: incident, reason: 'a person should look at the cause' } }]
}

beforeAll(async () => {
  model = await scriptedModel(script)
  spine = await startSpine({
    parts: ['lab', 'api', 'worker'],
    environment: { LLM_BASE_URL: model.url, LAB_WEB_SHARDS: '4' },
  })
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'high')`.execute(spine.db)
}, 300_000)
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
      .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, 'TIME')
  )
}

test('after a wait over a dead worker the model reads what it would have read without, byte for byte', async () => {
  const prompt = await afterDecision('web-osl-1', async () => {})
  const waited = await afterDecision('web-osl-2', async () => {
    await spine.kill('worker')
    await spine.start('worker')
    await new Promise((resolve) => setTimeout(resolve, 2_000))
  })
  expect(prompt).toContain('verification')
  expect(waited).toBe(prompt)
}, 300_000)
