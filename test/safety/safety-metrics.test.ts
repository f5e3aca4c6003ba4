import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { countSafetyEvents, emptyMemory, type MetricsMemory, safetyLabels } from '../../safety/safety-metrics.ts'
import { live } from '../simulation/life.ts'
import { facts } from '../simulation/world.ts'
import { partOfRow, row } from '../support/events.ts'

const words = { tools: new Set(facts.keys()), provider: 'models.example:8000' }
const judged = (metadata: Record<string, unknown>): IncidentEvent =>
  partOfRow('call_judged', { callId: 'c1_0', tool: 'converge_shard', arguments: {}, effect: 'write', ...metadata })
const counted = (event: IncidentEvent, memory: MetricsMemory = emptyMemory()) =>
  countSafetyEvents(event, memory, words).map(({ counter, labels }) => `${counter} ${Object.values(labels).join(' ')}`)

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

test('a refusal after which the same tool succeeded is a recovery, and counted once', () => {
  const memory = emptyMemory()
  expect(counted(judged({ verdict: 'refuse', code: 'STRICT_RESOLUTION' }), memory)).toContain(
    'auto_recovery_attempt STRICT_RESOLUTION converge_shard',
  )
  const done = row('tool_finished', { callId: 'c2_0', tool: 'converge_shard', result: { ok: true, meta: {} } })
  expect(counted(done, memory)).toEqual(['auto_recovery_success STRICT_RESOLUTION converge_shard'])
  expect(counted(done, memory)).toEqual([])
})

test('a pending refusal is forgotten when the incident ends', () => {
  const memory = emptyMemory()
  counted(judged({ verdict: 'refuse', code: 'STRICT_RESOLUTION' }), memory)
  counted(row('escalated', { reason: '', code: '', severity: 'info' }), memory)
  expect(memory.recovering.size).toBe(0)
})

test('no text of a model or an alert becomes a label', () => {
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
        for (const { counter, labels } of countSafetyEvents(event, memory, words)) {
          expect(Object.keys(labels).sort()).toEqual([...safetyLabels[counter]].sort())
          seen.add(counter)
        }
      }
    }
  }
  expect([...seen].sort()).toEqual(Object.keys(safetyLabels).sort())
})

const edgeWords = { tools: new Set(['converge_shard', 'get_shard', 'exec']), provider: 'models.example:8000' }
const countedPairs = (event: IncidentEvent, memory: MetricsMemory = emptyMemory()) =>
  countSafetyEvents(event, memory, edgeWords).map(({ counter, labels }) => [counter, labels])

const judgedExec = (metadata: Record<string, unknown>, more: { attempt?: number } = {}): IncidentEvent =>
  partOfRow(
    'call_judged',
    { callId: 'c1_0', tool: 'exec', arguments: {}, effect: 'write', phase: 'READING', ...metadata },
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
    expect(countedPairs(row('model_answered', { finishReason, model: 'Qwen/Qwen2.5 72B' }))).toEqual([
      ['agentic_iterations', { provider: 'models.example:8000', model: 'Qwen/Qwen2.5_72B', protocol }],
    ])
  })
})

