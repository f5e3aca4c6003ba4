import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { fold, phaseOf } from '../../safety/fold.ts'
import { logOf, looked, partOfRow, row, verified, wrote } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const judged = (callId: string, code: string, more: Record<string, unknown> = {}) =>
  partOfRow('call_judged', {
    callId,
    tool: 'converge_shard',
    arguments: { id: callId },
    verdict: 'refuse',
    code,
    ...more,
  })

describe('the phase', () => {
  test.each<[string, IncidentEvent[], string]>([
    ['begins with nothing known', [], 'RESOLVING'],
    ['is reading once something was looked up', [looked('c1_0', [shard])], 'READING'],
    [
      'is verifying from the moment a write may have left',
      [looked('c1_0', [shard]), wrote('c2_0', [shard])],
      'VERIFYING',
    ],
    [
      'stays so while its target cannot be read',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'open')],
      'VERIFYING',
    ],
    [
      "stays so when another call's verification closes",
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c1_0', 'held')],
      'VERIFYING',
    ],
    [
      'is reading again when it held',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'held')],
      'READING',
    ],
    [
      'is reading again when nothing could prove it',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'unproven')],
      'READING',
    ],
    [
      'is reading again when it did not',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'not_held')],
      'READING',
    ],
  ])('%s', (_title, rows, expected) => {
    expect(phaseOf(fold(logOf(...rows), 1))).toBe(expected)
  })

  test('a hundred blocked attempts do not weaken the gate', () => {
    const tries = Array.from({ length: 100 }, (_, n) => judged(`c${n + 3}_0`, 'FSM_BLOCKED'))
    const state = fold(logOf(looked('c1_0', [shard]), wrote('c2_0', [shard]), ...tries), 1)
    expect(phaseOf(state)).toBe('VERIFYING')
  })

  test('a failed write waits to be read like any other', () => {
    const failed = row('tool_finished', {
      callId: 'c2_0',
      tool: 'converge_shard',
      effect: 'write',
      outcome: 'failed',
      targets: [shard],
      result: { ok: false, meta: {} },
      discovered: [],
      body: null,
    })
    expect(phaseOf(fold(logOf(looked('c1_0', [shard]), wrote('c2_0', [shard]), failed), 1))).toBe('VERIFYING')
  })
})

test('each write is known with its targets and with the row that closed it', () => {
  const rows = [wrote('c2_0', [shard]), verified('c2_0', 'open'), verified('c2_0', 'unproven'), wrote('c3_0', [shard])]
  const write = { tool: 'converge_shard', arguments: {}, targets: [shard], touchesMonitoring: false }
  const untold = { changed: null, illBefore: [], laterAlerts: [], hasEndedAlert: false }
  expect(fold(logOf(...rows), 1).writes).toEqual([
    { ...write, ...untold, callId: 'c2_0', startedSeq: 1, verified: 'unproven', verifiedSeq: 3 },
    { ...write, ...untold, callId: 'c3_0', startedSeq: 4, verified: 'open', verifiedSeq: null },
  ])
})

test('an error after which the same tool succeeded is counted as recovered, and another stays pending', () => {
  const done = row('tool_finished', {
    callId: 'c4_0',
    tool: 'converge_shard',
    effect: 'write',
    outcome: 'done',
    targets: [],
    result: { ok: true, meta: {} },
    discovered: [],
    body: null,
  })
  const state = fold(logOf(judged('c1_0', 'STRICT_RESOLUTION'), done, judged('c5_0', 'FSM_BLOCKED')), 1)
  expect(state.recoveries).toEqual({ attempted: 2, succeeded: 1 })
  expect([...state.recovering]).toEqual([['converge_shard', 'FSM_BLOCKED']])
})

test('a notice that a limit is near is no correction, and occurs once', () => {
  const near = row('correction_sent', { code: 'budget_turns', text: '' })
  const real = row('correction_sent', { code: 'malformed_json', text: '' })
  const state = fold(logOf(near, real), 1)
  expect(state).toMatchObject({ corrections: 1, correctionsInARow: 1 })
  expect(state.corrected.has('budget_turns')).toBe(true)
})

test('the time of a run leaves out the time in which people decided', () => {
  const claimed = row('claimed', { config: {} }, { atSeconds: 0 })
  const asked = row('approval_requested', { approvalId: 'a' }, { atSeconds: 60 })
  const of = { approvalId: 'a', decision: 'approve' as const }
  const vote = row('approval_decided', { ...of, status: 'pending' }, { atSeconds: 500 })
  const decided = row('approval_decided', { ...of, status: 'approved' }, { atSeconds: 660 })
  const after = row('commented', { text: '' }, { atSeconds: 670 })
  expect(fold(logOf(claimed, asked, vote, decided, after), 1).workedMs).toBe(70_000)
})

test('while a call of a card runs, the question about the next one is no waiting time', () => {
  const write = { callId: 'c1_0', tool: 'converge_shard', effect: 'write' as const, targets: [], arguments: {} }
  const log = logOf(
    row('claimed', { config: {} }, { atSeconds: 0 }),
    row('approval_requested', { approvalId: 'a' }, { atSeconds: 60 }),
    row('approval_requested', { approvalId: 'b' }, { atSeconds: 60 }),
    row('approval_decided', { approvalId: 'a', decision: 'approve', status: 'approved' }, { atSeconds: 160 }),
    row('tool_started', write, { atSeconds: 161 }),
    row(
      'tool_finished',
      { ...write, outcome: 'done', result: { ok: true, meta: {} }, discovered: [], body: null },
      { atSeconds: 171 },
    ),
    row('verification', { callId: 'c1_0', tool: 'converge_shard', writeSeq: 5, outcome: 'held' }, { atSeconds: 181 }),
    row('approval_decided', { approvalId: 'b', decision: 'deny', status: 'denied' }, { atSeconds: 481 }),
    row('commented', { text: '' }, { atSeconds: 491 }),
  )
  // 60 s before the question, 20 s of the call with its verification, 10 s after the second answer.
  expect(fold(log, 1).workedMs).toBe(90_000)
})

test('bytes are counted from bodies and from rows', () => {
  const big = { ...looked('c1_0', [shard]) } as IncidentEvent<'tool_finished'>
  big.metadata = { ...big.metadata, body: { digest: 'd', bytes: 50_000, head: '', tail: '' } }
  const small = looked('c2_0', [shard]) as IncidentEvent<'tool_finished'>
  const bytes = 50_000 + JSON.stringify(small.metadata.result.data).length
  expect(fold(logOf(big, small), 1).bytes).toBe(bytes)
})

test('any prefix of any order of rows folds, and equal rows give equal states', () => {
  const rows = [
    looked('c1_0', [shard]),
    wrote('c2_0', [shard]),
    verified('c2_0', 'held'),
    verified('c9_0', 'open'),
    judged('c3_0', 'REPEATED_CALL'),
    judged('c4_0', 'A_CODE_OF_TOMORROW'),
    row('approval_requested', { approvalId: 'a' }),
    row('approval_decided', { decision: 'deny', status: 'denied', actionDigest: 'd' }),
    row('correction_sent', { code: 'x', text: '' }),
    partOfRow('resolved', {}),
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...rows), { maxLength: 30 }), (some) => {
      expect(fold(logOf(...some), 1)).toEqual(fold(logOf(...some), 1))
    }),
    { numRuns: 500 },
  )
})
