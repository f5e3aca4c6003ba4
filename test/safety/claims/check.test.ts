import { describe, expect, test } from '@jest/globals'
import { type Claim, claim as claimSchema, marked } from '../../../domain/claim.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import { withMarks } from '../../../domain/hypothesis.ts'
import { fence, inertJson } from '../../../domain/inert-text.ts'
import { type Policy, plainPolicy } from '../../../domain/refusal.ts'
import { checkClaim } from '../../../safety/claims/check.ts'
import { evidenceOf } from '../../../safety/claims/rows.ts'
import { fold } from '../../../safety/fold.ts'
import { type Call, judge } from '../../../safety/judge.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { logOf, looked, partOfRow, row, seenNominal, verified, wrote } from '../../support/events.ts'
import { foundIn } from './from-played.ts'
import { claimOf } from './site.ts'

const incidentId = 'inc_00000000000000000000000001'
const shard = { kind: 'shard' as const, id: 'db-osl-1' }
const now = Date.parse('2026-11-21T02:10:00Z')

function ending(tool: string, args: Record<string, unknown>): Call {
  return { callId: 'c9_0', tool, arguments: { id: incidentId, ...args }, problem: null, prepared: null }
}
const resolve = (claims: unknown[], outcome = 'repaired', resolution = 'it is over') =>
  ending('resolve_incident', { resolution, outcome, claims })
const ruled = (call: Call, rows: IncidentEvent[], more: Partial<Policy> = {}) =>
  judge(call, toolFacts, fold(logOf(...rows), 1, shard), { ...plainPolicy(incidentId, shard), ...more }, now)

const repair = [looked('c1_0', [shard]), wrote('c2_0', [shard]), written('c2_0'), verified('c2_0', 'held')]
const refusedBefore = partOfRow('call_judged', {
  callId: 'c8_0',
  tool: 'resolve_incident',
  arguments: {},
  verdict: 'refuse',
  code: 'CLAIM_NOT_SHOWN',
})

function written(callId: string): IncidentEvent {
  return partOfRow('tool_finished', {
    callId,
    tool: 'converge_shard',
    arguments: { id: shard.id },
    effect: 'write',
    targets: [shard],
    outcome: 'done',
    result: { ok: true, data: { detail: 'db-osl-1: restarted' }, meta: {} },
    body: null,
    discovered: [],
  })
}

