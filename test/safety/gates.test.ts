import { describe, expect, test } from '@jest/globals'
import { actionDigest } from '../../domain/digest.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { plainPolicy, refusals } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { type Call, judge, type Policy } from '../../safety/judge.ts'
import { isGrantable } from '../../safety/write.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, looked, partOfRow, row, seenNominal, verified, wrote } from '../support/events.ts'

const incident = 'inc_00000000000000000000000001'
const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const now = Date.parse('2026-11-21T02:10:00Z')
const policy = plainPolicy(incident, shard)

function call(tool: string, args: Record<string, unknown>, more: Partial<Call> = {}): Call {
  const preparation = { targets: [], identity: args, stateFingerprint: '', dryRun }
  return { callId: 'c9_0', tool, arguments: args, problem: null, prepared: { ok: true, preparation }, ...more }
}
const dryRun = { possible: false, summary: '', details: {} }

const ruled = (asked: Call, rows: IncidentEvent[], more: Partial<Policy> = {}) =>
  judge(asked, toolFacts, fold(logOf(...rows), 1, shard), { ...policy, ...more }, now)

const judgedRow = (n: number, tool: string, args: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  partOfRow('call_judged', { callId: `c${n}_0`, tool, arguments: args, verdict: 'run', code: 'READ', ...more })

describe('names', () => {
  const two = row('tool_finished', {
    ...(looked('c1_0', [shard]) as IncidentEvent<'tool_finished'>).metadata,
    discovered: [
      { ...shard, name: 'oslo', aliases: ['db-primary'] },
      { kind: 'shard', id: 'db-ams-1', name: 'amsterdam', aliases: ['db-primary'] },
    ],
  })

  test('a write may use the name that a look-up returned, and is run and recorded under the id', () => {
    const ruling = ruled(call('converge_shard', { id: 'oslo', reason: 'it lags' }), [two])
    expect(ruling).toMatchObject({ verdict: 'run', arguments: { id: 'db-osl-1' } })
  })

  test('a name with two meanings is refused and both are listed, for reads and for writes', () => {
    for (const tool of ['converge_shard', 'get_shard']) {
      const args = { id: 'db-primary', ...(tool === 'converge_shard' && { reason: 'it lags' }) }
      expect(ruled(call(tool, args), [two])).toMatchObject({
        verdict: 'refuse',
        code: 'AMBIGUOUS_NAME',
        details: { candidates: ['shard:db-osl-1', 'shard:db-ams-1'] },
      })
    }
  })
})

describe('repeating calls in a circle', () => {
  const a = { id: 'db-osl-1' }
  const b = { id: 'db-ams-1' }

  test('two alternating calls are refused in the second round', () => {
    const rows = [judgedRow(1, 'get_shard', a), judgedRow(2, 'get_shard', b), judgedRow(3, 'get_shard', a)]
    expect(ruled(call('get_shard', b), rows).code).toBe('ALTERNATING_CALLS')
    expect(ruled(call('get_shard', { id: 'db-osl-2' }), rows).code).toBe('READ')
  })

  test('a read before and after a write is no circle', () => {
    const rows = [
      judgedRow(1, 'get_shard', a),
      judgedRow(2, 'get_shard', b),
      judgedRow(3, 'get_shard', a),
      wrote('c3_1', [shard]),
      verified('c3_1', 'held'),
    ]
    expect(ruled(call('get_shard', b), rows).code).toBe('READ')
  })

  test('each refusal of a circle counts', () => {
    const rows = [1, 2, 3].map((n) => judgedRow(n, 'get_shard', a, { verdict: 'refuse', code: 'REPEATED_CALL' }))
    expect(fold(logOf(...rows), 1).loops).toBe(3)
  })
})

describe('claims of an ending', () => {
  const resolve = (outcome: string, text = 'it was nominal', resolution = 'see the evidence') =>
    call('resolve_incident', { id: incident, resolution, outcome, claims: [seenNominal(1, text)] })

  test("a resolution needs a read of the incident's resource", () => {
    const elsewhere = looked('c1_0', [{ kind: 'shard', id: 'db-ams-1' }])
    expect(ruled(resolve('no_fault'), [elsewhere])).toMatchObject({
      code: 'OWN_TARGET_UNSEEN',
      details: { target: 'shard:db-osl-1' },
    })
    expect(ruled(resolve('no_fault'), [looked('c1_0', [shard])]).verdict).toBe('run')
  })

  test('a run that wrote cannot end as no fault', () => {
    const rows = [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'held')]
    expect(ruled(resolve('no_fault'), rows).code).toBe('WROTE_SOMETHING')
  })

  test('an action without a row is refused once, and a second time it is marked, and never ends an incident as no fault', () => {
    const lie = resolve('self_resolved', 'I restarted mysql on db-osl-1')
    const first = ruled(lie, [looked('c1_0', [shard])])
    expect(first).toMatchObject({ code: 'PHANTOM_CLAIM', details: { category: 'action' } })
    const told = partOfRow('call_judged', {
      callId: 'c5_0',
      tool: 'resolve_incident',
      arguments: {},
      verdict: 'refuse',
      code: 'PHANTOM_CLAIM',
    })
    expect(ruled(lie, [looked('c1_0', [shard]), told])).toMatchObject({
      verdict: 'run',
      details: { claims: [{ shown: false, code: 'NOT_WRITTEN' }] },
    })
    const fine = resolve('no_fault', 'I restarted mysql on db-osl-1')
    expect(ruled(fine, [looked('c1_0', [shard]), told]).code).toBe('CLAIM_NOT_SHOWN')
  })
})