describe('a correction', () => {
  test('for a claim in prose is a phantom, and any other is none', () => {
    expect(countedPairs(row('correction_sent', { code: 'phantom_claim', text: '' }))).toEqual([
      ['phantom_detected', { provider: 'models.example:8000', model: 'unknown', where: 'prose' }],
    ])
    expect(countedPairs(row('correction_sent', { code: 'malformed_json', text: '' }))).toEqual([])
  })

  test('of a call by code is counted under the error, and is an attempt to recover', () => {
    const memory = emptyMemory()
    const corrected = [
      { code: 'ROUTING_MISMATCH', field: 'target', from: 'a', to: 'b' },
      { code: 'UNBOUNDED_COMMAND', field: 'command', from: 'a', to: 'b' },
    ]
    expect(countedPairs(judgedExec({ verdict: 'run', code: 'READ_COMMAND', corrected }), memory)).toEqual([
      ['judgements', { verdict: 'run', code: 'READ_COMMAND' }],
      ['routing_mismatch_block', { tool: 'exec', target_kind: 'host', child_kind: 'unknown' }],
      ['auto_recovery_attempt', { code: 'ROUTING_MISMATCH', tool: 'exec' }],
      ['auto_recovery_attempt', { code: 'UNBOUNDED_COMMAND', tool: 'exec' }],
    ])
    expect(countedPairs(finished('exec'), memory)).toEqual([
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
    expect(countedPairs(judgedExec({ verdict: 'refuse', ...metadata }))).toEqual([
      ['judgements', { verdict: 'refuse', code }],
      ...expected,
    ])
  })

  test('counts by its verdict, not by its code', () => {
    expect(countedPairs(judgedExec({ verdict: 'ask', code: 'PHANTOM_CLAIM' }))).toEqual([
      ['judgements', { verdict: 'ask', code: 'unknown' }],
    ])
    expect(countedPairs(judgedExec({ verdict: 'perhaps', code: 'READ' }))).toEqual([
      ['judgements', { verdict: 'unknown', code: 'READ' }],
    ])
  })
})

describe('a pending refusal', () => {
  const refused = judgedExec({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })

  test.each<[string, IncidentEvent, number]>([
    ['by a success of the same tool', finished('exec'), 1],
    ['not by one of another', finished('get_shard'), 0],
    ['not by a failure', finished('exec', { ok: false }), 0],
    ['not by a success in another attempt', finished('exec', { attempt: 2 }), 0],
  ])('is recovered %s', (_title, event, successes) => {
    const memory = emptyMemory()
    countedPairs(refused, memory)
    expect(countedPairs(event, memory)).toHaveLength(successes)
    expect(memory.recovering.size).toBe(1 - successes)
  })

  test.each(['resolved', 'escalated', 'cancelled'] as const)('is forgotten when its incident is %s', (kind) => {
    const memory = emptyMemory()
    memory.recovering.set('inc_other 1 exec STRICT_RESOLUTION', 'STRICT_RESOLUTION')
    countedPairs(refused, memory)
    expect(countedPairs(partOfRow(kind, {}), memory)).toEqual([])
    expect([...memory.recovering.keys()]).toEqual(['inc_other 1 exec STRICT_RESOLUTION'])
  })

  test('stays while its incident goes on', () => {
    const memory = emptyMemory()
    countedPairs(refused, memory)
    expect(countedPairs(row('commented', { text: 'x' }), memory)).toEqual([])
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
    expect(countedPairs(judgedExec(metadata))).toContainEqual(['routing_mismatch_block', labels])
  })
})

test('a phantom is counted under the model that answered last, until its incident ends', () => {
  const memory = emptyMemory()
  const phantom = row('correction_sent', { code: 'phantom_claim', text: '' })
  countedPairs(row('model_answered', { finishReason: 'stop', model: 'glm-5' }), memory)
  const of = (model: string) => [['phantom_detected', { provider: 'models.example:8000', model, where: 'prose' }]]
  expect(countedPairs(phantom, memory)).toEqual(of('glm-5'))
  countedPairs(partOfRow('resolved', {}), memory)
  expect(countedPairs(phantom, memory)).toEqual(of('unknown'))
})

test('memory of incidents that never end has a limit', () => {
  const memory = emptyMemory()
  for (let incident = 0; incident < 2_100; incident += 1) {
    countedPairs(
      { ...row('model_answered', { finishReason: 'stop', model: 'm' }), incidentId: `inc_${incident}` },
      memory,
    )
  }
  expect(memory.models.size).toBe(2_000)
  expect(memory.models.has('inc_2099')).toBe(true)
})

test('a security event is counted by its word', () => {
  const event = row('security_event', { code: 'FORGED_RUN', door: '', subject: '', detail: '' })
  expect(countedPairs(event)).toEqual([['security_events', { code: 'FORGED_RUN' }]])
})
