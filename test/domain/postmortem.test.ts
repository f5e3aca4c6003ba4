import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import {
  foldPostmortem,
  type Postmortem,
  type PostmortemEdit,
  type PostmortemSection,
  parsePostmortem,
  postmortemMarkdown,
} from '../../domain/postmortem.ts'
import { logOf, looked, row, verified, wrote } from '../support/events.ts'

const shard = { kind: 'shard' as const, id: 'db-osl-1' }
const incident = {
  id: 'inc_00000000000000000000000001',
  title: 'Replica behind',
  type: 'replication_lag',
  attempt: 1,
  severity: 'critical' as const,
  resource: shard,
  alerts: { firing: 0, unknown: 0 },
  createdAt: '2026-11-21T02:00:00.000000Z',
  closedAt: '2026-11-21T02:10:00.000000Z' as string | null,
}
const alert = (status: 'firing' | 'resolved', more = {}) =>
  row(
    'alert_received',
    { source: 'am', fingerprint: 'f', status, labels: { alertname: 'Lag' } },
    { attempt: 0, ...more },
  )
const ended = (metadata: object, attempt = 1) =>
  row('resolved', { resolution: 'The replica was stopped', outcome: 'repaired', claims: [], ...metadata }, { attempt })
const refused = (code: string) =>
  row('call_judged', { tool: 'converge_shard', verdict: 'refuse', code, reason: 'no look-up names it' })
const asks = row('approval_requested', { approvalId: 'apr_1', summary: 'Start 2 VMs' })
const hypothesis = (state: 'proposed' | 'supported' | 'refuted', text: string, quoted: number[] = []) =>
  row('commented', {
    text,
    confidence: null,
    action: 'investigated',
    hypothesis: { id: text, text, state, quotes: quoted.map((seq) => ({ seq, text: 'x' })) },
  })

const sentencesOf = (section: PostmortemSection, events: IncidentEvent[], change: Partial<typeof incident> = {}) =>
  foldPostmortem({ ...incident, ...change }, logOf(...events))
    .sections.find((each) => each.section === section)!
    .sentences.map(({ text, rows }) => `${text} ${rows.join(' ')}`.trim())

