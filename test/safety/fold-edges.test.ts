import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { fold } from '../../safety/fold.ts'
import { logOf, looked, partOfRow, row, verified, wrote } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const folded = (...rows: IncidentEvent[]) => fold(logOf(...rows), 1)

const judged = (callId: string, more: Record<string, unknown> = {}) =>
  partOfRow('call_judged', {
    callId,
    tool: 'get_shard',
    arguments: { id: callId },
    verdict: 'run',
    code: 'READ',
    ...more,
  })

const finished = (more: Record<string, unknown>) =>
  partOfRow('tool_finished', {
    callId: 'c1_0',
    tool: 'get_shard',
    effect: 'read',
    targets: [shard],
    result: { ok: true, data: {}, meta: {} },
    body: null,
    discovered: [],
    ...more,
  })

describe('evidence', () => {
  test('is the alert, in each attempt, and each success of this attempt', () => {
    const alert = row('alert_received', {}, { attempt: 0 })
    const other = looked('c1_0', [shard], { attempt: 1 })
    const noted = row('commented', { text: 'x' }, { attempt: 2 })
    const own = looked('c2_0', [shard], { attempt: 2 })
    expect([...fold(logOf(alert, other, noted, own), 2).evidence]).toEqual([1, 4])
  })

  test('is also a failed look-up, which shows that it failed and read nothing', () => {
    const state = folded(finished({ result: { ok: false, meta: {} } }))
    expect(state).toMatchObject({ diagnostics: 1, reads: 0 })
    expect([[...state.evidence], [...state.lookedAt]]).toEqual([[1], []])
  })

  test('is also a successful write, although it read nothing', () => {
    const state = folded(finished({ effect: 'write' }))
    expect(state).toMatchObject({ diagnostics: 0, reads: 0 })
    expect([...state.evidence]).toEqual([1])
    expect([...state.lookedAt]).toEqual([])
  })

  test('is the result of a resolve, which is a read', () => {
    expect(folded(finished({ effect: 'resolve' }), finished({}))).toMatchObject({ diagnostics: 2, reads: 2 })
  })
})

test('the newest row is the one with the highest number, in any order of arrival', () => {
  const [first, second] = logOf(looked('c1_0', [shard]), looked('c2_0', [shard]))
  expect(fold([second!, first!], 1).lastSeq).toBe(2)
  expect(fold([], 1).lastSeq).toBe(0)
})

test("the given hint and the model's usage are counted", () => {
  const given = row('context_assembled', { hintFrom: 'inc_leader' })
  const answered = row('model_answered', { usage: { promptTokens: 100, completionTokens: 20 }, calls: [] })
  expect(folded(given, answered, answered)).toMatchObject({ hintFrom: 'inc_leader', modelTurns: 2, tokens: 240 })
})

describe('the clock', () => {
  const at = (atSeconds: number, kind: 'claimed' | 'commented' | 'approval_requested' = 'commented') =>
    partOfRow(kind, {}, { atSeconds })

  test('does not run before the attempt is claimed', () => {
    expect(folded(at(0), at(100)).workedMs).toBe(0)
    expect(folded(at(0), at(100, 'claimed'), at(130)).workedMs).toBe(30_000)
  })

  test('counts from the first claim', () => {
    expect(folded(at(10, 'claimed'), at(20, 'claimed'), at(40)).workedMs).toBe(30_000)
  })

  test('stops for a person until the approval is decided, expires or is withdrawn', () => {
    const ends: IncidentEvent[] = [
      row('approval_decided', { decision: 'approve', status: 'approved' }, { atSeconds: 80 }),
      row('approval_expired', {}, { atSeconds: 80 }),
      row('approval_withdrawn', {}, { atSeconds: 80 }),
    ]
    for (const end of ends) {
      expect(folded(at(0, 'claimed'), at(20, 'approval_requested'), end, at(90)).workedMs).toBe(30_000)
    }
  })

  test('is not changed by the end of a wait that did not happen', () => {
    const expired = row('approval_expired', {}, { atSeconds: 80 })
    expect(folded(at(0, 'claimed'), expired, at(90)).workedMs).toBe(90_000)
  })

  test('never runs backwards', () => {
    expect(folded(at(50, 'claimed'), at(20)).workedMs).toBe(0)
  })
})

