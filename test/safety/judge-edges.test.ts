import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { actionDigest } from '../../domain/digest.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { type Call, judge, type Policy } from '../../safety/judge.ts'
import { quote, refuse } from '../../safety/ruling.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, looked, row, seenNominal, verified, wrote } from '../support/events.ts'

const incident = 'inc_00000000000000000000000001'
const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const far: ResourceRef = { kind: 'shard', id: 'db-ams-1' }
const host: ResourceRef = { kind: 'host', id: 'host-osl-1' }
const now = Date.parse('2026-11-21T02:10:00Z')
const policy = plainPolicy(incident, shard)

const exec: ToolFacts = {
  name: 'exec',
  effect: 'write',
  risk: 'medium',
  reversible: false,
  input: z.strictObject({ target: z.string(), command: z.string() }),
  names: { target: ['host', 'vm'] },
  command: { field: 'command', form: 'bash' },
}
const many: ToolFacts = {
  name: 'restart_all',
  effect: 'write',
  risk: 'low',
  reversible: true,
  input: z.strictObject({ ids: z.array(z.string()) }),
  names: { ids: 'shard' },
}
const tools = new Map([...toolFacts, ['exec', exec], ['restart_all', many]])

const dryRun = { possible: false, summary: '', details: {} }
function call(tool: string, args: Record<string, unknown> | null, more: Partial<Call> = {}): Call {
  const preparation = { targets: [], identity: args ?? {}, stateFingerprint: 'now', dryRun }
  return { callId: 'c9_0', tool, arguments: args, problem: null, prepared: { ok: true, preparation }, ...more }
}
const converge = (more: Partial<Call> = {}) => call('converge_shard', { id: shard.id, reason: 'it lags' }, more)
const run = (command: string, more: Partial<Call> = {}) => call('exec', { target: host.id, command }, more)
const resolve = (args: Record<string, unknown> = {}) =>
  call('resolve_incident', {
    id: incident,
    resolution: 'done',
    outcome: 'no_fault',
    claims: [seenNominal(1)],
    ...args,
  })

const ruled = (asked: Call, rows: IncidentEvent[] = [], more: Partial<Policy> = {}, given = tools) =>
  judge(asked, given, fold(logOf(...rows), 1, shard), { ...policy, ...more }, now)

describe('an unreadable call', () => {
  test('to an unknown tool counts as the worst write, and gets the list of tools', () => {
    const ruling = ruled(call('rm_rf', { x: 1 }))
    expect(ruling).toMatchObject({
      effect: 'write',
      risk: 'critical',
      targets: [],
      corrected: [],
      arguments: null,
      details: {},
    })
    expect(ruling.reason).toContain('"rm_rf"')
    expect(ruling.hint).toContain('get_shard, ')
    expect(ruling.actionDigest).toBe(actionDigest('rm_rf', { x: 1 }))
  })

  test('gets the tools that this type of incident has, and the ways to end', () => {
    expect(ruled(call('rm_rf', {}), [], { offered: ['get_node'] }).hint).toBe(
      'Use one of: get_node, resolve_incident, escalate_incident',
    )
  })

  test('has the effect and risk of its tool', () => {
    expect(ruled(call('get_shard', { id: 7 }))).toMatchObject({
      effect: 'read',
      risk: 'none',
      arguments: null,
      targets: [],
      corrected: [],
    })
  })

  test('is refused with the wrong field, and at most five errors', () => {
    expect(ruled(call('get_shard', { id: 7 })).reason).toMatch(/^get_shard: id: /)
    expect(ruled(call('get_shard', { id: 'x', approved_by: 'root' })).reason).toMatch(
      /^get_shard: "approved_by" is not known here/,
    )
    const wide = { ...many, input: z.strictObject(Object.fromEntries([...'abcdefg'].map((key) => [key, z.string()]))) }
    const { reason } = ruled(call('restart_all', {}), [], {}, new Map([['restart_all', wide]]))
    expect(reason.split('; ').map((fault) => fault.replace('restart_all: ', '').split(':')[0])).toEqual([...'abcde'])
  })

  test('is refused with the reason why it was no JSON, if that is known', () => {
    expect(ruled(call('get_shard', null, { problem: 'it ends in the middle' })).reason).toContain(
      'it ends in the middle',
    )
    expect(ruled(call('get_shard', null)).reason).toContain('not a JSON object')
  })
})