describe('a postmortem is written from the rows', () => {
  test.each<[what: string, section: PostmortemSection, rows: IncidentEvent[], said: string[]]>([
    ['an empty log has no cause', 'cause', [], ['No row shows the cause.']],
    ['and left nothing to refuse', 'refused', [], ['Nothing was refused.']],
    ['and nothing open', 'questions', [], ['No question is open.']],
    [
      'an alert that ended, with its first and its last row',
      'impact',
      [alert('firing'), alert('firing'), alert('resolved', { atSeconds: 300 })],
      ['Alert Lag of am arrived at 2026-11-21 02:00 UTC, began 2 times, and ended at 2026-11-21 02:05 UTC. 1 3'],
    ],
    [
      'what was unwell, and how it was at the last check',
      'impact',
      [
        looked('c1', [{ ...shard, health: 'degraded' } as typeof shard]),
        row('looked', { purpose: 'watch', resource: 'nominal', about: [shard] }),
      ],
      ['shard db-osl-1 was degraded, and nominal at the last check. 1 2'],
    ],
    [
      'what was still unwell at the last check, once',
      'impact',
      ['c1', 'c2'].map((call) => looked(call, [{ ...shard, health: 'degraded' } as typeof shard])),
      ['shard db-osl-1 was degraded, also at the last check. 1 2'],
    ],
    [
      'the VMs that a plan had to start were down, before the alert that tells of it',
      'impact',
      [
        alert('firing'),
        row('step_started', { callId: 'c1', step: 1, action: 'start', vm: 'vm-101', to: 'host-2' }),
        row('step_finished', { callId: 'c1', step: 1, status: 'OK', detail: '' }, { atSeconds: 120 }),
        row('step_started', { callId: 'c1', step: 2, action: 'start', vm: 'vm-102', to: 'host-2' }),
        row('step_finished', { callId: 'c1', step: 2, status: 'FAILED', detail: '' }),
        row('step_started', { callId: 'c1', step: 3, action: 'migrate', vm: 'vm-103', to: 'host-2' }),
        looked('c2', [{ kind: 'node', id: 'web-1', health: 'unknown' } as unknown as typeof shard]),
      ],
      [
        'vm-101 was down, and started again at 2026-11-21 02:02 UTC. 2 3',
        'vm-102 was down, and no row shows that it was started. 4',
        'Alert Lag of am arrived at 2026-11-21 02:00 UTC, and no row shows that it ended. 1',
      ],
    ],
    [
      'an ending without a quoted cause is said as such',
      'cause',
      [ended({})],
      ['No row is quoted for the cause. The ending says: The replica was stopped 1'],
    ],
    [
      'a cause with the rows that support it, what was ruled out, and the claims of the ending',
      'cause',
      [
        looked('c1', [shard]),
        hypothesis('supported', 'the replica was stopped', [1]),
        hypothesis('refuted', 'the disk is full', [1]),
        hypothesis('proposed', 'the network'),
        ended({
          claims: [{ kind: 'was', text: 'it lagged', quotes: [{ seq: 1, text: 'x' }], shown: false, why: 'no' }],
        }),
      ],
      [
        'Quoted for: the replica was stopped 1 2',
        'Ruled out: the disk is full 1 3',
        'it lagged (not shown by its evidence) 1',
      ],
    ],
    [
      'each attempt with its own ending, its writes, and whether they held',
      'done',
      [
        row('claimed', {}),
        wrote('c1', [shard]),
        verified('c1', 'not_held'),
        row('escalated', { reason: 'x', code: 'AGENT', category: 'no_tool' }),
        row('claimed', {}, { attempt: 2 }),
        { ...wrote('c1', [shard]), attempt: 2 } as IncidentEvent,
        { ...verified('c1', 'held'), attempt: 2 } as IncidentEvent,
        ended({}, 2),
      ],
      [
        'Escalated to people by the agent: no suitable tool, after no turn. 1 4',
        'converge_shard on shard:db-osl-1: no row shows the end. Verification failed. 2 3',
        'Resolved by the agent as repaired, after no turn. 5 8',
        'The replica was stopped 8',
        'converge_shard on shard:db-osl-1: no row shows the end. Verified. 6 7',
      ],
    ],
    [
      'refusals counted by tool and reason, and what people did not approve',
      'refused',
      [
        refused('UNKNOWN_TARGET'),
        refused('UNKNOWN_TARGET'),
        asks,
        row('approval_decided', { approvalId: 'apr_1', decision: 'deny', reason: 'too risky' }, { actor: 'user:anna' }),
        row('approval_expired', { approvalId: 'apr_2' }),
      ],
      [
        'The rules refused converge_shard, 2 times (UNKNOWN_TARGET): no look-up names it. 1 2',
        'anna denied: Start 2 VMs (too risky). 3 4',
        'Nobody decided in time about: an action. 5',
      ],
    ],
    [
      'what is open: an unproved write, a guess, a missing tool, a limit and a next step',
      'questions',
      [
        wrote('c1', [shard]),
        verified('c1', 'unproven'),
        hypothesis('proposed', 'the network'),
        row('capability_gap', { category: 'remediation', description: 'restart a switch' }),
        row('budget_ended', { budget: 'turns', limit: 10, used: 10 }),
        row('escalated', {
          reason: 'x',
          code: 'TURN_LIMIT',
          certainty: 'likely',
          report: { nextStep: 'Look at the switch' } as never,
        }),
      ],
      [
        'Did converge_shard on nothing named work? Unproven. 2',
        'Proposed, with no row for or against it: the network 3',
        'The agent lacked a tool: restart a switch 4',
        'Attempt 1 was ended by its limit of turns: 10 of 10. 5',
        'The cause is likely, not confirmed. 6',
        'Next step: Look at the switch 6',
      ],
    ],
  ])('%s', (_, section, rows, said) => {
    expect(sentencesOf(section, rows)).toEqual(said)
  })

  test('a running attempt is marked, and so is one that is over without an ending', () => {
    const rows = [row('claimed', {}), row('model_answered', { model: 'm' })]
    expect(sentencesOf('done', rows, { closedAt: null })).toEqual(['At work, after 1 turn of m. 1'])
    expect(sentencesOf('done', rows)).toEqual(['Ended, but no row shows how, after 1 turn of m. 1'])
  })

  test('an open incident is marked, and its alert still fires', () => {
    const open = { closedAt: null, alerts: { firing: 1, unknown: 0 } }
    expect(sentencesOf('summary', [alert('firing')], open)[1]).toBe(
      'The incident was opened at 2026-11-21 02:00 UTC; it is not closed. 1',
    )
    expect(sentencesOf('questions', [alert('firing')], open)).toEqual([
      'The incident is not closed. 1',
      '1 alert still fires. 1',
    ])
  })

  test('the timeline has the important rows, each alert once, and the number of the others', () => {
    const reads = Array.from({ length: 300 }, (_, at) => looked(`c${at}`, [shard]))
    const writes = Array.from({ length: 250 }, (_, at) => wrote(`w${at}`, [shard]))
    const found = foldPostmortem(incident, logOf(alert('firing'), alert('firing'), ...reads, ...writes))
    expect([found.timeline.length, found.left, found.rows]).toEqual([200, 51, 552])
    expect(found.timeline[1]?.seq).toBe(303)
  })
})

