import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { IncidentTrust, PairHistory } from '../../domain/trust.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'], environment: { AGENT_TRUST: 'shadow' } })
})
afterAll(() => spine?.stop())

test('in shadow the agent repairs nothing and asks nobody, and people get the incident with what it would have done', async () => {
  await spine.lab.break('service_down', 'web-osl-1')
  const { id } = await spine.incident('service_down', 'escalated')
  const events = await spine.events(id)
  expect(events.filter(({ kind }) => kind === 'approval_requested')).toEqual([])
  expect(
    events.filter(
      ({ kind, metadata }) => kind === 'tool_started' && 'effect' in metadata && metadata.effect === 'write',
    ),
  ).toEqual([])
  expect((await spine.lab.effects()).filter(({ request }) => request.includes('converge'))).toEqual([])
  const { shadow } = await spine.get<IncidentTrust>(`/incidents/${id}/trust`)
  expect(shadow).toMatchObject([{ tool: 'converge_shard', would: 'run', grade: null }])
  expect(shadow[0]?.summary).toBeTruthy()

  const call = { callId: shadow[0]?.callId, attempt: shadow[0]?.attempt }
  const as = { token: spine.tokens.approver }
  expect((await spine.post(`/incidents/${id}/grade`, { verdict: 'right', call }, as)).status).toBe(200)
  const pair = () => spine.get<PairHistory>('/trust/service_down/converge_shard')
  const { seen, record } = await pair()
  expect(record).toMatchObject({ proposed: 1, shadowed: 1, right: 1, ran: 0 })
  const promotion = { to: 'act', reason: 'it was right', seen }
  expect(
    (await spine.post('/trust/service_down/converge_shard', promotion, { token: spine.tokens.agent })).status,
  ).toBe(403)
  expect((await spine.post('/trust/service_down/converge_shard', promotion, as)).status).toBe(200)

  await spine.lab.heal()
  await spine.lab.break('service_down', 'web-ams-1')
  const repaired = await spine.incident('service_down', 'resolved')
  expect(await spine.events(repaired.id)).toContainEqual(expect.objectContaining({ kind: 'verification' }))
  expect((await pair()).record).toMatchObject({ ran: 1, held: 1, lasted: 1 })
  expect((await spine.get<{ differences: unknown[] }>('/verify?limit=100')).differences).toEqual([])
})
