import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { IncidentTrust } from '../../domain/trust.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'], environment: { AGENT_TRUST: 'propose' } })
})
afterAll(() => spine?.stop())

test('a stop while a question waits withdraws it: nothing is written, and the escalation names the person who stopped it', async () => {
  await spine.lab.break('service_down', 'web-osl-1')
  const { id } = await spine.incident('service_down', 'awaiting_approval')
  const as = { token: spine.tokens.approver }
  const body = { type: 'service_down', reason: 'we rebuild the web hosts' }
  const stopped = await spine.post('/stops', body, as)
  expect(stopped.status).toBe(201)
  await spine.incident('service_down', 'escalated')
  const events = await spine.events(id)
  expect(events.find(({ kind }) => kind === 'approval_withdrawn')?.detail).toContain('stopped by approver')
  expect(
    events.filter(
      ({ kind, metadata }) => kind === 'tool_started' && 'effect' in metadata && metadata.effect === 'write',
    ),
  ).toEqual([])
  expect((await spine.lab.effects()).filter(({ request }) => request.includes('converge'))).toEqual([])
  expect((await spine.get<IncidentTrust>(`/incidents/${id}/trust`)).shadow).toMatchObject([
    { tool: 'converge_shard', grade: null },
  ])
  expect((await spine.get<{ differences: unknown[] }>('/verify?limit=100')).differences).toEqual([])
})
