import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { actionDigest } from '../../domain/digest.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Preparation } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { type Call, judge, type Policy } from '../../safety/judge.ts'
import { toolFacts, tools } from '../../tools/registry.ts'
import { logOf, looked, partOfRow, row, seenNominal, verified, wrote } from '../support/events.ts'

const incident = 'inc_00000000000000000000000001'
const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const far: ResourceRef = { kind: 'shard', id: 'db-ams-1' }
const now = Date.parse('2026-11-21T02:10:00Z')
const plan = 'prp_00000000000000000000000001'

const policy: Policy = {
  ...plainPolicy(incident, shard),
  vicinity: [shard, { kind: 'node', id: 'node-db-osl-1b' }],
}

function prepared(targets: ResourceRef[], identity: Record<string, unknown>, fingerprint = 'now'): Call['prepared'] {
  const preparation: Preparation = {
    targets,
    identity,
    stateFingerprint: fingerprint,
    dryRun: { possible: true, summary: '', details: {} },
  }
  return { ok: true, preparation }
}

function call(tool: string, args: Record<string, unknown> | null, more: Partial<Call> = {}): Call {
  return { callId: 'c9_0', tool, arguments: args, problem: null, prepared: null, ...more }
}

const converge = (ref = shard) =>
  call('converge_shard', { id: ref.id, reason: 'replica is behind' }, { prepared: prepared([ref], { id: ref.id }) })
const migrate = (fingerprint = 'now') =>
  call(
    'execute_migration',
    { proposal_id: plan, reason: 'host is dead' },
    {
      prepared: prepared([{ kind: 'proposal', id: plan }], { plan: 'abc' }, fingerprint),
    },
  )
const resolve = (outcome: string, evidence: number[]) =>
  call('resolve_incident', {
    id: incident,
    resolution: 'done',
    outcome,
    claims: evidence.map((seq) => seenNominal(seq)),
  })
const lookedAtPlan = looked('c1_0', [{ kind: 'proposal', id: plan }])

function ruled(rows: Parameters<typeof logOf>, asked: Call, more: Partial<Policy> = {}, at = now) {
  const ruling = judge(asked, toolFacts, fold(logOf(...rows), 1), { ...policy, ...more }, at)
  return `${ruling.verdict} ${ruling.code}`
}

