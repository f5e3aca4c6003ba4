import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { emptyMemory, type Memory, tally } from '../../safety/tally.ts'
import { row } from '../support/events.ts'

const words = { tools: new Set(['converge_shard', 'get_shard', 'exec']), provider: 'models.example:8000' }
const counted = (event: IncidentEvent, memory: Memory = emptyMemory()) =>
  tally(event, memory, words).map(({ counter, labels }) => [counter, labels])

const judged = (metadata: Record<string, unknown>, more: { attempt?: number } = {}): IncidentEvent =>
  row(
    'call_judged',
    { callId: 'c1_0', tool: 'exec', arguments: {}, effect: 'write', phase: 'READING', ...metadata } as never,
    more,
  )
const finished = (tool: string, more: { attempt?: number; ok?: boolean } = {}): IncidentEvent =>
  row('tool_finished', { callId: 'c2_0', tool, result: { ok: more.ok ?? true, meta: {} } }, more)

describe('a turn of the model', () => {
  test.each([
    ['json:stop', 'json'],
    ['stop', 'native'],
    ['stopped by json:', 'native'],
  ])('that ended by %j counts as %s', (finishReason, protocol) => {
    expect(counted(row('model_answered', { finishReason, model: 'Qwen/Qwen2.5 72B' }))).toEqual([
      ['agentic_iterations', { provider: 'models.example:8000', model: 'Qwen/Qwen2.5_72B', protocol }],
    ])
  })
})

describe('a correction', () => {
  test('for a claim in plain words is a phantom, any other is none', () => {
    expect(counted(row('correction_sent', { code: 'phantom_claim', text: '' }))).toEqual([
      ['phantom_detected', { provider: 'models.example:8000', model: 'unknown', where: 'prose' }],
    ])
    expect(counted(row('correction_sent', { code: 'malformed_json', text: '' }))).toEqual([])
  })

  test('of a call by code is counted under what was wrong, and is an attempt to recover', () => {
    const memory = emptyMemory()
    const corrected = [
      { code: 'ROUTING_MISMATCH', field: 'target', from: 'a', to: 'b' },
      { code: 'UNBOUNDED_COMMAND', field: 'command', from: 'a', to: 'b' },
    ]
    expect(counted(judged({ verdict: 'run', code: 'READ_COMMAND', corrected }), memory)).toEqual([
      ['judgements', { verdict: 'run', code: 'READ_COMMAND' }],
      ['routing_mismatch_block', { tool: 'exec', target_kind: 'host', child_kind: 'unknown' }],
      ['auto_recovery_attempt', { code: 'ROUTING_MISMATCH', tool: 'exec' }],
      ['auto_recovery_attempt', { code: 'UNBOUNDED_COMMAND', tool: 'exec' }],
    ])
    expect(counted(finished('exec'), memory)).toEqual([
      ['auto_recovery_success', { code: 'ROUTING_MISMATCH', tool: 'exec' }],
      ['auto_recovery_success', { code: 'UNBOUNDED_COMMAND', tool: 'exec' }],
    ])
  })
})

describe('a refusal', () => {
  test.each<[string, Record<string, unknown>, [string, Record<string, string>][]]>([
    [
      'before an open verification',
      { code: 'FSM_BLOCKED', phase: 'VERIFYING' },
      [
        ['fsm_tool_block', { phase: 'VERIFYING', tool: 'exec' }],
        ['auto_recovery_attempt', { code: 'FSM_BLOCKED', tool: 'exec' }],
      ],
    ],
    [
      'of an ending before one',
      { code: 'FSM_BLOCKED', phase: 'VERIFYING', effect: 'terminal' },
      [
        ['fsm_final_block', { phase: 'VERIFYING', code: 'FSM_BLOCKED' }],
        ['auto_recovery_attempt', { code: 'FSM_BLOCKED', tool: 'exec' }],
      ],
    ],
    [
      'of a host where a guest was meant',
      { code: 'ROUTING_MISMATCH' },
      [
        ['routing_mismatch_block', { tool: 'exec', target_kind: 'host', child_kind: 'unknown' }],
        ['auto_recovery_attempt', { code: 'ROUTING_MISMATCH', tool: 'exec' }],
      ],
    ],
    [
      'of a name that means two things',
      { code: 'AMBIGUOUS_NAME' },
      [
        ['strict_resolution_block', { tool: 'exec', code: 'AMBIGUOUS_NAME' }],
        ['auto_recovery_attempt', { code: 'AMBIGUOUS_NAME', tool: 'exec' }],
      ],
    ],
    ['that nothing gets past', { code: 'PAUSED' }, []],
    [
      'in a phase of tomorrow',
      { code: 'PAUSED', effect: 'terminal', phase: undefined },
      [['fsm_final_block', { phase: 'unknown', code: 'PAUSED' }]],
    ],
  ])('%s counts as just that', (_title, metadata, expected) => {
    const code = String(metadata.code)
    expect(counted(judged({ verdict: 'refuse', ...metadata }))).toEqual([
      ['judgements', { verdict: 'refuse', code }],
      ...expected,
    ])
  })

  test('is one by its verdict, not by its code', () => {
    expect(counted(judged({ verdict: 'ask', code: 'PHANTOM_CLAIM' }))).toEqual([
      ['judgements', { verdict: 'ask', code: 'unknown' }],
    ])
    expect(counted(judged({ verdict: 'perhaps', code: 'READ' }))).toEqual([
      ['judgements', { verdict: 'unknown', code: 'READ' }],
    ])
  })
})