test('an ending passes although a secret was removed from it, and a read does not', () => {
  const escalate = call('escalate_incident', { id: incident, reason: 'help' }, { secret: true })
  expect(ruled(escalate, [looked('c1_0', [shard])])).toMatchObject({ verdict: 'run', code: 'TERMINAL' })
  expect(ruled(call('get_shard', { id: 'x' }, { secret: true }))).toMatchObject({
    code: 'SECRET_IN_ARGUMENTS',
    effect: 'read',
    risk: 'none',
  })
})

test('resolving a name is a read like any other', () => {
  const ruling = ruled(call('find_resource', { text: 'osl' }))
  expect(ruling).toMatchObject({ verdict: 'run', code: 'READ', effect: 'resolve' })
})

test('an ending is always offered, and only of the own incident', () => {
  const escalate = (id: string) => call('escalate_incident', { id, reason: 'help' })
  const rows = [looked('c1_0', [shard])]
  expect(ruled(escalate(incident), rows, { offered: [] }).verdict).toBe('run')
  const foreign = ruled(escalate('inc_00000000000000000000000002'), rows)
  expect(foreign).toMatchObject({ verdict: 'refuse', code: 'FOREIGN_INCIDENT' })
  expect(foreign.hint).toContain(incident)
})

test('a ruling names the targets of the dry run, or those of the call without one', () => {
  const preparation = { targets: [far], identity: { plan: 'a' }, stateFingerprint: '', dryRun }
  const rows = [looked('c1_0', [shard])]
  expect(ruled(converge({ prepared: { ok: true, preparation } }), rows)).toMatchObject({
    targets: [far],
    actionDigest: actionDigest('converge_shard', { plan: 'a' }),
  })
  expect(ruled(converge({ prepared: { ok: false, reason: 'gone' } }), rows)).toMatchObject({
    targets: [shard],
    reason: 'gone',
  })
})

describe('a command', () => {
  const known = [looked('c1_0', [host])]

  test('is a read without risk if it is proven to read, and otherwise a write of its tool', () => {
    expect(ruled(run('df -h'), known)).toMatchObject({ code: 'READ_COMMAND', effect: 'read', risk: 'none' })
    expect(ruled(run('frobnicate'), known)).toMatchObject({
      verdict: 'ask',
      code: 'UNPROVEN_COMMAND',
      effect: 'write',
      risk: 'high',
    })
    expect(ruled(run('frobnicate'), known).reason).toContain('frobnicate')
  })

  test('that reads something secret is a write to ask about', () => {
    expect(ruled(run('cat /etc/shadow'), known)).toMatchObject({ verdict: 'ask', effect: 'write' })
  })

  test('as root has the risk that two people approve', () => {
    expect(ruled(run('sudo systemctl restart mysql'), known)).toMatchObject({ verdict: 'ask', risk: 'critical' })
  })

  test('that is never run is refused, even with an approval', () => {
    const approval = {
      id: 'apr',
      callId: 'c9_0',
      actionDigest: actionDigest('exec', { target: host.id, command: 'rm -rf /' }),
      stateFingerprint: 'now',
    }
    const ruling = ruled(run('rm -rf /'), known, { approval })
    expect(ruling).toMatchObject({ verdict: 'refuse', code: 'FORBIDDEN_COMMAND' })
    expect(ruling.hint).toContain('No approval')
  })

  test('without an end is corrected once, and the record shows both', () => {
    const ruling = ruled(run('journalctl -f'), known)
    const to = String(ruling.arguments?.command)
    expect(ruling).toMatchObject({ verdict: 'run', effect: 'read', arguments: { target: host.id, command: to } })
    expect(ruling.corrected).toEqual([{ code: 'UNBOUNDED_COMMAND', field: 'command', from: 'journalctl -f', to }])
    expect(to).not.toContain('-f')
  })

  test('without an end that cannot be corrected is refused', () => {
    const ruling = ruled(run('vim'), known)
    expect(ruling).toMatchObject({
      verdict: 'refuse',
      code: 'UNBOUNDED_COMMAND',
      details: { suggested_rewrite: null },
      corrected: [],
      arguments: { command: 'vim' },
    })
    expect(ruling.hint).toContain('ends by itself')
  })

  test('runs only after something was looked up, even if it only reads', () => {
    const ruling = ruled(run('df -h'))
    expect(ruling).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
    expect(ruling.hint).toContain('exec')
  })
})