describe('an ending', () => {
  test('with a number that no row has is marked, and not refused for its words', () => {
    const call = resolve([seenNominal(1, 'CPU usage is 3%')], 'self_resolved')
    expect(ruled(call, [looked('c1_0', [shard])])).toMatchObject({
      verdict: 'run',
      code: 'TERMINAL',
      details: { claims: [{ shown: false, grade: 'C', code: 'NUMBER_NOT_SHOWN' }] },
    })
  })

  test('gives a number in the unit beside it in the answer', () => {
    const series = [{ labels: { instance: 'web-1' }, unit: 'bytes', last: 203_500_000 }]
    const read = partOfRow('tool_finished', {
      callId: 'c1_0',
      tool: 'query_metrics',
      arguments: {},
      effect: 'read',
      targets: [shard],
      outcome: 'done',
      result: { ok: true, data: { summary: { series } }, meta: {} },
      body: null,
      discovered: [],
    })
    const claim = (text: string) => ({ kind: 'was', text, quotes: [{ seq: 1, text: '"last":203500000' }] })
    const isShown = (text: string) =>
      (ruled(resolve([claim(text)], 'self_resolved'), [read]).details.claims as { shown: boolean }[])[0]?.shown
    for (const text of ['it held 203500000 bytes', 'it held 194 MiB of memory'])
      expect([text, isShown(text)]).toEqual([text, true])
    for (const text of ['it took 203500000 seconds', 'it held 300 MB'])
      expect([text, isShown(text)]).toEqual([text, false])
  })

  /** A page about a pod, as a server gives it. */
  const page = (text: string[]) =>
    partOfRow('tool_finished', {
      callId: 'c1_0',
      tool: 'http_read',
      arguments: { path: '/pods/billing-7c' },
      effect: 'read',
      targets: [shard],
      outcome: 'done',
      result: { ok: true, data: { summary: { text } }, meta: {} },
      body: null,
      discovered: [],
    })
  const found = (read: IncidentEvent, text: string, quoted: string) => {
    const said = { kind: 'was', text, quotes: [{ seq: 1, text: quoted }] }
    return (ruled(resolve([said], 'self_resolved'), [read]).details.claims as { code?: string }[])[0]?.code ?? 'shown'
  }
  const pod = page([
    'billing-7c 0/1 Pending 0 94s',
    'Warning Unhealthy kubelet Permission denied by the volume of the ledger',
    'Node-Selectors: disk=fast, max_wait=3',
    'Rate: Normal=2 -> Current=9 (+350%)',
  ])

  test('is supported by rows in the words of the quoted line, and not of its name alone', () => {
    const grade = (text: string, quoted: string) => {
      const said = { kind: 'was', text, quotes: [{ seq: 1, text: quoted }] }
      return (ruled(resolve([said], 'self_resolved'), [pod]).details.claims as { grade: string }[])[0]?.grade
    }
    expect(grade('the volume of the ledger denied permission', 'Permission denied')).toBe('A')
    expect(grade('the volume of the ledger denied permission', 'billing-7c 0/1 Pending')).toBe('B')
    expect(grade('billing cannot start, since its certificate lapsed', 'billing-7c 0/1 Pending')).toBe('B')
  })

  test('finds in its rows what only a program writes: a pair, a name with an underscore, a name with a capital inside', () => {
    expect(found(pod, 'its selector wants disk=fast', 'Node-Selectors: disk=fast')).toBe('shown')
    for (const other of ['disk=slow', 'min_wait', 'targetPort'])
      expect([other, found(pod, `its selector wants ${other}`, 'Node-Selectors: disk=fast')]).toEqual([
        other,
        'OTHER_RESOURCE',
      ])
  })

  test('may put words in quotation marks that are in the quoted line, and not those elsewhere on the page', () => {
    expect(found(pod, 'the kubelet says "Permission denied"', 'Permission denied by the volume')).toBe('shown')
    expect(found(pod, 'it waits, for "Permission denied"', 'billing-7c 0/1 Pending')).toBe('OTHER_RESOURCE')
  })

  test('is not supported by a small number that occurs in any line', () => {
    expect(found(pod, '1 machine had an unhealthy taint', 'billing-7c 0/1 Pending')).not.toBe('shown')
    expect(found(page(['1 machine had an unhealthy taint']), '1 machine had a taint', '1 machine had')).toBe('shown')
  })

  test('may quote words with an arrow in them', () => {
    expect(found(pod, 'the rate rose: "Normal=2 -> Current=9"', 'Normal=2 -> Current=9')).toBe('shown')
  })

  test('may say forbidden, refused, taken, throttled or evicted if the quote does', () => {
    expect(found(page(['port 8080 is already in use']), 'its port is taken', 'is already in use')).toBe('shown')
    expect(found(pod, 'its pods are forbidden', 'billing-7c 0/1 Pending')).toBe('STATE_NOT_SHOWN')
  })

  test('cites words of a row, and not any row by its number', () => {
    const quoted = { kind: 'was', text: 'it was nominal', quotes: [{ seq: 1, text: 'all is well' }] }
    const ruling = ruled(resolve([quoted], 'self_resolved'), [looked('c1_0', [shard])])
    expect(ruling).toMatchObject({ code: 'CLAIM_NOT_SHOWN', details: { claims: [{ code: 'QUOTE_NOT_FOUND' }] } })
    expect(ruling.reason).toContain('is not in row 1')
  })

  test('whose repair held passes the second time, with its unsupported claims marked', () => {
    const lie = { kind: 'did', text: 'I deleted db-osl-1', quotes: [{ seq: 3, text: 'restarted' }] }
    const call = resolve([lie, { ...lie, text: 'I restarted db-osl-1' }])
    expect(ruled(call, repair)).toMatchObject({ verdict: 'refuse', code: 'CLAIM_NOT_SHOWN' })
    const ruling = ruled(call, [...repair, refusedBefore])
    expect(ruling).toMatchObject({ verdict: 'run', details: { claims: [{ shown: false }, { shown: true }] } })
  })

  test('that was refused for its words alone may be sent again, which is no repetition', () => {
    const call = resolve([seenNominal(1, 'it was critical')], 'self_resolved')
    const asked = partOfRow('call_judged', { ...refusedBefore.metadata, arguments: call.arguments })
    expect(ruled(call, [looked('c1_0', [shard]), asked]).verdict).toBe('run')
  })

  test.each(['no_fault', 'answered'])(
    'as %s is refused once while a row contradicts a claim, and marked the second time',
    (outcome) => {
      const call = resolve([seenNominal(1, 'it was critical')], outcome)
      const about = { isQuestion: outcome === 'answered' }
      const wrong = ruled(call, [looked('c1_0', [shard])], about)
      expect(wrong).toMatchObject({ code: 'CLAIM_NOT_SHOWN', reason: expect.stringContaining('row 1 says') })
      const again = ruled(call, [looked('c1_0', [shard]), refusedBefore], about)
      expect(again).toMatchObject({ verdict: 'run', details: { claims: [{ grade: 'C' }] } })
      expect(ruled(resolve([seenNominal(1)], outcome), [looked('c1_0', [shard])], about).verdict).toBe('run')
    },
  )

  test('is not delayed for its words if a limit was announced, and its unsupported claims are marked at once', () => {
    const warned = row('correction_sent', { code: 'budget_turns', text: '' })
    const call = resolve([seenNominal(1, 'it was critical')], 'self_resolved')
    expect(ruled(call, [looked('c1_0', [shard]), warned])).toMatchObject({
      verdict: 'run',
      details: { claims: [{ shown: false }] },
    })
  })

  test('is marked in its resolution if no row supports it', () => {
    const call = resolve([seenNominal(1)], 'self_resolved', 'db-osl-1 was nominal; node-osl-77 lagged 93 s.')
    expect(ruled(call, [looked('c1_0', [shard])])).toMatchObject({
      verdict: 'run',
      details: { unshown: [{ text: 'node-osl-77 lagged 93 s' }] },
    })
  })

  test('that escalates names no write without its row, marks other unsupported claims, and may advise anything', () => {
    const rows = [looked('c1_0', [shard])]
    const reason = (text: string) => ruled(ending('escalate_incident', { reason: text }), rows)
    expect(reason('I restarted db-osl-1, and it is nominal.').verdict).toBe('refuse')
    expect(reason('db-osl-1 was restarted and is 42 s behind.')).toMatchObject({
      verdict: 'run',
      details: { unshown: [{ text: 'db-osl-1 was restarted' }, { text: 'is 42 s behind' }] },
    })
    expect(reason('db-osl-1 is nominal. Somebody should add 20 GiB to node-osl-9.').details).toMatchObject({
      unshown: [],
    })
  })

  test('with the wrong number of a row is stored with the right one', () => {
    const call = resolve([seenNominal(77)], 'self_resolved')
    const { code, details } = ruled(call, [looked('c1_0', [shard])])
    expect(code).toBe('TERMINAL')
    const [stored] = marked((call.arguments as { claims: Claim[] }).claims, details).claims
    expect(stored).toMatchObject({ shown: true, quotes: [{ seq: 1 }] })
  })
})

