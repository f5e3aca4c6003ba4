import { expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { emptyMemory, type Memory, safetyLabels, tally } from '../../safety/tally.ts'
import { live } from '../simulation/life.ts'
import { facts } from '../simulation/platform.ts'
import { row } from '../support/events.ts'

const words = { tools: new Set(facts.keys()), provider: 'models.example:8000' }
const judged = (metadata: Record<string, unknown>): IncidentEvent =>
  row('call_judged', { callId: 'c1_0', tool: 'converge_shard', arguments: {}, effect: 'write', ...metadata } as never)
const counted = (event: IncidentEvent, memory: Memory = emptyMemory()) =>
  tally(event, memory, words).map(({ counter, labels }) => `${counter} ${Object.values(labels).join(' ')}`)

test.each([
  [
    'a write in front of an open verification',
    { verdict: 'refuse', code: 'FSM_BLOCKED', phase: 'VERIFYING' },
    'fsm_tool_block VERIFYING converge_shard',
  ],
  [
    'a resolution in front of one',
    { verdict: 'refuse', code: 'FSM_BLOCKED', phase: 'VERIFYING', effect: 'terminal' },
    'fsm_final_block VERIFYING FSM_BLOCKED',
  ],
  [
    'what was never looked up',
    { verdict: 'refuse', code: 'STRICT_RESOLUTION', phase: 'RESOLVING' },
    'strict_resolution_block converge_shard STRICT_RESOLUTION',
  ],
  [
    'a host where a guest was meant',
    { verdict: 'refuse', code: 'ROUTING_MISMATCH' },
    'routing_mismatch_block converge_shard host unknown',
  ],
  [
    'a claim without a row',
    { verdict: 'refuse', code: 'PHANTOM_CLAIM', effect: 'terminal' },
    'phantom_detected models.example:8000 unknown claim',
  ],
  ['a judgement', { verdict: 'run', code: 'READ' }, 'judgements run READ'],
])('%s is counted', (_title, metadata, expected) => {
  expect(counted(judged(metadata))).toContain(expected)
})

test('a refusal the same tool got past is a recovery, and counted once', () => {
  const memory = emptyMemory()
  expect(counted(judged({ verdict: 'refuse', code: 'STRICT_RESOLUTION' }), memory)).toContain(
    'auto_recovery_attempt STRICT_RESOLUTION converge_shard',
  )
  const done = row('tool_finished', { callId: 'c2_0', tool: 'converge_shard', result: { ok: true, meta: {} } })
  expect(counted(done, memory)).toEqual(['auto_recovery_success STRICT_RESOLUTION converge_shard'])
  expect(counted(done, memory)).toEqual([])
})

test('what is pending is forgotten when the incident ends', () => {
  const memory = emptyMemory()
  counted(judged({ verdict: 'refuse', code: 'STRICT_RESOLUTION' }), memory)
  counted(row('escalated', { reason: '', code: '', severity: 'info' }), memory)
  expect(memory.recovering.size).toBe(0)
})

test('no word of a model or an alert becomes a label', () => {
  const hostile = judged({ tool: 'x{evil="1"}', verdict: 'refuse', code: 'MADE_UP', phase: '<b>' })
  expect(counted(hostile)).toEqual(['judgements refuse other'])
  const spoken = row('security_event', { code: 'whatever', door: '', subject: '', detail: '' })
  expect(counted(spoken)).toEqual(['security_events unknown'])
})

test('every label of whole lives is among those a counter declares', async () => {
  const memory = emptyMemory()
  const seen = new Set<string>()
  for (let seed = 0; seed < 200; seed += 1) {
    for (const incident of (await live(seed)).world.incidents.values()) {
      for (const event of incident.rows) {
        for (const { counter, labels } of tally(event, memory, words)) {
          expect(Object.keys(labels).sort()).toEqual([...safetyLabels[counter]].sort())
          seen.add(counter)
        }
      }
    }
  }
  expect([...seen].sort()).toEqual(Object.keys(safetyLabels).sort())
})