describe('recently judged calls', () => {
  test('are kept for sixty calls, so that a call is known again after many others', () => {
    const ids = Array.from({ length: 61 }, (_, at) => `c${at}`)
    expect(folded(...ids.map((id) => judged(id))).recent.map(({ callId }) => callId)).toEqual(ids.slice(1))
    expect(folded(...ids.slice(0, 60).map((id) => judged(id))).recent).toHaveLength(60)
  })

  test('contain a call that was judged twice once', () => {
    expect(folded(judged('a'), judged('a', { verdict: 'ask' })).recent).toMatchObject([{ callId: 'a' }])
    expect(folded(judged('a', { arguments: null })).recent).toMatchObject([{ callId: 'a' }])
  })

  test('begin with nothing', () => {
    expect(folded().recent).toEqual([])
  })

  test('are only the last call after a write', () => {
    const { recent } = folded(judged('a'), judged('b'), judged('c'), wrote('c', [shard]))
    expect(recent.map(({ callId }) => callId)).toEqual(['c'])
  })

  test('are not changed by a read that started', () => {
    const started = row('tool_started', { callId: 'c', tool: 'get_shard', effect: 'read', targets: [shard] })
    const state = folded(judged('a'), judged('b'), started)
    expect(state.recent).toHaveLength(2)
    expect([state.open, state.writes]).toEqual([null, []])
  })
})

describe('refusals', () => {
  test.each([
    ['for going in circles', 'REPEATED_CALL', { loops: 1, phantoms: 0, attempted: 0 }],
    ['for a claim that sounds wrong', 'PHANTOM_CLAIM', { loops: 0, phantoms: 1, attempted: 1 }],
    ['that the model can get past', 'FSM_BLOCKED', { loops: 0, phantoms: 0, attempted: 1 }],
    ['that it cannot', 'UNKNOWN_TOOL', { loops: 0, phantoms: 0, attempted: 0 }],
  ])('%s are counted by their class', (_title, code, expected) => {
    const { loops, phantoms, recoveries } = folded(judged('a', { verdict: 'refuse', code }))
    expect({ loops, phantoms, attempted: recoveries.attempted }).toEqual(expected)
  })

  test('are not counted if the verdict was another', () => {
    const { loops, phantoms, recoveries } = folded(
      judged('a', { verdict: 'ask', code: 'REPEATED_CALL' }),
      judged('b', { verdict: 'run', code: 'PHANTOM_CLAIM' }),
    )
    expect([loops, phantoms, recoveries.attempted]).toEqual([0, 0, 0])
  })

  test('end a sequence of corrections, because the call could be read', () => {
    const sent = row('correction_sent', { code: 'malformed_json', text: '' })
    expect(folded(sent, sent, judged('a'))).toMatchObject({ corrections: 2, correctionsInARow: 0 })
  })
})

describe('recovery from an error', () => {
  const corrected = (codes: string[]) =>
    judged('a', { corrected: codes.map((code) => ({ code, field: 'target', from: 'x', to: 'y' })) })

  test('begins with a call that code corrected, under the code of the error', () => {
    const state = folded(corrected(['ROUTING_MISMATCH', 'UNBOUNDED_COMMAND']))
    expect([...state.recovering]).toEqual([['get_shard', 'ROUTING_MISMATCH']])
    expect(state.recoveries).toEqual({ attempted: 1, succeeded: 0 })
    expect(folded(corrected([])).recoveries.attempted).toBe(0)
  })

  test('is complete when the same tool succeeds, and a success without an error is none', () => {
    expect(folded(corrected(['ROUTING_MISMATCH']), finished({})).recoveries).toEqual({ attempted: 1, succeeded: 1 })
    expect(folded(finished({})).recoveries.succeeded).toBe(0)
    const failed = finished({ result: { ok: false, meta: {} } })
    expect(folded(corrected(['ROUTING_MISMATCH']), failed).recoveries.succeeded).toBe(0)
  })
})

test('a denial is remembered, and an approval is not', () => {
  const decided = (decision: 'approve' | 'deny', actionDigest: string) =>
    row('approval_decided', { decision, status: 'decided', actionDigest })
  expect([...folded(decided('deny', 'one'), decided('approve', 'two')).denied]).toEqual(['one'])
})

test('a verification applies only to its own write', () => {
  const state = folded(
    wrote('c1_0', [shard]),
    verified('c1_0', 'not_held'),
    wrote('c2_0', [shard]),
    verified('c2_0', 'held'),
  )
  expect(state.writes.map((write) => write.verified)).toEqual(['not_held', 'held'])
  expect(state.open).toBe(null)
  expect(folded(wrote('c1_0', [shard]), verified('c1_0', 'open')).evidence.size).toBe(0)
})

test('a read of resources by their names marks these as meant, and others that it found as known', () => {
  const beside: ResourceRef = { kind: 'node', id: 'node-7' }
  const found = [shard, beside].map((thing) => ({ ...thing, name: thing.id, aliases: [] }))
  const { entries } = folded(finished({ discovered: found })).resolved
  expect(entries.get('shard:db-osl-1')?.explicitAtMs).toBe(Date.parse('2026-11-21T02:00:00Z'))
  expect(entries.get('node:node-7')?.explicitAtMs).toBe(null)
})