describe('a claim of absence', () => {
  const nothing = {
    kind: 'absent',
    text: 'Nothing stands in the log of db-osl-1.',
    quotes: [{ seq: 1, text: '' }],
  }
  const reading = (data: Record<string, unknown>) =>
    partOfRow('tool_finished', {
      callId: 'c1_0',
      tool: 'search_logs',
      arguments: { labels: { instance: 'db-osl-1' } },
      effect: 'read',
      targets: [shard],
      outcome: 'done',
      result: { ok: true, data: { source: 'logs', digest: null, about: [], ...data }, meta: {} },
      body: null,
      discovered: [],
    })
  const found = (data: Record<string, unknown>, claim: Record<string, unknown> = nothing) =>
    [checkClaim(claimSchema.parse(claim), evidenceOf(fold(logOf(reading(data)), 1, shard), incidentId, new Map()))].map(
      (problem) => problem?.code ?? null,
    )

  test('is supported by a source that found nothing, not by a partial result or one that found something', () => {
    expect(found({ isEmpty: true, isPartial: false, summary: { templates: [] } })).toEqual([null])
    expect(found({ isEmpty: true, isPartial: true, summary: { partial: ['a store is away'], templates: [] } })).toEqual(
      ['CUT'],
    )
    expect(found({ isEmpty: false, isPartial: false, summary: { templates: [{ template: 'disk full' }] } })).toEqual([
      'STILL_THERE',
    ])
  })

  test('is not supported by templates of lines, nor by a summary that leaves something out', () => {
    const killer = {
      kind: 'absent',
      text: 'No line of db-osl-1 names the oom-killer.',
      quotes: [{ seq: 1, text: 'oom-killer' }],
    }
    const whole = { isEmpty: false, isPartial: false }
    const templates = [{ template: 'checkpoint took <*> ms', count: 12 }]
    expect(found({ ...whole, summary: { templates } }, killer)).toEqual(['CUT'])
    const series = [{ labels: { instance: 'db-osl-1' }, value: 1 }]
    expect(found({ ...whole, summary: { series, notShown: 3 } }, killer)).toEqual(['CUT'])
    expect(found({ ...whole, summary: { series } }, killer)).toEqual([null])
    expect(found({ isEmpty: true, isPartial: false, summary: { templates: [] } }, killer)).toEqual([null])
  })
})

