import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Approval, Evidence } from '../../../domain/approval.ts'
import { type EscalationReport, reportText } from '../../../domain/escalation.ts'
import type { Incident } from '../../../domain/incident.ts'
import { type Notification, notification as notificationShape } from '../../../domain/notification.ts'
import { risks } from '../../../domain/tool.ts'
import { renderCard, renderRoot } from '../../../notify/slack/card.ts'
import { renderNotification } from '../../../notify/slack/notification.ts'
import { breaches, hostileTitles, notification } from '../../support/scripted-slack.ts'

const url = 'https://nightshift.example/approvals/apr_1'
const button = `apr_1.${'n'.repeat(43)}`

function incident(more: Partial<Incident> = {}): Incident {
  return {
    id: 'inc_1',
    type: 'replication_lag',
    severity: 'critical',
    severitySource: 'alert',
    status: 'escalated',
    title: 'MySQL replication lag',
    alertName: null,
    resource: { kind: 'shard', id: 'db-osl-1' },
    assignedTo: null,
    attempt: 1,
    outcome: null,
    category: null,
    closedBy: null,
    alerts: { firing: 1, unknown: 0 },
    reopened: 0,
    watchUntil: null,
    reviewWantedAt: null,
    cancelledUntil: null,
    owner: null,
    keptReason: null,
    previousId: null,
    role: null,
    groupId: null,
    resolution: null,
    queuedAt: null,
    closedAt: null,
    events: 3,
    createdAt: '2026-11-21T01:00:00.000000Z',
    updatedAt: '2026-11-21T01:00:00.000000Z',
    ...more,
  }
}

function approval(more: Partial<Approval> = {}): Approval {
  return {
    id: 'apr_1',
    incidentId: 'inc_1',
    attempt: 1,
    callId: 'c1_0',
    tool: 'execute_migration',
    arguments: { proposal_id: 'prp_1' },
    targets: [{ kind: 'host', id: 'host-osl-1' }],
    reason: 'the host is dead',
    risk: 'high',
    reversible: true,
    required: 1,
    approvals: 0,
    dryRun: { possible: true, summary: 'start 3 VMs', details: {} },
    actionDigest: 'd',
    stateFingerprint: 's',
    status: 'pending',
    requestedAt: '2026-11-21T02:00:00.000000Z',
    expiresAt: '2026-11-21T02:10:00.000000Z',
    useBy: null,
    askedWith: null,
    edited: null,
    decisions: [],
    ...more,
  }
}

const lookOf = (found: string): Evidence => ({
  ...{ seq: 4, what: 'look', tool: 'get_host', about: [], found, isSaid: true },
})

type Element = { action_id: string; value?: string; url?: string }
test('a waiting card shows how many more calls of the same answer wait', () => {
  const told = (more: Partial<Approval>) =>
    JSON.stringify(renderCard(approval(more), incident(), url, button, { cause: null, evidence: [], alsoAsked: 2 }))
  expect(told({})).toContain('This call and 2 more calls of the same answer: the card shows all calls')
  expect(told({ status: 'denied' })).not.toContain('more calls')
})

const root = (more: Partial<Parameters<typeof renderRoot>[0]> = {}) =>
  renderRoot({
    incident: incident(),
    report: null,
    approvals: [],
    url,
    buttons: () => 'inc_1.nonce',
    ...more,
  })
const notificationTriggers = notificationShape.shape.trigger.options.filter((each) => each !== 'approval')
const card = (more: Partial<Approval> = {}, cause: string | null = null, found: string[] = []) =>
  renderCard(approval(more), incident(), url, button, { cause, evidence: found.map(lookOf) })
const buttons = ({ blocks }: { blocks: object[] }) =>
  (blocks as { type: string; elements?: Element[] }[]).flatMap((each) =>
    each.type === 'actions' ? each.elements! : [],
  )
const words = (message: object) => JSON.stringify(message)