test('a call with a secret is refused, and none of the secret is in the ruling', () => {
  const ruling = ruled(
    call('add_incident_event', { incident_id: incident, action: 'commented', detail: 'x' }, { secret: true }),
    [],
  )
  expect(ruling).toMatchObject({ verdict: 'refuse', code: 'SECRET_IN_ARGUMENTS', arguments: null })
})

test('a write that names no target is refused', () => {
  const nameless = new Map([['w', { ...toolFacts.get('converge_shard')!, name: 'w', names: {} }]])
  const state = fold(logOf(looked('c1_0', [shard])), 1)
  const ruling = judge(call('w', { id: 'db-osl-1', reason: 'it lags' }), nameless, state, policy, now)
  expect(ruling).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
})

test('a write without a declared risk asks like any other', () => {
  const bold = new Map([['w', { ...toolFacts.get('converge_shard')!, name: 'w', risk: 'none' as const }]])
  const state = fold(logOf(looked('c1_0', [shard])), 1)
  expect(judge(call('w', { id: 'db-osl-1', reason: 'it lags' }), bold, state, policy, now).verdict).toBe('ask')
})

test('every refusal has a class, and says whether a model recovers from it by itself', () => {
  for (const [code, { class: errorClass, recoverable }] of Object.entries(refusals)) {
    expect([code, errorClass]).toEqual([code, expect.stringMatching(/^[A-Z_]+$/)])
    expect(typeof recoverable).toBe('boolean')
  }
})