describe('what is pending', () => {
  const refused = judged({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })

  test.each<[string, IncidentEvent, number]>([
    ['by a success of the same tool', finished('exec'), 1],
    ['not by one of another', finished('get_shard'), 0],
    ['not by a failure', finished('exec', { ok: false }), 0],
    ['not by a success in another attempt', finished('exec', { attempt: 2 }), 0],
  ])('is recovered %s', (_title, event, successes) => {
    const memory = emptyMemory()
    counted(refused, memory)
    expect(counted(event, memory)).toHaveLength(successes)
    expect(memory.recovering.size).toBe(1 - successes)
  })

  test.each(['resolved', 'escalated', 'cancelled'] as const)('is forgotten when its incident is %s', (kind) => {
    const memory = emptyMemory()
    memory.recovering.set('inc_other 1 exec STRICT_RESOLUTION', 'STRICT_RESOLUTION')
    counted(refused, memory)
    expect(counted(row(kind, {} as never), memory)).toEqual([])
    expect([...memory.recovering.keys()]).toEqual(['inc_other 1 exec STRICT_RESOLUTION'])
  })

  test('stays while its incident goes on', () => {
    const memory = emptyMemory()
    counted(refused, memory)
    expect(counted(row('commented', { text: 'x' }), memory)).toEqual([])
    expect(memory.recovering.size).toBe(1)
  })
})

describe('a host where a guest was meant', () => {
  test.each<[string, Record<string, unknown>, string, string]>([
    [
      'and the call was refused',
      {
        verdict: 'refuse',
        code: 'ROUTING_MISMATCH',
        targets: [{ kind: 'node', id: 'delly' }],
        details: { field: 'on', host: 'delly', more_specific: ['vm:delly:141'], target: 'vm:delly:141' },
      },
      'node',
      'vm',
    ],
    [
      'and code put the call right',
      {
        verdict: 'run',
        code: 'READ',
        targets: [{ kind: 'vm', id: '141' }],
        corrected: [{ code: 'ROUTING_MISMATCH', field: 'on', from: 'delly', to: '141' }],
      },
      'host',
      'vm',
    ],
    [
      'in a row that tells something else',
      { verdict: 'refuse', code: 'ROUTING_MISMATCH', targets: [], details: { target: '<b>:x' } },
      'host',
      'unknown',
    ],
  ])('%s is counted by both kinds', (_title, metadata, target_kind, child_kind) => {
    const labels = { tool: 'exec', target_kind, child_kind }
    expect(counted(judged(metadata))).toContainEqual(['routing_mismatch_block', labels])
  })
})

test('a phantom is counted under the model that answered last, until its incident ends', () => {
  const memory = emptyMemory()
  const phantom = row('correction_sent', { code: 'phantom_claim', text: '' })
  counted(row('model_answered', { finishReason: 'stop', model: 'glm-5' }), memory)
  const of = (model: string) => [['phantom_detected', { provider: 'models.example:8000', model, where: 'prose' }]]
  expect(counted(phantom, memory)).toEqual(of('glm-5'))
  counted(row('resolved', {} as never), memory)
  expect(counted(phantom, memory)).toEqual(of('unknown'))
})

test('what is remembered of incidents that never end has a limit', () => {
  const memory = emptyMemory()
  for (let incident = 0; incident < 2_100; incident += 1) {
    counted({ ...row('model_answered', { finishReason: 'stop', model: 'm' }), incidentId: `inc_${incident}` }, memory)
  }
  expect(memory.models.size).toBe(2_000)
  expect(memory.models.has('inc_2099')).toBe(true)
})

test('a security event is counted by its word', () => {
  const event = row('security_event', { code: 'FORGED_RUN', door: '', subject: '', detail: '' })
  expect(counted(event)).toEqual([['security_events', { code: 'FORGED_RUN' }]])
})