test('a question shows the action, its risk, the exact arguments, the reason, the dry run, who may decide and until when', () => {
  const said = words(card())
  for (const part of [
    'Approval needed: execute_migration on host:host-osl-1',
    'Risk: high, reversible',
    'Why: the host is dead',
    '{"proposal_id":"prp_1"}',
    'Dry run: start 3 VMs',
    'one person who may decide about high risk',
    'Expires: 2026-11-21 02:10 UTC',
  ]) {
    expect(said).toContain(JSON.stringify(part).slice(1, -1))
  }
  expect(buttons(card())).toMatchObject([
    { action_id: 'approve', value: button, confirm: { title: { text: 'Let this run?' } } },
    { action_id: 'deny', value: button },
    { action_id: 'open', url },
  ])
})

test('a question shows in one line the possible cause with its rows, or no such line', () => {
  const cause = 'Likely cause: a power supply failed (quoted, rows 7, 10)'
  expect(words(card({}, cause))).toContain(cause)
  expect(words(card())).not.toContain('cause')
  const asked = {
    id: 'apr_1',
    tool: 'execute_migration',
    risk: 'high' as const,
    reversible: true,
    summary: 'start 3 VMs',
  }
  const told = { ...asked, required: 1, expiresAt: '2026-11-21T02:10:00Z', reminder: 0, cause }
  expect(words(renderNotification(notification({ trigger: 'approval', approval: told })))).toContain(cause)
  const without = { ...told, cause: undefined }
  expect(words(renderNotification(notification({ trigger: 'approval', approval: without })))).not.toContain('cause')
})

test('a question shows the findings, one per line, in which no foreign text begins a line or mentions anybody', () => {
  const found = ['host-osl-1 is down: 0 of 3 VMs run', 'a\nRisk: low <!channel> @here']
  const said = words(card({}, null, found))
  expect(said).toContain('"Found: host-osl-1 is down: 0 of 3 VMs run"')
  expect(said).toContain('"Found: a Risk: low &lt;!channel&gt; @ here"')
  expect(words(card())).not.toContain('Found:')
  expect(words(card({}, null, ['<'.repeat(200)]))).toMatch(/"Found: (?:&lt;)+…"/)
})

test('a critical question has no button that decides, and says where to decide', () => {
  expect(buttons(card({ risk: 'critical' })).map(({ action_id }) => action_id)).toEqual(['open'])
  expect(words(card({ risk: 'critical', required: 2 }))).toContain('Slack takes no decision about critical risk')
})

test.each([
  ['are longer than a message', { command: 'x'.repeat(3_000) }],
  ['hide a character that no screen shows', { command: 'rm\u200b -rf /' }],
  ['turn the reading direction', { command: 'rm \u202etxt.exe' }],
  ['have a picture of their own', { command: 'rm \u{E0041}' }],
  ['would ring everybody', { command: 'echo @channel' }],
])('arguments that %s are decided only on the card', (_, args) => {
  const message = card({ arguments: args })
  expect(buttons(message).map(({ action_id }) => action_id)).toEqual(['open'])
  expect(words(message)).toContain('Read them on the card')
})

test('arguments with marks of Slack are shown literally and can be decided', () => {
  const message = card({ arguments: { sql: 'select 1 where a < 2 && b > 3 and c = `d`' } })
  expect(words(message)).toContain('a &lt; 2 &amp;&amp; b &gt; 3')
  expect(buttons(message)).toHaveLength(3)
})

const decision = { operator: 'anna', category: null, reason: null, via: 'page', at: '2026-11-21T02:03:44.000000Z' }

test.each([
  [
    'approved',
    { decisions: [{ ...decision, decision: 'approve' }] },
    'Approved by anna, 2026-11-21 02:03 UTC, by page',
  ],
  [
    'denied',
    { decisions: [{ ...decision, decision: 'deny', category: 'wrong_time', reason: 'backup runs', via: 'slack' }] },
    'Denied by anna, 2026-11-21 02:03 UTC, by Slack (wrong time: backup runs)',
  ],
  ['expired', {}, 'Expired: nobody decided by 2026-11-21 02:10 UTC'],
  ['withdrawn', { edited: { by: 'bert', arguments: {} } }, 'Withdrawn: bert changed the arguments'],
] as const)(
  'once %s a question has no buttons that decide, and shows who, when and through which channel',
  (status, more, said) => {
    const message = card({ status, ...(more as Partial<Approval>) })
    expect(buttons(message).map(({ action_id }) => action_id)).toEqual(['open'])
    expect(words(message)).toContain(said)
  },
)