describe('a standing grant', () => {
  const far: ResourceRef = { kind: 'shard', id: 'db-ams-1' }
  const args = { id: far.id, reason: 'it lags' }
  const known = [looked('c1_0', [far])]
  const dry = { targets: [far], identity: { id: far.id }, stateFingerprint: 'as it was', dryRun }
  const converge = call('converge_shard', args, { prepared: { ok: true, preparation: dry } })
  const digest = actionDigest('converge_shard', { id: far.id })
  const grant = { id: 'grt_1', actionDigest: digest, stateFingerprint: 'as it was' }

  test('lets the same action run, and is named', () => {
    const ruling = ruled(converge, known, { grants: [{ ...grant, id: 'grt_0', actionDigest: 'other' }, grant] })
    expect(ruling).toMatchObject({ verdict: 'run', code: 'GRANTED', details: { grant: 'grt_1' } })
  })

  test.each<[string, Partial<Policy>]>([
    ['for another action', { grants: [{ ...grant, actionDigest: 'other' }] }],
    ['for another state of the platform', { grants: [{ ...grant, stateFingerprint: 'before' }] }],
    ['of which there is none', { grants: [] }],
  ])('%s lets nothing run', (_title, more) => {
    expect(ruled(converge, known, more)).toMatchObject({ verdict: 'ask', code: 'REVERSIBLE_FAR' })
  })

  test('counts for a medium risk, never for a high or critical one', () => {
    const at = (risk: 'medium' | 'high' | 'critical') =>
      ruled(converge, known, { grants: [grant], raised: { risk, required: 1 } }).code
    expect([at('medium'), at('high'), at('critical')]).toEqual(['GRANTED', 'RISK_HIGH', 'RISK_CRITICAL'])
  })

  test('is not used up by a call that runs without approval anyway', () => {
    const near = { ...dry, targets: [shard], identity: { id: shard.id } }
    const asked = call(
      'converge_shard',
      { id: shard.id, reason: 'it lags' },
      { prepared: { ok: true, preparation: near } },
    )
    const own = { ...grant, actionDigest: actionDigest('converge_shard', { id: shard.id }) }
    expect(ruled(asked, [looked('c1_0', [shard])], { grants: [own] }).code).toBe('REVERSIBLE_NEAR')
  })

  test.each<[string, Partial<ToolFacts>, boolean]>([
    ['a tool that code marks', {}, true],
    ['one that it does not', { grantable: false }, false],
    ['one that carries commands', { command: { field: 'command', form: 'bash' } }, false],
    ['a high risk', { risk: 'high' }, false],
    ['a medium risk', { risk: 'medium' }, true],
    ['no risk at all, which is a mistake', { risk: 'none' }, false],
  ])('%s may be granted: %#', (_title, change, expected) => {
    expect(isGrantable({ ...toolFacts.get('converge_shard')!, ...change })).toBe(expected)
  })
})

describe("a person's message to the agent", () => {
  const far: ResourceRef = { kind: 'shard', id: 'db-ams-1' }
  const told = (text: string, named: ResourceRef[]) =>
    row(
      'commented',
      {
        text,
        confidence: null,
        action: 'told',
        named: named.map((ref) => ({ ...ref, name: ref.id, aliases: [] })),
      },
      { actor: 'user:anna' },
    )
  const turn = (read: number[]) =>
    row('model_answered', { content: '', calls: [], read, usage: { promptTokens: 1, completionTokens: 1 } })
  const converge = call(
    'converge_shard',
    { id: far.id, reason: 'it lags' },
    { prepared: { ok: true, preparation: { targets: [far], identity: { id: far.id }, stateFingerprint: '', dryRun } } },
  )

  test('names what counts as known from the turn that reads it, and brings nothing nearer', () => {
    const message = told('it is db-ams-1', [far])
    expect(ruled(converge, [message])).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
    expect(ruled(converge, [message, turn([])])).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
    expect(ruled(converge, [message, turn([1])])).toMatchObject({ verdict: 'ask', code: 'REVERSIBLE_FAR' })
  })

  test.each(['I approve', 'go ahead, approved by me', 'APPROVED db-ams-1 converge_shard', 'yes'])(
    '"%s" changes no ruling',
    (text) => {
      const without = ruled(converge, [told('look there', [far]), turn([1])])
      expect(ruled(converge, [told(text, [far]), turn([1])])).toEqual(without)
    },
  )

  test('is no read and no evidence', () => {
    const state = fold(logOf(told('db-osl-1 is nominal', [shard]), turn([1])), 1, shard)
    expect([state.lookedAt.size, state.looks.size, state.evidence.size, state.diagnostics]).toEqual([0, 0, 0, 0])
  })

  test('names nothing if the row is of the agent or of a comment', () => {
    const comment = row(
      'commented',
      { text: 'db-ams-1', confidence: null, action: 'commented' },
      { actor: 'user:anna' },
    )
    expect(ruled(converge, [comment, turn([1])])).toMatchObject({ code: 'STRICT_RESOLUTION' })
  })
})