describe('the ruling on a proposed call', () => {
  test.each([
    ['a look runs', [], call('get_shard', { id: 'x' }), {}, 'run READ'],
    [
      'a note on its own incident runs',
      [],
      call('add_incident_event', { incident_id: incident, action: 'commented', detail: 'x' }),
      {},
      'run RECORD',
    ],
    [
      'a note on another incident is refused',
      [],
      call('add_incident_event', { incident_id: 'inc_00000000000000000000000002', action: 'commented', detail: 'x' }),
      {},
      'refuse FOREIGN_INCIDENT',
    ],
    ['a tool nobody knows is refused', [], call('rm_rf', {}), {}, 'refuse UNKNOWN_TOOL'],
    ['arguments that are no object are refused', [], call('get_shard', null), {}, 'refuse MALFORMED_ARGUMENTS'],
    ['arguments of a wrong type are refused', [], call('get_shard', { id: 7 }), {}, 'refuse INVALID_ARGUMENTS'],
    ['an id that is a path is refused', [], call('get_shard', { id: '../../config' }), {}, 'refuse INVALID_ARGUMENTS'],
    [
      'arguments nobody asked for are refused',
      [],
      call('get_shard', { id: 'x', approved_by: 'root' }),
      {},
      'refuse INVALID_ARGUMENTS',
    ],
    [
      'a tool that is not offered for the type is refused',
      [],
      call('get_shard', { id: 'x' }),
      { offered: ['get_node'] },
      'refuse NOT_OFFERED',
    ],
    ['a write to what was never looked up is refused', [], converge(), {}, 'refuse STRICT_RESOLUTION'],
    [
      "a reversible write on the incident's resource runs",
      [looked('c1_0', [shard])],
      converge(),
      {},
      'run REVERSIBLE_NEAR',
    ],
    ['the same on a far resource is asked', [looked('c1_0', [far])], converge(far), {}, 'ask REVERSIBLE_FAR'],
    ['a migration is asked', [lookedAtPlan], migrate(), {}, 'ask RISK_HIGH'],
    ['writes are refused while paused', [looked('c1_0', [shard])], converge(), { paused: true }, 'refuse PAUSED'],
    ['reads go on while paused', [], call('get_shard', { id: 'x' }), { paused: true }, 'run READ'],
    [
      'a denied action is not asked again',
      [lookedAtPlan],
      migrate(),
      { denied: [actionDigest('execute_migration', { plan: 'abc' })] },
      'refuse DENIED_BEFORE',
    ],
    [
      'a target another incident writes to is busy',
      [looked('c1_0', [shard])],
      converge(),
      { busy: [{ target: 'shard:db-osl-1', incidentId: 'other' }] },
      'refuse TARGET_BUSY',
    ],
    [
      'a write whose effect cannot be found out is refused',
      [looked('c1_0', [shard])],
      { ...converge(), prepared: { ok: false as const, reason: 'gone' } },
      {},
      'refuse NOT_PREPARED',
    ],
    [
      'an escalation needs one look',
      [],
      call('escalate_incident', { id: incident, reason: 'help' }),
      {},
      'refuse NO_DIAGNOSTIC',
    ],
    [
      'an escalation after a look runs',
      [looked('c1_0', [shard])],
      call('escalate_incident', { id: incident, reason: 'help' }),
      {},
      'run TERMINAL',
    ],
    [
      'an escalation passes an open verification',
      [looked('c1_0', [shard]), wrote('c2_0', [shard])],
      call('escalate_incident', { id: incident, reason: 'help' }),
      {},
      'run TERMINAL',
    ],
    [
      'a resolution does not',
      [looked('c1_0', [shard]), wrote('c2_0', [shard])],
      resolve('repaired', [1]),
      {},
      'refuse FSM_BLOCKED',
    ],
    [
      'a second write waits for the verification of the first',
      [looked('c1_0', [shard]), wrote('c2_0', [shard])],
      converge(),
      {},
      'refuse FSM_BLOCKED',
    ],
    [
      'a verification that was not readable keeps blocking',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'open')],
      converge(),
      {},
      'refuse FSM_BLOCKED',
    ],
    [
      'after not_held another write may be tried',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'not_held')],
      converge(),
      {},
      'run REVERSIBLE_NEAR',
    ],
    [
      'a repair that did not hold cannot be claimed',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'not_held')],
      resolve('repaired', [1]),
      {},
      'refuse REPAIR_NOT_VERIFIED',
    ],
    [
      'a repair that held can',
      [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'held')],
      resolve('repaired', [1]),
      {},
      'run TERMINAL',
    ],
    [
      'a repair without any write cannot be claimed',
      [looked('c1_0', [shard])],
      resolve('repaired', [1]),
      {},
      'refuse NOTHING_WRITTEN',
    ],
    [
      'evidence under the wrong number of a row is held against the row that it stands in',
      [looked('c1_0', [shard])],
      resolve('no_fault', [99]),
      {},
      'run TERMINAL',
    ],
    [
      'evidence that no row holds is refused',
      [looked('c1_0', [shard]), looked('c2_0', [shard])],
      resolve('no_fault', [99]),
      {},
      'refuse EVIDENCE_MISSING',
    ],
    [
      'a follower looks at its own target before it resolves',
      [looked('c1_0', [far])],
      resolve('no_fault', [1]),
      { role: 'follower' as const },
      'refuse OWN_TARGET_UNSEEN',
    ],
  ])('%s', (_title, rows, asked, more, expected) => {
    expect(ruled(rows as never, asked as Call, more as Partial<Policy>)).toBe(expected)
  })

  test("a tool whose name code corrected is judged as that tool, and the record shows the model's spelling", () => {
    const ruling = judge(
      { ...call('get_shard', { id: 'x' }), spelled: 'get.shard' },
      toolFacts,
      fold([], 1),
      plainPolicy(incident, shard),
      0,
    )
    expect(ruling).toMatchObject({ verdict: 'run', corrected: [{ field: 'tool', from: 'get.shard', to: 'get_shard' }] })
  })

  test('the same call twice in a row is refused, whatever its reason says', () => {
    const before = row('call_judged', { callId: 'c8_0', tool: 'get_shard', arguments: { id: 'x' }, verdict: 'run' })
    expect(ruled([before], call('get_shard', { id: 'x' }))).toBe('refuse REPEATED_CALL')
    expect(ruled([before], call('get_shard', { id: 'y' }))).toBe('run READ')
  })

  test.each([
    ['IN_PROGRESS', 409, 'run'],
    ['DATABASE_UNAVAILABLE', 503, 'run'],
    ['UNANSWERED', undefined, 'run'],
    ['STILL_FIRING', 409, 'refuse'],
  ])('an escalation that got %s (%s) may be made again: %s', (rule, status, verdict) => {
    const args = { id: incident, reason: 'help' }
    const rows = [
      looked('c0_0', [shard]),
      row('call_judged', { callId: 'c1_0', tool: 'escalate_incident', arguments: args, verdict: 'run' }),
      partOfRow('tool_finished', {
        callId: 'c1_0',
        tool: 'escalate_incident',
        arguments: args,
        effect: 'terminal',
        targets: [],
        outcome: 'failed',
        result: { ok: false, error: { code: 'EXECUTION_FAILED', details: { rule, status } }, meta: {} },
        body: null,
        discovered: [],
      }),
    ]
    expect(ruled(rows as never, call('escalate_incident', args))).toMatch(verdict)
  })

  test('a read with two identical answers is not asked a third time, whatever came between, and the refusal names their rows', () => {
    const asked = (callId: string, id: string) =>
      row('call_judged', { callId, tool: 'get_shard', arguments: { id }, verdict: 'run' })
    const said = (callId: string, status: string, request: string) =>
      partOfRow('tool_finished', {
        ...looked(callId, [shard]).metadata,
        result: { ok: true, data: { id: 'x', status, request_id: request }, meta: {} },
      })
    const between = [asked('c2_0', 'y'), asked('c3_0', 'z'), asked('c4_0', 'w')]
    const rows = (second: string) => [
      asked('c1_0', 'x'),
      said('c1_0', 'critical', 'r1'),
      ...between,
      asked('c5_0', 'x'),
      said('c5_0', second, 'r2'),
      asked('c6_0', 'v'),
    ]
    const ruling = (second: string) =>
      judge(call('get_shard', { id: 'x' }), toolFacts, fold(logOf(...rows(second)), 1, shard), policy, now)
    expect(ruling('critical')).toMatchObject({
      code: 'REPEATED_CALL',
      reason: 'get_shard was called with these arguments 2 times, and each result matched seq 2',
      hint: 'Use seq 7, read something else, act, or escalate.',
    })
    expect(ruling('nominal').verdict).toBe('run')
  })

  test('the same write runs at most twice in an investigation, whatever its reason says and whatever was read between', () => {
    const ran = (callId: string, reason: string) => [
      partOfRow('tool_started', { ...wrote(callId, [shard]).metadata, arguments: { id: shard.id, reason } }),
      verified(callId, 'held'),
      looked(`${callId}_look`, [shard]),
    ]
    const first = [looked('c1_0', [shard]), ...ran('c2_0', 'a')]
    const again = (rows: unknown[]) => ruled(rows as never, converge())
    expect(again(first)).toBe('run REVERSIBLE_NEAR')
    expect(again([...first, ...ran('c3_0', 'b')])).toBe('refuse REPEATED_CALL')
    const other = { ...converge(), arguments: { ...converge().arguments, id: far.id } }
    expect(ruled([...first, ...ran('c3_0', 'b'), looked('c4_0', [far])] as never, other)).not.toBe(
      'refuse REPEATED_CALL',
    )
  })

  test('judging the same call again after an approval is no repetition', () => {
    const before = row('call_judged', {
      callId: 'c9_0',
      tool: 'execute_migration',
      arguments: migrate().arguments,
      verdict: 'ask',
    })
    const approval = {
      id: 'apr',
      callId: 'c9_0',
      actionDigest: actionDigest('execute_migration', { plan: 'abc' }),
      stateFingerprint: 'now',
    }
    expect(ruled([lookedAtPlan, before], migrate(), { approval })).toBe('run APPROVED')
  })

  test('an approved plan of a host that nobody confirms as dead is refused, and asked about before', () => {
    const approval = {
      ...{ id: 'apr', callId: 'c9_0', stateFingerprint: 'now' },
      actionDigest: actionDigest('execute_migration', { plan: 'abc' }),
    }
    const at = new Date(now).toISOString()
    const of = (...says: ('down' | 'up')[]) => {
      const asked = migrate()
      const witnesses = says.map((word) => ({ who: word, sees: word === 'up' ? 'agent' : 'platform', says: word, at }))
      const { preparation } = asked.prepared as { preparation: object }
      const deaths = [{ host: 'host-1', witnesses, isForecast: false }]
      return { ...asked, prepared: { ok: true, preparation: { ...preparation, deaths } } } as Call
    }
    const said = { ...approval, hostIsOff: ['host-1'] }
    expect(ruled([lookedAtPlan], of('down'))).toBe('ask RISK_HIGH')
    expect(ruled([lookedAtPlan], of('down'), { approval })).toBe('refuse HOST_NOT_CONFIRMED')
    expect(ruled([lookedAtPlan], of('down'), { approval: said })).toBe('run APPROVED')
    expect(ruled([lookedAtPlan], of('down', 'up'))).toBe('ask RISK_HIGH')
    expect(ruled([lookedAtPlan], of('down', 'up'), { approval: said })).toBe('refuse WITNESSES_DISAGREE')
  })

  test.each([
    ['for another call', { callId: 'c1_1' }],
    ['of another action', { actionDigest: 'ffff' }],
    ['for another state of the platform', { stateFingerprint: 'before' }],
  ])('an approval %s runs nothing, and a person is asked again', (_title, change) => {
    const approval = {
      id: 'apr',
      callId: 'c9_0',
      actionDigest: actionDigest('execute_migration', { plan: 'abc' }),
      stateFingerprint: 'now',
      ...change,
    }
    expect(ruled([lookedAtPlan], migrate(), { approval })).toBe('ask DRIFT')
  })

  test('a read of 45 minutes ago allows no write any more, and the wait for a person does not age it', () => {
    const asked = row('approval_requested', { approvalId: 'a' }, { atSeconds: 60 })
    const decided = row(
      'approval_decided',
      { approvalId: 'a', decision: 'approve', status: 'approved', actionDigest: 'x' },
      { atSeconds: 3 * 86_400 },
    )
    const soonAfter = Date.parse('2026-11-21T02:00:00Z') + (3 * 86_400 + 120) * 1000
    expect(ruled([looked('c1_0', [shard])], converge(), {}, now + 45 * 60_000)).toBe('refuse STRICT_RESOLUTION')
    expect(ruled([looked('c1_0', [shard]), asked, decided], converge(), {}, soonAfter)).toBe('run REVERSIBLE_NEAR')
  })

  test('the reads of an earlier attempt do not count', () => {
    const state = fold(logOf(looked('c1_0', [shard], { attempt: 1 })), 2)
    expect(judge(converge(), toolFacts, state, policy, now).code).toBe('STRICT_RESOLUTION')
  })
})

