import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Policy, plainPolicy } from '../../../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../../../domain/registry.ts'
import type { Preparation } from '../../../domain/tool.ts'
import { fold } from '../../../safety/fold.ts'
import { type Call, judge } from '../../../safety/judge.ts'
import { compilePolicy } from '../../../safety/site/compile.ts'
import { decideBySite } from '../../../safety/site/decide.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { logOf, looked } from '../../support/events.ts'
import { anyMoment, anyPolicy, hosts, types } from './policies.ts'
import { type ReferenceAnswer, readPlainly } from './reference.ts'

const incidentId = 'inc_00000000000000000000000001'
const things: ResourceRef[] = (['host', 'vm', 'shard'] as const).flatMap((kind) => hosts.map((id) => ({ kind, id })))
const state = fold(logOf(looked('c0_0', things)), 1, things[0] ?? null)
const at = '2026-11-21T02:00:10Z'

/** Each with arguments that its schema takes. */
const calls: [tool: string, args: (id: string) => Record<string, unknown>, kind: 'host' | 'vm' | 'shard'][] = [
  ['service_start', (on) => ({ on, unit: 'nginx.service', reason: 'because' }), 'host'],
  ['vm_start', (id) => ({ id, reason: 'because' }), 'vm'],
  ['vm_restart', (id) => ({ id, reason: 'because' }), 'vm'],
  ['vm_stop', (id) => ({ id, reason: 'because' }), 'vm'],
  ['converge_shard', (id) => ({ id, reason: 'because' }), 'shard'],
  ['exec', (on) => ({ on, argv: ['uptime'] }), 'host'],
  ['exec', (on) => ({ on, argv: ['systemctl', 'restart', 'nginx'], reason: 'because' }), 'host'],
  ['exec', (on) => ({ on, argv: ['rm', '-rf', '/'], reason: 'because' }), 'host'],
  ['fs_read', (on) => ({ on, path: '/srv/x' }), 'host'],
  ['get_host', (id) => ({ id }), 'host'],
]

const seldom = fc.constantFrom(false, false, false, false, true)

const anyWorld = fc.record({
  call: fc.constantFrom(...calls),
  id: fc.constantFrom(...hosts),
  more: fc.subarray(things, { maxLength: 2 }),
  type: fc.constantFrom(...types),
  paused: seldom,
  isDenied: seldom,
  isGranted: fc.boolean(),
  isNear: fc.boolean(),
  required: fc.constantFrom(1, 1, 1, 2),
  risk: fc.constantFrom(null, null, 'high' as const),
  asks: fc.constantFrom(undefined, undefined, { risk: 'low' as const, why: 'the place asks' }),
  approved: fc.constantFrom(null, null, { people: 1 }, { people: 2 }, { people: 2, members: ['ada'] }),
  manual: seldom,
  isSilenced: fc.boolean(),
  nowMs: anyMoment,
})

/** Half of them let run all that a rule can: there the bounds of that are tried. */
const manyThatRun = fc.oneof(
  anyPolicy,
  anyPolicy.map((policy) => ({
    ...policy,
    rules: (['host', 'vm', 'shard'] as const).map((kind) => ({
      name: kind,
      resource: { kind, id: hosts },
      action: 'run' as const,
    })),
  })),
)

const ranks = { refuse: 0, ask: 1, run: 2 } as const

/**
 * What the kernel makes of a call alone, and what a plain reading of the documentation then makes
 * of it.
 */
function expected(alone: ReturnType<typeof judge>, said: ReferenceAnswer, policy: Policy, call: Call) {
  if (said === null || alone.verdict === 'refuse') return alone.verdict
  if (said.action === 'never') return 'refuse'
  if (said.action === 'ask') {
    if (alone.code !== 'APPROVED') return 'ask'
    const { people = 1, members = null } = policy.approval?.site ?? {}
    const isMet =
      people >= said.people && (said.members === null || members?.every((each) => said.members?.includes(each)))
    return isMet ? 'run' : 'ask'
  }
  const facts = toolFacts.get(call.tool)!
  const isSmall = alone.risk === 'low' || alone.risk === 'medium'
  const mayRun =
    said.isNamed &&
    facts.reversible &&
    isSmall &&
    facts.command === undefined &&
    !policy.manual &&
    policy.raised.required < 2
  const isPlain = call.prepared?.ok === true && !call.prepared.preparation.asks && alone.code !== 'DRIFT'
  return mayRun && isPlain ? 'run' : alone.verdict
}