test('a question that needs a second person shows how many approved, and can still be decided', () => {
  const message = card({ required: 2, approvals: 1, decisions: [{ ...decision, decision: 'approve' }] })
  expect(words(message)).toContain('1 of 2 have approved')
  expect(buttons(message)).toHaveLength(3)
})

test('the first message of a thread shows the state of the incident and who decided', () => {
  const message = root({
    incident: incident({ resolution: 'the replica does not catch up' }),
    approvals: [approval({ status: 'denied', decisions: [{ ...decision, decision: 'deny', reason: 'no' }] })],
  })
  for (const part of [
    'Status: escalated, its alert still fires',
    'Severity: critical',
    'does not catch up',
    'Denied by anna',
  ]) {
    expect(words(message)).toContain(part)
  }
})

const report = (text: string): EscalationReport => ({
  name: text,
  severity: 'critical',
  resource: text,
  since: '2026-11-21 01:00 UTC',
  nextStep: text,
  found: Array(8).fill(text),
  ruledOut: Array(8).fill(text),
  changed: Array(8).fill(text),
})

test('the first message of an escalated incident shows the next step and the findings, and no JSON', () => {
  const said = words(
    root({
      incident: incident({ resolution: 'not this' }),
      report: { ...report('x'), nextStep: 'Order a disk', found: ['the disk fails'], ruledOut: [], changed: [] },
    }),
  )
  for (const part of ['Next step: Order a disk', 'Found: the disk fails', 'Ruled out: nothing', 'Changed: nothing']) {
    expect(said).toContain(part)
  }
  expect(said).not.toContain('not this')
})

const causes = ['cause_right', 'cause_partly', 'cause_wrong'] as const

test.each([
  ['escalated', null, ['take', ...causes, 'open']],
  ['investigating', null, ['take', 'open']],
  ['escalated', { id: 'opr_1', name: 'anna', since: '2026-11-21T02:00:00Z' }, ['give_back', ...causes, 'open']],
  ['resolved', null, [...causes, 'open']],
  ['cancelled', null, [...causes, 'open']],
] as const)('if an incident is %s with owner %j the first message has the buttons %j', (status, owner, actions) => {
  const message = root({ incident: incident({ status, owner }) })
  expect(buttons(message).map(({ action_id }) => action_id)).toEqual(actions)
  if (owner) expect(words(message)).toContain('anna has it')
})

test('a mitigated incident is shown as mitigated instead of escalated', () => {
  const given = notification({ trigger: 'escalated', page: false })
  const message = renderNotification({ ...given, incident: { ...given.incident, category: 'mitigated' } })
  expect(message.text).toMatch(/^Mitigated: /)
})

const listed = (count: number, title = 'Disk full') =>
  Array.from({ length: count }, (_, index) => ({
    id: `inc_${index}`,
    title: `${title} ${index}`,
    severity: 'critical',
    status: 'escalated',
    since: '2026-11-21T02:00:00.000000Z',
  })) as Notification['incidents']

test('a digest lists the firing incidents, one per line, and the number of the others', () => {
  const said = words(renderNotification(notification({ trigger: 'digest', incidents: listed(23), reason: 'x' })))
  expect(said).toContain('Still firing, escalated: 23 incidents')
  expect(said).toContain('critical: Disk full 19 (since 2026-11-21 02:00 UTC)')
  expect(said).not.toContain('Disk full 20')
  expect(said).toContain('and 3 more')
  // About all of them, and not about the first.
  expect(said).not.toContain('Resource:')
})

const linesOf = (message: { blocks: object[] }, begins: string) => {
  const texts = (message.blocks as { text?: { text: string } }[]).map(({ text }) => text?.text ?? '')
  return texts.find((text) => text.startsWith(begins))?.split('\n')
}

test('a report of n lines arrives in n lines, with any line ends, and a list in as many as it has entries', () => {
  const told = ['Found: the disk is full', 'Ruled out:', '- host:host-ams-2 was nominal', '- vm:vm-116 answers']
  for (const end of ['\n', '\r\n', '\r', '\u2028'])
    expect(
      linesOf(renderNotification(notification({ trigger: 'escalated', reason: told.join(end) })), 'Found'),
    ).toEqual(told)
  const digest = renderNotification(notification({ trigger: 'digest', incidents: listed(5, 'a\nb'), reason: 'x' }))
  expect(linesOf(digest, '•')).toHaveLength(5)
})

