import { describe, expect, test } from '@jest/globals'
import { approvalExample, incidentExample } from '../../api/routes/examples.ts'
import { type BriefSources, foldBrief, incidentBrief } from '../../domain/brief.ts'
import type { EventKind, IncidentEvent } from '../../domain/event.ts'
import { describeLooks, isClosedAndFiring, nameOfCause } from '../../domain/status-words.ts'

const host = { kind: 'host' as const, id: 'host-osl-1' }
const incident = { ...incidentExample, resource: host, createdAt: '2026-11-21T01:45:00.000000Z' }

/** Rows of one attempt as the log has them, numbered from 1. */
function rows(...given: [EventKind, Record<string, unknown>, number?][]): IncidentEvent[] {
  return given.map(([kind, metadata, attempt = 1], at) => ({
    id: String(at),
    incidentId: incident.id,
    attempt,
    seq: at + 1,
    stepKey: null,
    turn: 1,
    kind,
    metadata,
    action: 'investigated',
    actor: 'agent:x',
    detail: '',
    at: `2026-11-21T01:46:0${at}.000000Z`,
    prevHash: '',
    hash: '',
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
    callId: 'r',
    tool: 'get_host',
    effect: 'read',
    targets: [host],
    outcome: 'done',
    result: { ok: true, meta: {} },
    discovered: [{ ...host, name: host.id, aliases: [], seen: true, health }],
    ...(said && { said }),
  },
]
const cause = (id: string, state: string, text: string, seq = 1): [EventKind, Record<string, unknown>] => [
  'commented',
  { text, confidence: null, action: 'investigated', hypothesis: { id, text, state, quotes: [{ seq, text: 'q' }] } },
]
const write = (outcome: string, proof: string | null): [EventKind, Record<string, unknown>][] => [
  ['tool_started', { callId: 'w', tool: 'converge_shard', effect: 'write', targets: [{ kind: 'shard', id: 'web-1' }] }],
  [
    'tool_finished',
    {
      callId: 'w',
      tool: 'converge_shard',
      effect: 'write',
      targets: [],
      outcome,
      discovered: [],
      result: { ok: outcome === 'done', meta: {} },
      said: 'web-1 converged: restarted',
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

  test('refused, denied and unanswered calls are listed with the writes, newest first, and are no changes', () => {
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
    expect(describeLooks(folded)).toBe('Only reads (one): nothing was changed.')
  })

  test('the resource has the state of the newest row that shows its health, and other unhealthy resources are the impact', () => {
    const vms = { ...host, kind: 'vm', id: 'vm-101', name: 'vm-101', aliases: [], health: 'down' }
    const [kind, metadata] = look('critical', 'host-osl-1 is dead: 0 of 3 VMs run')
    const seen = { ...metadata, discovered: [...(metadata.discovered as object[]), vms] }
    const folded = brief(rows(look('nominal'), [kind, seen], ['looked', { about: [], observed: 'x' }]), {
      followers: 2,
    })
    expect(folded.resource).toMatchObject({ text: 'host-osl-1 is dead: 0 of 3 VMs run', rows: [2] })
    expect(folded.impact).toEqual({ text: 'down: vm-101; 2 similar incidents in its group', rows: [2] })
  })

  test('a resource that looks healthy while its alert fires is shown as both', () => {
    const alerts = [
      { status: 'firing' as const, startsAt: '2026-11-21T01:40:00.000000Z', endsAt: null, endReason: null },
    ]
    const saidOf = (health: string, more: Partial<BriefSources> = { alerts }) =>
      brief(rows(look(health, `host-osl-1 is ${health}.`)), more).resource?.text
    expect(saidOf('nominal')).toBe('host-osl-1 is nominal, and its alert fires')
    expect(saidOf('critical')).toBe('host-osl-1 is critical.')
    expect(saidOf('nominal', {})).toBe('host-osl-1 is nominal.')
  })

  test('a closed incident whose alert fires is highlighted, unless a person expects it', () => {
    const closed = { closedAt: '2026-11-21T02:00:00.000000Z' }
    expect(isClosedAndFiring({ ...closed, outcome: 'repaired' }, { state: 'firing' })).toBe(true)
    expect(isClosedAndFiring({ ...closed, outcome: 'expected' }, { state: 'firing' })).toBe(false)
    expect(isClosedAndFiring({ closedAt: null, outcome: null }, { state: 'firing' })).toBe(false)
  })

  test('VMs that a plan starts or leaves down are down now, and a command is shown in words', () => {
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

  test('the duration counts from the start of the firing alert, and an ended alert shows its end', () => {
    const alert = (status: 'firing' | 'resolved', startsAt: string, endsAt: string | null) => ({
      status,
      startsAt,
      endsAt,
      endReason: null,
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

  test('each attempt is listed with its own cause, ending and tokens', () => {
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
      { attempt: 1, outcome: 'escalated: no suitable tool', cause: 'no power', turns: 1, tokens: 100, rows: [1, 3] },
      { attempt: 2, outcome: 'not over', cause: 'Not known yet.', turns: 2, tokens: 200, rows: [4] },
    ])
    expect(folded.spent).toEqual({ turns: 3, tokens: 300, dollars: 0, modelMs: 10 })
  })

  test('the next step is the advice of the escalation, and its cause is named as such', () => {
    const escalated = { ...incident, status: 'escalated' as const }
    const folded = brief(rows(ended), { incident: escalated })
    expect(folded.next).toEqual({ text: 'Ask the tenant', rows: [1] })
    expect(nameOfCause(folded.cause, 'escalated')).toBe('Escalated because')
  })

  test('structured text of a model is shown in words', () => {
    const reason = 'See {"status":"critical","why":"the disk of web-1 is full"} now'
    const folded = brief(rows(['escalated', { reason, code: 'AGENT' }]))
    expect(folded.cause.text).not.toMatch(/[{}"]/)
  })
})
