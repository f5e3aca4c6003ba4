import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Policy, plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { type TrustLevel, trustLevels, wilson } from '../../domain/trust.ts'
import { fold } from '../../safety/fold.ts'
import { type Call, judge } from '../../safety/judge.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, looked, partOfRow } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const far: ResourceRef = { kind: 'shard', id: 'db-ams-1' }
const now = Date.parse('2026-11-21T02:10:00Z')
const policy = plainPolicy('inc_00000000000000000000000001', shard)

function converge(id: string): Call {
  const identity = { id, reason: 'it lags' }
  const dryRun = { possible: true, summary: 'start replication', details: {} }
  const preparation = { targets: [{ kind: 'shard' as const, id }], identity, stateFingerprint: 'f', dryRun }
  return {
    callId: 'c9_0',
    tool: 'converge_shard',
    arguments: identity,
    problem: null,
    prepared: { ok: true, preparation },
  }
}

const ruled = (call: Call, more: Partial<Policy> = {}) =>
  judge(call, toolFacts, fold(logOf(looked('c1_0', [shard, far])), 1, shard), { ...policy, ...more }, now)
const at = (level: TrustLevel, since: string | null = null) => ({ trust: { level, since } })
const word = ({ verdict, code }: { verdict: string; code: string }) => `${verdict} ${code}`

test.each([
  ['what would run is recorded in shadow', shard.id, at('shadow'), 'refuse SHADOW'],
  ['and so is what would be asked', far.id, at('shadow'), 'refuse SHADOW'],
  ['what would run is asked where it is only proposed', shard.id, at('propose'), 'ask PROPOSED'],
  ['what would be asked is asked for its own reason', far.id, at('propose'), 'ask REVERSIBLE_FAR'],
  ['what would run runs where it may act', shard.id, at('act'), 'run REVERSIBLE_NEAR'],
  ['acting makes no run of a question', far.id, at('act'), 'ask REVERSIBLE_FAR'],
  ['a pause is above every level', shard.id, { ...at('act'), paused: true }, 'refuse PAUSED'],
  [
    'what a person does has no level',
    shard.id,
    { ...at('shadow'), manual: { stateFingerprint: 'f' } },
    'run REVERSIBLE_NEAR',
  ],
])('%s', (_title, id, more, expected) => {
  expect(word(ruled(converge(id), more))).toBe(expected)
})

test('the model is told that nothing was done, and its remaining options', () => {
  expect(ruled(converge(shard.id), at('shadow'))).toMatchObject({
    details: { would: 'run', because: 'REVERSIBLE_NEAR' },
    hint: expect.stringContaining('Nothing changed and nobody was asked'),
  })
})

test('one action is recorded once, however often it is proposed', () => {
  const { actionDigest } = ruled(converge(shard.id))
  const before = partOfRow('call_judged', { callId: 'c2_0', verdict: 'refuse', code: 'SHADOW', actionDigest })
  const state = fold(logOf(looked('c1_0', [shard, far]), before), 1, shard)
  const again = (id: string) => word(judge(converge(id), toolFacts, state, { ...policy, ...at('shadow') }, now))
  expect([again(shard.id), again(far.id)]).toEqual(['refuse REPEATED_CALL', 'refuse SHADOW'])
})

test('a grant approves a call of a tool that only proposes, and not if it is older than the level', () => {
  const { actionDigest } = ruled(converge(shard.id))
  const grants = [{ id: 'grt_1', actionDigest, stateFingerprint: 'f', grantedAt: '2026-11-21T01:00:00Z' }]
  const granted = (since: string | null) => word(ruled(converge(shard.id), { ...at('propose', since), grants }))
  expect(granted(null)).toBe('run GRANTED')
  expect(granted('2026-11-21T00:30:00Z')).toBe('run GRANTED')
  expect(granted('2026-11-21T01:30:00Z')).toBe('ask PROPOSED')
})

test('an earlier approval carries nothing out in shadow', () => {
  const { actionDigest } = ruled(converge(far.id))
  const approval = { id: 'apr_1', callId: 'c9_0', actionDigest, stateFingerprint: 'f' }
  expect(word(ruled(converge(far.id), { ...at('propose'), approval }))).toBe('run APPROVED')
  expect(word(ruled(converge(far.id), { ...at('shadow'), approval }))).toBe('refuse SHADOW')
})

const laxity = { refuse: 0, ask: 1, run: 2 }

test('no level allows more than the kernel alone, and a lower one never more than a higher', () => {
  const policies = fc.record({
    paused: fc.boolean(),
    near: fc.boolean(),
    busy: fc.boolean(),
    raised: fc.constantFrom(null, 'medium' as const, 'critical' as const),
    isApproved: fc.boolean(),
    isGranted: fc.boolean(),
    isPrepared: fc.boolean(),
  })
  fc.assert(
    fc.property(policies, ({ paused, near, busy, raised, isApproved, isGranted, isPrepared }) => {
      const own = converge(near ? shard.id : far.id)
      const call = isPrepared ? own : { ...own, prepared: null }
      const { actionDigest } = ruled(own)
      const bound = { actionDigest, stateFingerprint: 'f' }
      const given = {
        paused,
        raised: { risk: raised, required: 1 },
        busy: busy ? [{ target: 'shard:x', incidentId: 'inc_2' }] : [],
        approval: isApproved ? { id: 'apr_1', callId: 'c9_0', ...bound } : null,
        grants: isGranted ? [{ id: 'grt_1', ...bound, grantedAt: '2026-11-21T01:00:00Z' }] : [],
      }
      const alone = laxity[ruled(call, given).verdict]
      const byLevel = trustLevels.map((level) => laxity[ruled(call, { ...given, ...at(level) }).verdict])
      expect(byLevel).toEqual([...byLevel].sort())
      expect(byLevel.at(-1)).toBe(alone)
      expect(byLevel[0]).toBe(laxity.refuse)
    }),
  )
})

test('a few right answers promise less than many', () => {
  expect(wilson(0, 0)).toBeNull()
  expect(wilson(3, 3)?.low).toBeCloseTo(0.4385, 3)
  expect(wilson(90, 100)).toMatchObject({ low: expect.closeTo(0.8256, 3), high: expect.closeTo(0.9448, 3) })
})