test('with a policy the kernel is never laxer than alone except where a rule may widen, and each ruling names its rule', () => {
  const seen: Record<string, number> = {}
  fc.assert(
    fc.property(manyThatRun, fc.array(anyWorld, { minLength: 5, maxLength: 5 }), (file, worlds) => {
      const compiled = compilePolicy(file, { digest: 'd', commit: 'c' })
      for (const world of worlds) {
        const { call, policy, touched } = build(world)
        const asked = { tool: call.tool, type: world.type, nowMs: world.nowMs, things: touched }
        const silence = world.isSilenced ? { is: 'unread', source: null, readAt: null } : null
        const site = decideBySite(compiled, { ...asked, silence } as never)
        const judged = (given: Policy) => judge(call, toolFacts, state, given, Date.parse(at))
        const [alone, ruled] = [judged(policy), judged({ ...policy, site })]
        const does = alone.effect === 'write' ? ('write' as const) : ('look' as const)
        const said = readPlainly(file, { ...asked, does, isSilenced: world.isSilenced })
        expect(ruled.verdict).toBe(expected(alone, said, policy, call))
        if (ranks[ruled.verdict] > ranks[alone.verdict]) expect(said).toMatchObject({ action: 'run', isNamed: true })
        if (/^SITE_/.test(ruled.code))
          expect(ruled.details.site).toMatchObject({ commit: 'c', line: expect.any(Number) })
        const key = `${alone.verdict} ${alone.code} ${said?.action ?? 'none'}: ${ruled.code}`
        seen[key] = (seen[key] ?? 0) + 1
      }
    }),
    { numRuns: Number(process.env.POLICIES ?? 500) },
  )
  for (const code of ['SITE_NEVER', 'SITE_ASKS', 'SITE_RUNS', 'APPROVED', 'PAUSED', 'DENIED_BEFORE', 'READ_COMMAND'])
    expect([code, Object.keys(seen).some((key) => key.endsWith(code))]).toEqual([code, true])
})

const strictness = { run: 0, none: 1, ask: 2, never: 3 } as const

test('while an alert is silenced no call is decided less strictly than without a silence', () => {
  const seen = { same: 0, stricter: 0 }
  fc.assert(
    fc.property(anyPolicy, fc.array(anyWorld, { minLength: 5, maxLength: 5 }), (file, worlds) => {
      const compiled = compilePolicy(file, { digest: '', commit: null })
      for (const world of worlds) {
        const { call, touched } = build(world)
        const asked = { tool: call.tool, type: world.type, nowMs: world.nowMs, things: touched }
        const silence = { is: 'unread', source: null, readAt: null } as const
        const [without, within] = [null, silence].map((each) => decideBySite(compiled, { ...asked, silence: each }))
        for (const does of ['write', 'look'] as const) {
          const [before, now] = [without?.[does], within?.[does]]
          const change = strictness[now?.action ?? 'none'] - strictness[before?.action ?? 'none']
          expect(change).toBeGreaterThanOrEqual(0)
          if (before?.demand && now?.demand) {
            const { people, members } = before.demand
            expect(now.demand.people).toBeGreaterThanOrEqual(people)
            if (members) expect([...members]).toEqual(expect.arrayContaining([...(now.demand.members ?? ['anybody'])]))
          }
          seen[change === 0 ? 'same' : 'stricter'] += 1
        }
      }
    }),
    { numRuns: Number(process.env.POLICIES ?? 500) },
  )
  expect(Math.min(seen.same, seen.stricter)).toBeGreaterThan(50)
})

type World = typeof anyWorld extends fc.Arbitrary<infer T> ? T : never

function build({ call: [tool, args, kind], id, more, ...world }: World) {
  const own = { kind, id }
  const targets = [own, ...more.filter((each) => resourceKey(each) !== resourceKey(own))]
  const preparation: Preparation = {
    targets,
    identity: args(id),
    stateFingerprint: 's',
    ...(world.asks && { asks: world.asks }),
    dryRun: { possible: false, summary: '', details: {} },
  }
  const call: Call = {
    callId: 'c1_0',
    tool,
    arguments: args(id),
    problem: null,
    prepared: { ok: true, preparation },
  }
  const plain = plainPolicy(incidentId, own)
  const { actionDigest } = judge(call, toolFacts, state, plain, Date.parse(at))
  const policy: Policy = {
    ...plain,
    paused: world.paused && !world.approved,
    vicinity: world.isNear ? things : [],
    raised: { risk: world.risk, required: world.required },
    denied: world.isDenied && !world.approved ? [actionDigest] : [],
    grants: world.isGranted ? [{ id: 'grt_1', actionDigest, stateFingerprint: 's' }] : [],
    ...(world.manual && { manual: { stateFingerprint: 's' } }),
    approval: world.approved && {
      ...{ id: 'apr_1', callId: 'c1_0', actionDigest, stateFingerprint: 's' },
      site: { groups: [], members: null, ...world.approved },
    },
  }
  return { call, policy, touched: targets.map((each) => ({ names: [each], labels: {} })) }
}