describe('the text of a person', () => {
  const events = logOf(alert('firing'), ended({ resolution: 'A [link](x) and <b>' }))
  const edit = (version: number, sections: PostmortemEdit['sections'], by = 'anna'): PostmortemEdit => ({
    version,
    by,
    at: '2026-11-22T09:00:00.000000Z',
    sections,
  })
  const causeOf = (found: Postmortem) => found.sections.find(({ section }) => section === 'cause')!

  test('is shown beside the generated text with the name and the time, and the newest counts', () => {
    const found = foldPostmortem(incident, events, [edit(1, { cause: 'Mine' }), edit(2, { cause: 'Yours' }, 'bert')])
    expect([found.version, causeOf(found).edited]).toMatchObject([2, { text: 'Yours', by: 'bert', version: 2 }])
    expect(causeOf(found).sentences).toEqual(causeOf(foldPostmortem(incident, events)).sentences)
    expect(found.edits.map(({ by, sections }) => [by, sections])).toEqual([
      ['anna', ['cause']],
      ['bert', ['cause']],
    ])
  })

  test('is reverted to the generated text, which is always kept', () => {
    const found = foldPostmortem(incident, events, [
      edit(1, { cause: 'Mine', impact: 'None' }),
      edit(2, { cause: null }),
    ])
    expect(causeOf(found).edited).toBeNull()
    expect(found.sections.find(({ section }) => section === 'impact')?.edited).toMatchObject({
      text: 'None',
      version: 1,
    })
  })

  test('changes nothing if an exported file is sent back unchanged, with links or without', () => {
    const found = foldPostmortem(incident, events, [edit(3, { summary: 'Short.\n\n- and a list' })])
    for (const page of ['https://ns.example/incidents/x', null]) {
      const file = postmortemMarkdown(found, events, page)
      expect(parsePostmortem(file, found)).toEqual({ ok: true, version: 3, sections: {} })
      expect(file).toContain('*Edited by anna at 2026-11-22 09:00:00 UTC.*')
      expect(file).not.toMatch(/<b>|\[link\]\(x\)/)
    }
    expect(postmortemMarkdown(found, events, 'https://ns.example/incidents/x')).toContain(
      '([#2](https://ns.example/incidents/x#e-2))',
    )
  })

  test('is written only where a file differs, an emptied section is generated again, and its version counts', () => {
    const found = foldPostmortem(incident, events, [edit(3, { summary: 'Short.' })])
    const file = postmortemMarkdown(found, events, null)
      .replace(/## Cause\n[\s\S]*?\n(?=## )/, '## Cause\n\nIt was stopped by hand.\n\n### Why\n\nNobody knows.\n\n')
      .replace(/## Summary\n[\s\S]*?\n(?=## )/, '## Summary\n\n')
    const later = foldPostmortem(incident, events, [edit(3, { summary: 'Short.' }), edit(4, { impact: 'x' })])
    expect(parsePostmortem(file, later)).toMatchObject({
      ok: true,
      version: 3,
      sections: { summary: null, cause: 'It was stopped by hand.\n\n### Why\n\nNobody knows.' },
    })
  })

  test.each([
    ['a heading that is no section', '## Couse\n\nx', /"Couse" is not a section. Sections: Summary, Impact/],
    ['a file without headings', 'It was the network.', /has no section/],
  ])('is refused with the remedy: %s', (_, text, reason) => {
    const found = foldPostmortem(incident, events)
    expect(parsePostmortem(text, found)).toEqual({ ok: false, reason: expect.stringMatching(reason) })
  })
})