describe('an invalid claim', () => {
  const refusedFor = (sent: unknown) => {
    const parsed = claimSchema.safeParse(sent)
    return parsed.success ? null : parsed.error.issues.map(({ message }) => message).join('; ')
  }

  test.each([
    ['of the form of an older version', { text: 'x', evidence: [1] }, 'send quotes: [{ seq, text }]'],
    ['without a quote', { kind: 'is', text: 'x', quotes: [] }, 'a claim quotes at least one result'],
    ['of 50 kB', { kind: 'is', text: 'x'.repeat(50_000), quotes: [{ seq: 1, text: 'x' }] }, 'at most 500 characters'],
    [
      'with a quote of 50 kB',
      { kind: 'is', text: 'x', quotes: [{ seq: 1, text: 'x'.repeat(50_000) }] },
      'quote only the words',
    ],
  ])('%s is refused with what would be accepted', (_title, sent, told) => {
    expect(refusedFor(sent)).toContain(told)
  })
})

describe('quotes', () => {
  const reasons: [title: string, claim: ReturnType<typeof claimOf>, found: string | null][] = [
    [
      'match whatever their blanks and escapes are',
      claimOf('was', 'app-osl-1 was critical', [4, '\\"status\\" :\n "critical"']),
      null,
    ],
    [
      'begin and end with whole numbers',
      claimOf('was', 'app-osl-1 had 7 connections', [4, '"connections":9']),
      'QUOTE_NOT_FOUND',
    ],
    [
      'of a write are found in its verification too',
      claimOf('did', 'web on app-osl-1 was restarted', [37, 'web on app-osl-1 is nominal']),
      null,
    ],
    [
      'of a log that repeats the answers of this agent show nothing',
      claimOf('was', 'app-osl-2 was critical', [28, 'critical']),
      'QUOTE_NOT_FOUND',
    ],
    [
      'of a program that prints its arguments show nothing',
      claimOf('is', 'CPU usage is 3%', [25, 'CPU usage is 3%']),
      'NO_READ',
    ],
  ]
  test.each(reasons)('%s', (_title, claim, found) => {
    expect(foundIn('site', claim) === null).toBe(found === null)
  })
})