describe('a write', () => {
  const rows = [looked('c1_0', [shard]), looked('c2_0', [far])]

  test('to several resources is near only if each of them is', () => {
    expect(ruled(call('restart_all', { ids: [shard.id, far.id] }), rows).code).toBe('REVERSIBLE_FAR')
    expect(ruled(call('restart_all', { ids: [shard.id, far.id] }), rows, { vicinity: [far, shard] }).code).toBe(
      'REVERSIBLE_NEAR',
    )
  })

  test('to an unread resource is refused with the read that is missing', () => {
    const ruling = ruled(converge())
    expect(ruling.details).toEqual({ target: 'shard:db-osl-1' })
    expect(ruling.hint).toContain('get the shard')
    expect(ruling.hint).toContain('converge_shard')
  })

  test("to a target of another incident's write is refused with this target", () => {
    const busy = [{ target: 'shard:db-osl-1', incidentId: 'inc_other' }]
    const ruling = ruled(converge(), rows, { busy })
    expect(ruling).toMatchObject({ code: 'TARGET_BUSY', details: { target: 'shard:db-osl-1' } })
    expect(ruling.reason).toContain('inc_other')
  })

  test('while another write is unverified is refused with the read that verifies it', () => {
    const ruling = ruled(converge(), [...rows, wrote('c3_0', [shard, far])])
    expect(ruling).toMatchObject({
      code: 'FSM_BLOCKED',
      phase: 'VERIFYING',
      details: { targets: ['shard:db-osl-1', 'shard:db-ams-1'] },
    })
    expect(ruling.hint).toContain('Read shard:db-osl-1, shard:db-ams-1')
  })

  test('that is open itself may be judged again', () => {
    expect(ruled(converge({ callId: 'c3_0' }), [...rows, wrote('c3_0', [shard])]).verdict).toBe('run')
  })

  test('without a dry run of its effect is refused', () => {
    expect(ruled(converge({ prepared: null }), rows).code).toBe('NOT_PREPARED')
  })

  test('that a person denied in this attempt is not asked again', () => {
    const digest = actionDigest('converge_shard', { id: shard.id, reason: 'it lags' })
    const denied = row('approval_decided', { decision: 'deny', status: 'denied', actionDigest: digest })
    expect(ruled(converge(), [...rows, denied]).code).toBe('DENIED_BEFORE')
  })

  test('that was approved names the approval', () => {
    const approval = {
      id: 'apr_7',
      callId: 'c9_0',
      actionDigest: actionDigest('converge_shard', { id: shard.id, reason: 'it lags' }),
      stateFingerprint: 'now',
    }
    expect(ruled(converge(), rows, { approval })).toMatchObject({ code: 'APPROVED', reason: 'approved (apr_7)' })
  })

  test.each([
    ['low', 'RISK_LOW'],
    ['medium', 'RISK_MEDIUM'],
    ['high', 'RISK_HIGH'],
    ['critical', 'RISK_CRITICAL'],
  ] as const)('of %s risk that nobody can undo is asked under %s', (risk, code) => {
    const bold = new Map([['restart_all', { ...many, risk, reversible: false }]])
    expect(ruled(call('restart_all', { ids: [shard.id] }), rows, {}, bold)).toMatchObject({ verdict: 'ask', code })
  })

  test('of more than low risk is asked, although it can be undone', () => {
    const bold = new Map([['restart_all', { ...many, risk: 'medium' as const }]])
    expect(ruled(call('restart_all', { ids: [shard.id] }), rows, {}, bold).code).toBe('RISK_MEDIUM')
  })
})

describe('a risk in the configuration', () => {
  const rows = [looked('c1_0', [shard]), looked('c2_0', [host])]
  const to = (risk: 'none' | 'low' | 'medium' | 'critical') => ({ raised: { risk, required: 1 } })

  test('is raised, so that a call that ran unasked now asks', () => {
    expect(ruled(converge(), rows, to('critical'))).toMatchObject({ code: 'RISK_CRITICAL', risk: 'critical' })
    expect(ruled(converge(), rows, to('medium'))).toMatchObject({ verdict: 'ask', risk: 'medium' })
  })

  test('is never lowered', () => {
    expect(ruled(run('frobnicate'), rows, to('none')).risk).toBe('high')
    expect(ruled(run('touch /tmp/a'), rows, to('none')).risk).toBe('medium')
    expect(ruled(converge(), rows, to('low'))).toMatchObject({ code: 'REVERSIBLE_NEAR', risk: 'low' })
  })

  test('is raised for a command that acts, and not for a read', () => {
    expect(ruled(run('frobnicate'), rows, to('critical')).risk).toBe('critical')
    expect(ruled(run('df -h'), rows, to('critical')).risk).toBe('none')
    expect(ruled(call('get_shard', { id: 'x' }), rows, to('critical')).risk).toBe('none')
  })
})