describe('hypotheses', () => {
  const say = (more: Record<string, unknown>) =>
    call('add_incident_event', {
      incident_id: incident,
      action: 'investigated',
      detail: 'the replica stopped',
      ...more,
    })
  const nominal = { seq: 1, text: '"status":"nominal"' }
  const rows = [looked('c1_0', [shard])]
  const supposed = (state: 'proposed' | 'supported' | 'refuted', quotes = [nominal]) =>
    row('commented', {
      text: 'x',
      confidence: null,
      action: 'investigated',
      hypothesis: { id: 'h1', text: 'the replica stopped', state, quotes },
    })

  test.each<[string, Record<string, unknown>, string]>([
    ['a proposed one needs no rows', { hypothesis: 'proposed' }, 'RECORD'],
    ['a supported one quotes rows', { hypothesis: 'supported', quotes: [nominal] }, 'RECORD'],
    ['a refuted one too', { hypothesis: 'refuted', quotes: [nominal] }, 'RECORD'],
    ['without quotes it is refused', { hypothesis: 'supported' }, 'HYPOTHESIS_NOT_SHOWN'],
    ['with none either', { hypothesis: 'refuted', quotes: [] }, 'HYPOTHESIS_NOT_SHOWN'],
    [
      'words that do not stand there show nothing',
      { hypothesis: 'supported', quotes: [{ seq: 1, text: 'dead' }] },
      'HYPOTHESIS_NOT_SHOWN',
    ],
    [
      'nor does a row that is none',
      { hypothesis: 'supported', quotes: [{ seq: 9, text: 'nominal' }] },
      'HYPOTHESIS_NOT_SHOWN',
    ],
    ['a plain finding is recorded as before', {}, 'RECORD'],
  ])('%s', (_title, more, code) => {
    const ruling = ruled(say(more), rows)
    expect(ruling.code).toBe(code)
    if (ruling.verdict === 'refuse') expect(ruling.hint).toBeTruthy()
  })

  test('a refusal of a hypothesis does not count as a corrected ending and does not delay the ending', () => {
    const refused = judgedRow(2, 'add_incident_event', {}, { verdict: 'refuse', code: 'HYPOTHESIS_NOT_SHOWN' })
    expect(fold(logOf(...rows, refused), 1).phantoms).toBe(0)
  })

  const escalate = (certainty?: string) =>
    call('escalate_incident', { id: incident, reason: 'A person has to look.', ...(certainty && { certainty }) })

  test.each<[string, IncidentEvent[], string | undefined, Record<string, unknown>]>([
    [
      'confirmed stays where rows support a hypothesis',
      [supposed('supported')],
      'confirmed',
      { certainty: 'confirmed' },
    ],
    [
      'and where a write held',
      [wrote('c2_0', [shard]), verified('c2_0', 'held')],
      'confirmed',
      { certainty: 'confirmed' },
    ],
    [
      'it is lowered where one is only proposed',
      [supposed('proposed', [])],
      'confirmed',
      { certainty: 'likely', claimed: 'confirmed' },
    ],
    [
      'and further where all are refuted',
      [supposed('refuted')],
      'confirmed',
      { certainty: 'inconclusive', claimed: 'confirmed' },
    ],
    ['likely without any is inconclusive', [], 'likely', { certainty: 'inconclusive', claimed: 'likely' }],
    ['who says less is not raised', [supposed('supported')], 'inconclusive', { certainty: 'inconclusive' }],
    ['a model that says nothing is likely at most', [supposed('supported')], undefined, { certainty: 'likely' }],
    ['and inconclusive without any', [], undefined, { certainty: 'inconclusive' }],
  ])('%s', (_title, more, certainty, expected) => {
    const { verdict, details } = ruled(escalate(certainty), [...rows, ...more])
    expect(verdict).toBe('run')
    const { certainty: is, claimed } = details
    expect({ certainty: is, ...(claimed !== undefined && { claimed }) }).toEqual(expected)
  })
})
