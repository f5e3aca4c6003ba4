import { describe, expect, test } from '@jest/globals'
import { approvalExample, incidentExample } from '../../api/routes/examples.ts'
import { type BriefSources, foldBrief, incidentBrief } from '../../domain/brief.ts'
import type { EventKind, IncidentEvent } from '../../domain/event.ts'
import {
  foldPostmortem,
  type Postmortem,
  type PostmortemEdit,
  type PostmortemSection,
  parsePostmortem,
  postmortemMarkdown,
} from '../../domain/postmortem.ts'
import { describeLooks, nameOfCause } from '../../domain/status-words.ts'
import { logOf, looked, row, verified, wrote } from '../support/events.ts'

describe('postmortem', () => {
  const shard = { kind: 'shard' as const, id: 'db-osl-1' }
  const incident = {
    ...{ id: 'inc_00000000000000000000000001', title: 'Replica behind', type: 'replication_lag', attempt: 1 },
    ...{ severity: 'critical' as const, resource: shard, alerts: { firing: 0, unknown: 0 } },
    ...{ createdAt: '2026-11-21T02:00:00.000000Z', closedAt: '2026-11-21T02:10:00.000000Z' as string | null },
  }
  const alert = (status: 'firing' | 'resolved', more = {}) =>
    row(
      'alert_received',
      { source: 'am', fingerprint: 'f', status, labels: { alertname: 'Lag' } },
      { attempt: 0, ...more },
    )
  const ended = (metadata: object, attempt = 1) =>
    row(
      'resolved',
      { resolution: 'The replica was stopped', outcome: 'repaired', claims: [], ...metadata },
      { attempt },
    )
  const refused = (code: string) =>
    row('call_judged', { tool: 'converge_shard', verdict: 'refuse', code, reason: 'no look-up names it' })
  const asks = row('approval_requested', { approvalId: 'apr_1', summary: 'Start 2 VMs' })
  const hypothesis = (state: 'proposed' | 'supported' | 'refuted', text: string, quoted: number[] = []) =>
    row('commented', {
      ...{ text, confidence: null, action: 'investigated' },
      hypothesis: { id: text, text, state, quotes: quoted.map((seq) => ({ seq, text: 'x' })) },
    })

  const sentencesOf = (section: PostmortemSection, events: IncidentEvent[], change: Partial<typeof incident> = {}) =>
    foldPostmortem({ ...incident, ...change }, logOf(...events))
      .sections.find((each) => each.section === section)!
      .sentences.map(({ text, rows }) => `${text} ${rows.join(' ')}`.trim())

  describe('a postmortem is folded from the rows', () => {
    test.each<[what: string, section: PostmortemSection, rows: IncidentEvent[], said: string[]]>([
      ['an empty log has no cause', 'cause', [], ['No row says what the cause was.']],
      ['and left nothing to refuse', 'refused', [], ['Nothing was refused.']],
      ['and nothing open', 'questions', [], ['The rows leave nothing open.']],
      [
        'an alert that ended, with its first and its last row',
        'impact',
        [alert('firing'), alert('firing'), alert('resolved', { atSeconds: 300 })],
        ['Alert Lag of am came in at 2026-11-21 02:00 UTC, received 3 times, and ended at 2026-11-21 02:05 UTC. 1 3'],
      ],
      [
        'what was unwell, and how it was when it was looked at last',
        'impact',
        [
          looked('c1', [{ ...shard, health: 'degraded' } as typeof shard]),
          looked('c2', [{ ...shard, health: 'nominal' } as typeof shard]),
        ],
        ['shard:db-osl-1 was degraded, and nominal when it was looked at last. 1 2'],
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
          'Supported: the replica was stopped 1 2',
          'Ruled out: the disk is full 1 3',
          'The replica was stopped 5',
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
          'Escalated to people by the agent: no tool for it, after no turn. 1 4',
          'converge_shard on shard:db-osl-1: its end is in no row. Verification failed. 2 3',
          'Resolved by the agent as repaired, after no turn. 5 8',
          'converge_shard on shard:db-osl-1: its end is in no row. Verified. 6 7',
        ],
      ],
      [
        'refusals counted by tool and reason, and what people did not approve',
        'refused',
        [
          refused('UNKNOWN_TARGET'),
          refused('UNKNOWN_TARGET'),
          asks,
          row(
            'approval_decided',
            { approvalId: 'apr_1', decision: 'deny', reason: 'too risky' },
            { actor: 'user:anna' },
          ),
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
            ...{ reason: 'x', code: 'TURN_LIMIT', certainty: 'likely' },
            report: { nextStep: 'Look at the switch' } as never,
          }),
        ],
        [
          'Did converge_shard on nothing named work? Unproven. 2',
          'Neither supported nor refuted: the network 3',
          'The agent lacked a tool: restart a switch 4',
          'Attempt 1 was ended by its limit of turns: 10 of 10. 5',
          'The cause is likely, not confirmed. 6',
          'Next step: Look at the switch 6',
        ],
      ],
    ])('%s', (_, section, rows, said) => {
      expect(sentencesOf(section, rows)).toEqual(said)
    })

    test('an attempt that is at work says so; one that is over without an ending says that', () => {
      const rows = [row('claimed', {}), row('model_answered', { model: 'm' })]
      expect(sentencesOf('done', rows, { closedAt: null })).toEqual(['At work, after 1 turn of m. 1'])
      expect(sentencesOf('done', rows)).toEqual(['Ended without a row that says how, after 1 turn of m. 1'])
    })

    test('an incident that goes on says so, and its alert fires on', () => {
      const open = { closedAt: null, alerts: { firing: 1, unknown: 0 } }
      expect(sentencesOf('summary', [alert('firing')], open)[1]).toBe(
        'It began at 2026-11-21 02:00 UTC; it is not closed. 1',
      )
      expect(sentencesOf('questions', [alert('firing')], open)).toEqual([
        'It is not closed. 1',
        '1 alert of it still fires. 1',
      ])
    })

    test('the timeline has the rows that matter, each alert once, and says how many more there are', () => {
      const reads = Array.from({ length: 300 }, (_, at) => looked(`c${at}`, [shard]))
      const writes = Array.from({ length: 250 }, (_, at) => wrote(`w${at}`, [shard]))
      const found = foldPostmortem(incident, logOf(alert('firing'), alert('firing'), ...reads, ...writes))
      expect([found.timeline.length, found.left, found.rows]).toEqual([200, 51, 552])
      expect(found.timeline[1]?.seq).toBe(303)
    })
  })

  describe('what a person writes', () => {
    const events = logOf(alert('firing'), ended({ resolution: 'A [link](x) and <b>' }))
    const edit = (version: number, sections: PostmortemEdit['sections'], by = 'anna'): PostmortemEdit => ({
      ...{ version, by, at: '2026-11-22T09:00:00.000000Z', sections },
    })
    const causeOf = (found: Postmortem) => found.sections.find(({ section }) => section === 'cause')!

    test('stands beside the folded text with the name and the time, and the newest counts', () => {
      const found = foldPostmortem(incident, events, [edit(1, { cause: 'Mine' }), edit(2, { cause: 'Yours' }, 'bert')])
      expect([found.version, causeOf(found).edited]).toMatchObject([2, { text: 'Yours', by: 'bert', version: 2 }])
      expect(causeOf(found).sentences).toEqual(causeOf(foldPostmortem(incident, events)).sentences)
      expect(found.edits.map(({ by, sections }) => [by, sections])).toEqual([
        ['anna', ['cause']],
        ['bert', ['cause']],
      ])
    })

    test('is taken back by the folded text, which never went away', () => {
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

    test('a file that was exported and sent back unchanged changes nothing, with links or without', () => {
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

    test('of a file only what differs is written, an emptied section is folded again, and its version counts', () => {
      const found = foldPostmortem(incident, events, [edit(3, { summary: 'Short.' })])
      const file = postmortemMarkdown(found, events, null)
        .replace(/## Cause\n[\s\S]*?\n(?=## )/, '## Cause\n\nIt was stopped by hand.\n\n### Why\n\nNobody knows.\n\n')
        .replace(/## Summary\n[\s\S]*?\n(?=## )/, '## Summary\n\n')
      const later = foldPostmortem(incident, events, [edit(3, { summary: 'Short.' }), edit(4, { impact: 'x' })])
      expect(parsePostmortem(file, later)).toMatchObject({
        ...{ ok: true, version: 3 },
        sections: { summary: null, cause: 'It was stopped by hand.\n\n### Why\n\nNobody knows.' },
      })
    })

    test.each([
      ['a heading that is no section', '## Couse\n\nx', /"Couse" is no section. Sections: Summary, Impact/],
      ['a file without headings', 'It was the network.', /has no section/],
    ])('%s is refused with what to do', (_, text, reason) => {
      const found = foldPostmortem(incident, events)
      expect(parsePostmortem(text, found)).toEqual({ ok: false, reason: expect.stringMatching(reason) })
    })
  })
})

describe('brief', () => {
  const host = { kind: 'host' as const, id: 'host-osl-1' }
  const incident = { ...incidentExample, resource: host, createdAt: '2026-11-21T01:45:00.000000Z' }

  /** Rows of one attempt as the log has them, numbered from 1. */
  function rows(...given: [EventKind, Record<string, unknown>, number?][]): IncidentEvent[] {
    return given.map(([kind, metadata, attempt = 1], at) => ({
      ...{ id: String(at), incidentId: incident.id, attempt, seq: at + 1, stepKey: null, turn: 1, kind, metadata },
      ...{
        action: 'investigated',
        actor: 'agent:x',
        detail: '',
        at: `2026-11-21T01:46:0${at}.000000Z`,
        prevHash: '',
        hash: '',
      },
    })) as unknown as IncidentEvent[]
  }

  function brief(events: IncidentEvent[], more: Partial<BriefSources> = {}) {
    const folded = foldBrief({ incident, events, alerts: [], asked: null, spent: [], followers: 0, ...more })
    expect(incidentBrief.parse(folded)).toEqual(folded)
    return folded
  }

  const look = (health: string, said?: string): [EventKind, Record<string, unknown>] => [
    'tool_finished',
    {
      ...{
        callId: 'r',
        tool: 'get_host',
        effect: 'read',
        targets: [host],
        outcome: 'done',
        result: { ok: true, meta: {} },
      },
      ...{ discovered: [{ ...host, name: host.id, aliases: [], seen: true, health }], ...(said && { said }) },
    },
  ]
  const cause = (id: string, state: string, text: string, seq = 1): [EventKind, Record<string, unknown>] => [
    'commented',
    { text, confidence: null, action: 'investigated', hypothesis: { id, text, state, quotes: [{ seq, text: 'q' }] } },
  ]
  const write = (outcome: string, proof: string | null): [EventKind, Record<string, unknown>][] => [
    [
      'tool_started',
      { callId: 'w', tool: 'converge_shard', effect: 'write', targets: [{ kind: 'shard', id: 'web-1' }] },
    ],
    [
      'tool_finished',
      {
        ...{ callId: 'w', tool: 'converge_shard', effect: 'write', targets: [], outcome, discovered: [] },
        ...{ result: { ok: outcome === 'done', meta: {} }, said: 'web-1 converged: restarted' },
      },
    ],
    ...(proof === null
      ? []
      : [
          ['verification', { callId: 'w', targets: [], outcome: proof, observed: 'all 2 nodes are nominal' }] as [
            EventKind,
            Record<string, unknown>,
          ],
        ]),
  ]
  const ended: [EventKind, Record<string, unknown>] = [
    'escalated',
    {
      reason: 'the disk is full of tenant data',
      code: 'AGENT',
      category: 'no_tool',
      report: { nextStep: 'Ask the tenant', found: [] },
    },
  ]

  describe('a brief', () => {
    test.each<[string, IncidentEvent[], Partial<BriefSources>, string, string, number[]]>([
      ['nothing is known yet', [], {}, 'unknown', 'Not known yet.', []],
      ['a cause is proposed', rows(cause('h1', 'proposed', 'no power')), {}, 'proposed', 'no power', [1]],
      [
        'of two causes the one that rows support leads',
        rows(look('critical'), cause('h1', 'supported', 'no power'), cause('h2', 'proposed', 'a cable')),
        ...([{}, 'supported', 'no power', [1, 2]] as [object, string, string, number[]]),
      ],
      ['a refuted cause is none', rows(cause('h1', 'refuted', 'no power')), {}, 'unknown', 'Not known yet.', []],
      ['without a cause the ending says why', rows(ended), {}, 'ending', 'the disk is full of tenant data', [1]],
      [
        'what the agent says as it asks stands where no row says more',
        rows(['approval_requested', { approvalId: 'a', callId: 'w', summary: 's' }]),
        ...([{ asked: { ...approvalExample, reason: 'the host is dead' } }, 'stated', 'the host is dead', [1]] as [
          object,
          string,
          string,
          number[],
        ]),
      ],
    ])('%s', (_name, events, more, state, text, seqs) => {
      expect(brief(events, more).cause).toMatchObject({ state, text, rows: seqs })
    })

    test.each([
      ['done', 'held', 'verified'],
      ['done', 'not_held', 'verification_failed'],
      ['done', 'unproven', 'unproven'],
      ['done', 'open', 'open'],
      ['done', null, 'open'],
      ['failed', null, 'failed'],
      ['indeterminate', null, 'indeterminate'],
    ])('a write that ended %s with a verification that is %s is %s', (outcome, proof, word) => {
      const { done } = brief(rows(...write(outcome, proof)))
      expect(done).toMatchObject([{ outcome: word, rows: proof === null ? [1, 2] : [1, 2, 3] }])
      expect(done[0]?.text).toMatch(/^web-1 converged/)
    })

    test('what was refused, denied and not answered stands with what was done, newest first, and is no change', () => {
      const asked: [EventKind, Record<string, unknown>] = [
        'approval_requested',
        { approvalId: 'a', callId: 'w', summary: 'start 3 VMs' },
      ]
      const refusal = {
        callId: 'x',
        tool: 'vm_stop',
        verdict: 'refuse',
        effect: 'write',
        code: 'NEVER',
        reason: 'it is not its VM',
        targets: [{ kind: 'vm', id: 'vm-1' }],
      }
      const folded = brief(
        rows(
          ['call_judged', refusal],
          ['call_judged', refusal],
          asked,
          ['approval_decided', { approvalId: 'a', callId: 'w', decision: 'deny', reason: 'backups run' }],
          ['approval_expired', { approvalId: 'b', callId: 'w' }],
          look('critical'),
        ),
      )
      expect(folded.done.map(({ outcome, text }) => `${outcome}: ${text}`)).toEqual([
        'expired: start 3 VMs',
        'denied: start 3 VMs: backups run',
        'refused: vm stop on vm-1: it is not its VM',
      ])
      expect(describeLooks(folded)).toBe('Looked only (once): nothing was changed.')
    })

    test('the resource is as the newest row says that tells its health, and what else is not well is the impact', () => {
      const vms = { ...host, kind: 'vm', id: 'vm-101', name: 'vm-101', aliases: [], health: 'down' }
      const [kind, metadata] = look('critical', 'host-osl-1 is dead: 0 of 3 VMs run')
      const seen = { ...metadata, discovered: [...(metadata.discovered as object[]), vms] }
      const folded = brief(rows(look('nominal'), [kind, seen], ['looked', { about: [], observed: 'x' }]), {
        followers: 2,
      })
      expect(folded.resource).toMatchObject({ text: 'host-osl-1 is dead: 0 of 3 VMs run', rows: [2] })
      expect(folded.impact).toEqual({ text: 'down: vm-101; 2 similar incidents in its group', rows: [2] })
    })

    test('what a plan starts or leaves down is down now, and a command is said in words', () => {
      const question: [EventKind, Record<string, unknown>] = [
        'approval_requested',
        { approvalId: 'a', callId: 'w', summary: 's' },
      ]
      const details = {
        steps: [
          { action: 'start', vm: 'vm-101' },
          { action: 'migrate', vm: 'vm-107' },
        ],
        unplaced: [{ vm: 'vm-102' }],
      }
      const dryRun = { possible: true, summary: 'Run ["rm","--","/var/log/a b"], on web-1', details }
      const folded = brief(rows(question), { asked: { ...approvalExample, dryRun } })
      expect(folded.impact).toEqual({ text: 'down: vm-101 and vm-102', rows: [1] })
      expect(folded.asked?.dryRun).toEqual({ possible: true, summary: 'Run rm -- /var/log/a b, on web-1', details: {} })
    })

    test('it is since the alert that fires began, and an alert that ended says when', () => {
      const alert = (status: 'firing' | 'resolved', startsAt: string, endsAt: string | null) => ({
        status,
        startsAt,
        endsAt,
      })
      const old = alert('resolved', '2026-11-20T00:00:00Z', '2026-11-20T01:00:00Z')
      const now = alert('firing', '2026-11-21T01:40:00Z', null)
      expect(brief([], { alerts: [old, now] })).toMatchObject({
        since: { at: now.startsAt, by: 'alert' },
        alert: { state: 'firing', endedAt: null },
      })
      expect(brief([], { alerts: [old] })).toMatchObject({
        since: { at: old.startsAt },
        alert: { state: 'resolved', endedAt: old.endsAt },
      })
      expect(brief([])).toMatchObject({ since: { at: incident.createdAt, by: 'incident' }, alert: { state: 'none' } })
    })

    test('each attempt stands beside the others with its own cause, ending and tokens', () => {
      const first = rows(['claimed', {}], cause('h1', 'supported', 'no power'), ended)
      const second = rows(['claimed', {}, 2]).map((event) => ({ ...event, seq: 4 }))
      const spent = [1, 2].map((attempt) => ({
        attempt,
        turns: attempt,
        tokens: 100 * attempt,
        dollars: 0,
        modelMs: 5,
      }))
      const folded = brief([...first, ...second], { incident: { ...incident, attempt: 2 }, spent })
      expect(folded.attempts).toMatchObject([
        { attempt: 1, outcome: 'escalated: no tool for it', cause: 'no power', turns: 1, tokens: 100, rows: [1, 3] },
        { attempt: 2, outcome: 'not over', cause: 'Not known yet.', turns: 2, tokens: 200, rows: [4] },
      ])
      expect(folded.spent).toEqual({ turns: 3, tokens: 300, dollars: 0, modelMs: 10 })
    })

    test('what comes next is the advice of the escalation, and its cause is named as that', () => {
      const escalated = { ...incident, status: 'escalated' as const }
      const folded = brief(rows(ended), { incident: escalated })
      expect(folded.next).toEqual({ text: 'Ask the tenant', rows: [1] })
      expect(nameOfCause(folded.cause, 'escalated')).toBe('Escalated because')
    })

    test('what a model wrote as data is told in words', () => {
      const reason = 'See {"status":"critical","why":"the disk of web-1 is full"} now'
      const folded = brief(rows(['escalated', { reason, code: 'AGENT' }]))
      expect(folded.cause.text).not.toMatch(/[{}"]/)
    })
  })
})
