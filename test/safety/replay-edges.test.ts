import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { replay } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, looked, partOfRow } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const policy = {
  incidentId: 'inc_00000000000000000000000001',
  resource: shard,
  role: 'leader',
  paused: false,
  offered: null,
  vicinity: [shard],
  denied: [],
  busy: [],
  approval: null,
}
const prepared = { ok: true, targets: [shard], identity: { id: shard.id }, stateFingerprint: 'now' }

const proposed = (id: string, tool: string, args: Record<string, unknown> | null, more: Record<string, unknown> = {}) =>
  partOfRow(
    'model_answered',
    {
      usage: { promptTokens: 1, completionTokens: 1 },
      calls: [{ id, tool, arguments: args, problem: null, ...more }],
    },
    {
      attempt: (more.attempt as number) ?? 1,
    },
  )

function judged(callId: string, tool: string, verdict: string, code: string, more: Record<string, unknown> = {}) {
  return partOfRow(
    'call_judged',
    {
      callId,
      tool,
      verdict,
      code,
      policyVersion: '1',
      foldedSeq: 99,
      arguments: null,
      basis: { at: '2026-11-21T02:00:00Z', policy, prepared: null },
      ...more,
    },
    { turn: 3 },
  )
}
const again = (...rows: IncidentEvent[]) => replay(logOf(...rows), toolFacts, shard)
const basis = (more: Record<string, unknown>) => ({
  basis: { at: '2026-11-21T02:00:00Z', policy: { ...policy, ...more }, prepared },
})
const converge = proposed('c2_0', 'converge_shard', { id: shard.id, reason: 'it lags' })

test('an unchanged ruling is counted and is no difference', () => {
  const report = again(proposed('c1_0', 'get_shard', { id: 'x' }), judged('c1_0', 'get_shard', 'run', 'READ'))
  expect(report).toEqual({ judged: 1, differences: [], unrepeatable: 0 })
})

describe('a difference', () => {
  test('shows the decision, its time, and the decision now', () => {
    const call = proposed('c1_0', 'get_shard', { id: 'x' })
    expect(again(call, judged('c1_0', 'get_shard', 'ask', 'RISK_HIGH')).differences).toEqual([
      {
        seq: 2,
        turn: 3,
        tool: 'get_shard',
        was: { verdict: 'ask', code: 'RISK_HIGH', policyVersion: '1' },
        is: { verdict: 'run', code: 'READ', reason: 'read-only' },
      },
    ])
  })

  test('is one in the code alone, and one in the verdict alone', () => {
    const call = proposed('c1_0', 'get_shard', { id: 'x' })
    expect(again(call, judged('c1_0', 'get_shard', 'run', 'RECORD')).differences).toHaveLength(1)
    expect(again(call, judged('c1_0', 'get_shard', 'ask', 'READ')).differences).toHaveLength(1)
  })
})

describe('a ruling is repeated', () => {
  test('with the call that the model proposed, by its id and of the same attempt', () => {
    const rows = [
      proposed('c1_0', 'get_shard', { id: 'wrong' }),
      proposed('c2_0', 'get_shard', { id: 'right' }, { attempt: 2 }),
      proposed('c2_0', 'get_shard', null),
    ]
    const refused = judged('c2_0', 'get_shard', 'refuse', 'MALFORMED_ARGUMENTS', { arguments: { id: 'x' } })
    expect(again(...rows, refused).differences).toEqual([])
  })

  test('with the arguments of its own row if no answer has it', () => {
    const alone = judged('c1_0', 'get_shard', 'run', 'READ', { arguments: { id: 'x' } })
    expect(again(alone)).toMatchObject({ judged: 1, differences: [] })
  })

  test('with the reason why the call could not be read, and with its secret', () => {
    const broken = proposed('c1_0', 'get_shard', null, { problem: 'cut off' })
    expect(again(broken, judged('c1_0', 'get_shard', 'run', 'READ')).differences[0]?.is.reason).toContain('cut off')
    const secret = proposed('c1_0', 'get_shard', { id: 'x' }, { secret: true })
    expect(again(secret, judged('c1_0', 'get_shard', 'refuse', 'SECRET_IN_ARGUMENTS')).differences).toEqual([])
  })

  test("with a person's edit, if there was one", () => {
    const edited = {
      arguments: { id: 'x' },
      corrected: [{ code: 'EDITED_BY_PERSON', field: 'id', from: 1, to: 'x' }],
    }
    const broken = proposed('c1_0', 'get_shard', null, { problem: 'cut off', secret: true })
    expect(again(broken, judged('c1_0', 'get_shard', 'run', 'READ', edited)).differences).toEqual([])
    const corrected = [{ code: 'ROUTING_MISMATCH', field: 'id', from: 1, to: 'x' }]
    expect(
      again(broken, judged('c1_0', 'get_shard', 'run', 'READ', { ...edited, corrected })).differences,
    ).toHaveLength(1)
  })

  test('with the risks of the configuration then, and without any if the row has none', () => {
    const rows = [looked('c1_0', [shard]), converge]
    const risky = judged('c2_0', 'converge_shard', 'ask', 'RISK_HIGH', basis({ raised: { risk: 'high', required: 1 } }))
    expect(again(...rows, risky).differences).toEqual([])
  })

  test('with what was found out about it then', () => {
    const rows = [looked('c1_0', [shard]), converge]
    expect(again(...rows, judged('c2_0', 'converge_shard', 'run', 'REVERSIBLE_NEAR', basis({}))).differences).toEqual(
      [],
    )
    const gone = { basis: { at: '2026-11-21T02:00:00Z', policy, prepared: { ok: false, reason: 'it was gone' } } }
    const [difference] = again(...rows, judged('c2_0', 'converge_shard', 'ask', 'DRIFT', gone)).differences
    expect(difference?.is).toEqual({ verdict: 'refuse', code: 'NOT_PREPARED', reason: 'it was gone' })
  })

  test('with the policy and at the time of then', () => {
    const rows = [looked('c1_0', [shard]), converge]
    const paused = judged('c2_0', 'converge_shard', 'refuse', 'PAUSED', basis({ paused: true }))
    expect(again(...rows, paused).differences).toEqual([])
    const late = { basis: { ...basis({}).basis, at: '2026-11-21T05:00:00Z' } }
    const stale = judged('c2_0', 'converge_shard', 'refuse', 'STRICT_RESOLUTION', late)
    expect(again(...rows, stale).differences).toEqual([])
  })

  test('on the rows up to the last one that it had read', () => {
    const rows = [converge, looked('c1_0', [shard])]
    const seen = (foldedSeq: number, verdict: string, code: string) =>
      again(...rows, judged('c2_0', 'converge_shard', verdict, code, { ...basis({}), foldedSeq })).differences
    expect(seen(1, 'refuse', 'STRICT_RESOLUTION')).toEqual([])
    expect(seen(2, 'run', 'REVERSIBLE_NEAR')).toEqual([])
  })
})

test('a decision from another incident is not judged again, and a row with too little data is counted', () => {
  const elsewhere = judged('c1_0', 'get_shard', 'refuse', 'DECIDED_ELSEWHERE')
  const old = judged('c1_0', 'get_shard', 'run', 'READ', { basis: undefined })
  expect(again(elsewhere, old, old)).toEqual({ judged: 0, differences: [], unrepeatable: 2 })
})