describe('words that the fence changed', () => {
  const line = 'java.util.List<String> of <system> at [INST] was null, 3 < 5'
  const finished = row('tool_finished', {
    callId: 'c1_0',
    tool: 'search_logs',
    arguments: { shard_id: 'db-osl-1' },
    effect: 'read',
    targets: [shard],
    outcome: 'done',
    result: { ok: true, data: { lines: [line] }, meta: {} },
    body: null,
    discovered: [],
  })
  const between = (text: string, last: string) => text.slice(text.indexOf('java'), text.indexOf(last) + last.length)

  test.each([
    ['as they stand in the row', line],
    ['as a fence shows them', between(fence('earlier_calls', line), '< 5')],
    ['as a result shows them to a server with native tools', between(inertJson({ line }), 'u003c 5')],
    ['as a result shows them to a server without', between(fence('tool_result', inertJson({ line })), 'u003c 5')],
    ['in a piece', 'List‹String> of ‹system>'],
  ])('are found %s', (_title, text) => {
    const claim = claimSchema.parse({ kind: 'was', text: 'db-osl-1 logged a null', quotes: [{ seq: 1, text }] })
    const problem = checkClaim(claim, evidenceOf(fold(logOf(finished), 1, shard), incidentId, new Map()))
    expect(problem?.code).not.toBe('QUOTE_NOT_FOUND')
  })
})

describe('several fields quoted at once', () => {
  const node = { id: 'node-osl-2', ip: '10.0.0.2', reason: null, shard: 'db-osl-1', status: 'critical' }
  const listed = row('tool_finished', {
    callId: 'c1_0',
    tool: 'list_nodes_by_shard',
    arguments: { shard_id: 'db-osl-1' },
    effect: 'read',
    targets: [shard],
    outcome: 'done',
    result: { ok: true, data: { items: [{ ...node, id: 'node-osl-1', status: 'nominal' }, node] }, meta: {} },
    body: null,
    discovered: [],
  })
  const found = (text: string) => {
    const claim = claimSchema.parse({ kind: 'was', text: 'node-osl-2 was critical', quotes: [{ seq: 1, text }] })
    return checkClaim(claim, evidenceOf(fold(logOf(listed), 1, shard), incidentId, new Map()))?.code ?? null
  }

  test('are found if the row has others between them that the model was not shown', () => {
    expect(found('{"id":"node-osl-2","status":"critical"}')).toBeNull()
    expect(found('"status":"critical","id":"node-osl-2"')).toBeNull()
  })

  test('are not found if they belong to two resources, or one of them differs', () => {
    expect(found('{"id":"node-osl-1","status":"critical"}')).toBe('QUOTE_NOT_FOUND')
    expect(found('{"id":"node-osl-2","status":"degraded"}')).toBe('QUOTE_NOT_FOUND')
    expect(found('"osl-2":"node","status":"critical"')).toBe('QUOTE_NOT_FOUND')
  })
})

test('the verification of a write may be quoted by its own number or by that of the write', () => {
  const held = partOfRow('verification', {
    ...verified('c2_0', 'held').metadata,
    observed: 'all 2 nodes of db-osl-1 are nominal',
  })
  const rows = logOf(looked('c1_0', [shard]), wrote('c2_0', [shard]), written('c2_0'), held)
  const claims = [3, 4].map((seq) => ({
    kind: 'is' as const,
    text: 'both nodes of db-osl-1 are nominal',
    quotes: [{ seq, text: 'all 2 nodes of db-osl-1 are nominal' }],
  }))
  const evidence = evidenceOf(fold(rows, 1, shard), incidentId, new Map())
  expect(claims.map((claim) => checkClaim(claim, evidence))).toEqual([null, null])
  expect(ruled(resolve(claims), rows).verdict).toBe('run')
})

describe('marks', () => {
  const claim = seenNominal(1, 'it was critical')

  test('are put on the claims that the ruling found unsupported', () => {
    expect(marked([claim], { claims: [{ shown: false, why: 'no quote says so' }] }).claims).toEqual([
      { ...claim, shown: false, why: 'no quote says so' },
    ])
    expect(marked([claim], {})).toEqual({ claims: [claim], unshown: [] })
  })

  test('are in the text that every reader gets', () => {
    expect(withMarks('over', [{ ...claim, shown: true }], [])).toBe('over')
    expect(withMarks('over', [{ ...claim, shown: false }], [])).toBe(
      'over\n\n[not shown by its evidence: "it was critical"]',
    )
    expect(withMarks('over', [{ text: 'old', evidence: [1] }], [])).toBe('over')
  })
})