describe('for every proposal of a model', () => {
  const names = [...tools.keys(), 'no_such_tool', '__proto__', 'constructor']
  const anything = fc.record({
    tool: fc.constantFrom(...names),
    arguments: fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: null }),
  })

  test('judging never throws, and no write on an unread resource runs', () => {
    fc.assert(
      fc.property(anything, ({ tool, arguments: args }) => {
        const ruling = judge(call(tool, args as never), toolFacts, fold([], 1), policy, now)
        expect(['run', 'ask', 'refuse']).toContain(ruling.verdict)
        if (ruling.effect === 'write') expect(ruling.verdict).toBe('refuse')
      }),
      { numRuns: 2000 },
    )
  })
})

describe('a command before the first read', () => {
  const own: ResourceRef = { kind: 'node', id: 'web-1' }
  const other: ResourceRef = { kind: 'node', id: 'web-2' }
  const command = (argv: string[], on: ResourceRef) =>
    call('exec', { on: on.id, argv, reason: 'see' }, { prepared: prepared([on], { on: on.id, argv }) })
  const first = (asked: Call, pinned: ResourceRef | null = own) => {
    const { verdict, code } = judge(
      asked,
      toolFacts,
      fold([], 1, pinned),
      { ...policy, resource: pinned } as Policy,
      now,
    )
    return `${verdict} ${code}`
  }

  test("runs if it only reads on the incident's own resource, which the context shows", () => {
    expect(first(command(['ls', '/srv'], own))).toBe('run READ_COMMAND')
  })

  test.each([
    ['on another machine', command(['ls', '/srv'], other), own],
    ['where the incident names no resource', command(['ls', '/srv'], own), null],
    ['that changes something', command(['rm', '/srv/x'], own), own],
    ['that nothing prepared', { ...command(['ls', '/srv'], own), prepared: null }, own],
  ] as const)('is refused %s', (_, asked, pinned) => {
    expect(first(asked, pinned)).toBe('refuse STRICT_RESOLUTION')
  })
})