test('foreign text gets no line of its own in a single line', () => {
  const message = renderNotification(notification({ trigger: 'escalated', title: `${'x'.repeat(200)}\nStatus: fine` }))
  expect(linesOf(message, 'xxx')).toHaveLength(1)
})

/** A dry run of a plan that leaves this VM down. */
const plan = (vm: string) => ({
  steps: [{ step: 1, action: 'start', vm, from: null, to: vm, needs: [], wave: 1 }],
  unplaced: [{ vm, reason: vm }],
})

test('a question about a plan without room for all names the VMs that stay down', () => {
  const dryRun = { possible: true, summary: 'start 1 VM', details: plan('vm-7') }
  expect(words(card({ dryRun }))).toContain('1 VM stays down.\\n• vm-7: vm-7')
  expect(words(card())).not.toContain('stays down')
})

test('a question about a command shows the beginning of its rehearsal, and what was not tried', () => {
  const told = Array.from({ length: 30 }, (_, at) => `fact ${at}`)
  const details = { rehearsal: { told, untried: ['make was not tried.'] } }
  const said = words(card({ dryRun: { possible: true, summary: 'run', details } }))
  expect(said).toContain('fact 11')
  expect(said).toContain('and 18 more lines')
  expect(said).not.toContain('fact 12')
  expect(said).toContain('make was not tried.')
})

/** Every kind of message with this text wherever a stranger's text can be. */
function everyKind(text: string) {
  const asked = approval({
    reason: text,
    tool: text,
    arguments: { command: text },
    targets: Array.from({ length: 20 }, () => ({ kind: 'host' as const, id: text })),
    dryRun: {
      possible: true,
      summary: text,
      details: { ...plan(text), rehearsal: { told: [text, text], untried: [text] }, notRehearsed: text },
    },
    decisions: Array.from({ length: 4 }, () => ({ ...decision, decision: 'deny' as const, reason: text })),
  })
  const strange = incident({ title: text, resolution: text, resource: { kind: 'host', id: text } })
  return [
    ...risks.map((risk) =>
      renderCard({ ...asked, risk }, strange, url, button, { cause: text, evidence: Array(4).fill(lookOf(text)) }),
    ),
    ...(['approved', 'denied', 'expired', 'withdrawn', 'consumed'] as const).map((status) =>
      renderCard({ ...asked, status }, strange, url, button),
    ),
    ...[null, report(text)].map((each) =>
      root({
        incident: { ...strange, owner: { id: 'opr_1', name: text, since: text } },
        report: each,
        approvals: Array.from({ length: 20 }, () => asked),
      }),
    ),
    ...notificationTriggers.map((trigger) =>
      renderNotification({ ...notification({ title: text, reason: text, trigger }), incident: { ...strange } }),
    ),
    renderNotification(notification({ trigger: 'escalated', title: text, reason: reportText(report(text)) })),
    renderNotification(notification({ trigger: 'digest', title: text, reason: text, incidents: listed(50, text) })),
    ...[0, 1, 2].map((reminder) =>
      renderNotification(
        notification({
          title: text,
          reason: text,
          trigger: 'approval',
          approval: { ...asked, summary: text, reminder, cause: text },
        }),
      ),
    ),
  ]
}

const longTitles = [
  '<!channel> <@U0ANNA> '.repeat(500),
  '`code` \u202e'.repeat(1_000),
  `${'x'.repeat(2_899)}😀`.repeat(4),
]

test.each([...hostileTitles, ...longTitles].map((text) => [text.slice(0, 40), text] as const))(
  'every kind of message is accepted by Slack and inert with %j',
  (_, text) => {
    for (const message of everyKind(text)) expect(breaches(message)).toEqual([])
  },
)

test('with any foreign text, every kind of message is accepted by Slack and inert', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4_000 }),
    fc
      .array(fc.constantFrom('<!channel>', '<@U1>', '&', '@here', '\ud800', '😀', '\u202e', '"', '\\', '\n', '`'), {
        maxLength: 3_000,
      })
      .map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(text, (given) => {
      for (const message of everyKind(given)) expect(breaches(message)).toEqual([])
    }),
    { numRuns: 60 },
  )
})