describe('a resolution', () => {
  test('that cites an unknown row names it, with the list of rows', () => {
    const rows = Array.from({ length: 25 }, (_, n) => looked(`c${n}_0`, [shard]))
    const ruling = ruled(
      resolve({ claims: [{ ...seenNominal(25), quotes: [25, 26, 90].map((seq) => ({ seq, text: 'nominal' })) }] }),
      rows,
    )
    expect(ruling).toMatchObject({ code: 'EVIDENCE_MISSING', details: { missing: [26, 90] } })
    expect(ruling.reason).toContain('cites 26, 90,')
    expect(ruling.hint).toMatch(/: 6, 7, .*, 25$/)
  })

  test('by a follower is told that a hint proves nothing, and by a leader that it did not read', () => {
    const rows = [looked('c1_0', [far])]
    expect(ruled(resolve(), rows, { role: 'follower' }).reason).toContain('hint')
    expect(ruled(resolve(), rows, { role: 'leader' }).reason).not.toContain('hint')
  })

  test('is read in its own words and in its claims', () => {
    const rows = [looked('c1_0', [shard])]
    expect(ruled(resolve({ resolution: 'I restarted mysql on db-osl-1' }), rows).code).toBe('PHANTOM_CLAIM')
    expect(ruled(resolve({ claims: [seenNominal(1, 'I restarted mysql')] }), rows).code).toBe('PHANTOM_CLAIM')
  })

  test('of a repair rests on the last write, not on an earlier one', () => {
    const rows = [
      looked('c1_0', [shard]),
      wrote('c2_0', [shard]),
      verified('c2_0', 'held'),
      wrote('c3_0', [shard]),
      verified('c3_0', 'not_held'),
    ]
    expect(ruled(resolve({ outcome: 'repaired' }), rows).code).toBe('REPAIR_NOT_VERIFIED')
  })

  test('of an incident without a resource needs a read of any resource', () => {
    expect(ruled(resolve(), [looked('c1_0', [far])], { resource: null }).verdict).toBe('run')
  })
})

describe('repeating calls in a circle', () => {
  const before = (...ids: string[]) =>
    ids.map((id, n) =>
      row('call_judged', { callId: `c${n}_0`, tool: 'get_shard', arguments: { id }, verdict: 'run', code: 'READ' }),
    )
  const code = (rows: IncidentEvent[], id: string) => ruled(call('get_shard', { id }), rows).code

  test.each([
    [['a', 'b', 'a'], 'b', 'ALTERNATING_CALLS'],
    [['x', 'a', 'b', 'a'], 'b', 'ALTERNATING_CALLS'],
    [['b', 'a'], 'b', 'READ'],
    [['a', 'b', 'c'], 'b', 'READ'],
    [['a', 'b', 'a', 'c'], 'b', 'READ'],
    [['a', 'c', 'a'], 'b', 'READ'],
    [['a', 'b', 'c', 'a', 'b'], 'c', 'ALTERNATING_CALLS'],
    [['x', 'a', 'b', 'c', 'a', 'b'], 'c', 'ALTERNATING_CALLS'],
    [['a', 'b', 'c', 'd', 'a', 'b', 'c'], 'd', 'ALTERNATING_CALLS'],
    [['a', 'b', 'c', 'a', 'b'], 'd', 'READ'],
    [['a', 'b', 'c', 'b', 'a'], 'c', 'READ'],
    [['a', 'b', 'c', 'd', 'e', 'a', 'b', 'c', 'd'], 'e', 'READ'],
    [['b', 'b'], 'b', 'REPEATED_CALL'],
  ])('%j and then %s: %s', (ids, id, expected) => {
    expect(code(before(...ids), id)).toBe(expected)
  })
})

describe('words of a model in a reason', () => {
  test.each([
    ['a b-c_d,1€é', '"a b-c_d,1€é"'],
    ['a\u001b[2Jb\n', '"a\uFFFD[2Jb\uFFFD"'],
    ['x"y', '"x\\"y"'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
  ])('are quoted, short and inert: %j', (text, expected) => {
    expect(quote(text)).toBe(expected)
  })

  test('are never cut inside a character', () => {
    expect(quote(`${'x'.repeat(79)}😀y`)).toBe(`"${'x'.repeat(79)}\uFFFD…"`)
  })
})

test('a refusal has a hint and details only if they exist', () => {
  expect(refuse('PAUSED', 'why')).toEqual({ verdict: 'refuse', code: 'PAUSED', reason: 'why' })
  expect(refuse('PAUSED', 'why', 'do', { a: 1 })).toEqual({
    verdict: 'refuse',
    code: 'PAUSED',
    reason: 'why',
    hint: 'do',
    details: { a: 1 },
  })
  expect(ruled(call('get_shard', { id: 'x' }))).toMatchObject({ hint: null, details: {} })
})