test('a call by code only reads: it neither writes nor asks, and the same call of a model is judged as usual', () => {
  const state = fold(logOf(looked('c0_0', [shard])), 1, shard)
  const byCode = { callId: 'c1_1000' }
  const ruled = (each: Call) => judge(each, toolFacts, state, policy, now)
  expect(ruled({ ...call('get_shard', { id: shard.id }), ...byCode })).toMatchObject({ verdict: 'run' })
  expect(ruled({ ...converge(), ...byCode })).toMatchObject({ verdict: 'refuse', code: 'NOT_A_FREE_LOOK' })
  expect(ruled(converge())).toMatchObject({ verdict: 'run' })
  const command = call('exec', { on: 'node-db-osl-1b', argv: ['rm', '-r', '/srv/x'] })
  expect(ruled({ ...command, ...byCode })).toMatchObject({ verdict: 'refuse' })
})

test('a refused or failed read by code is no repetition for the model, and an answered one is', () => {
  const refusal = partOfRow('call_judged', {
    callId: 'c0_1000',
    tool: 'get_shard',
    verdict: 'refuse',
    code: 'NOT_A_FREE_LOOK',
    arguments: { id: shard.id },
  })
  const again = call('get_shard', { id: shard.id })
  const ruled = (...rows: Parameters<typeof logOf>) =>
    judge(again, toolFacts, fold(logOf(...rows), 1, shard), policy, now)
  expect(ruled(refusal)).toMatchObject({ verdict: 'run' })
  const finished = (ok: boolean) =>
    partOfRow('tool_finished', {
      callId: 'c0_1000',
      tool: 'get_shard',
      arguments: { id: shard.id },
      effect: 'read',
      targets: [shard],
      discovered: [],
      body: null,
      result: { ok, meta: {} },
    })
  expect(ruled(finished(false))).toMatchObject({ verdict: 'run' })
  expect(ruled(finished(true))).toMatchObject({ verdict: 'refuse', code: 'REPEATED_CALL' })
})
