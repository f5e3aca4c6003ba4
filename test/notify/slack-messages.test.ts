import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Approval } from '../../domain/approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { risks } from '../../domain/tool.ts'
import { renderCard } from '../../notify/slack/card.ts'
import { renderNotification } from '../../notify/slack/render.ts'
import { renderRoot } from '../../notify/slack/root.ts'
import { hostileTitles, notification } from './notifications.ts'
import { breaches } from './slack-limits.ts'

const url = 'https://nightshift.example/approvals/apr_1'
const button = `apr_1.${'n'.repeat(43)}`

function incident(more: Partial<Incident> = {}): Incident {
  return {
    ...{ id: 'inc_1', type: 'replication_lag', severity: 'critical', severitySource: 'alert', status: 'escalated' },
    ...{ title: 'MySQL replication lag', resource: { kind: 'shard', id: 'db-osl-1' }, assignedTo: null, attempt: 1 },
    ...{ outcome: null, category: null, closedBy: null, alerts: { firing: 1, unknown: 0 }, reopened: 0 },
    ...{ watchUntil: null, cancelledUntil: null, owner: null, keptReason: null, previousId: null },
    ...{ role: null, groupId: null, resolution: null, queuedAt: null, closedAt: null, events: 3 },
    ...{ createdAt: '2026-11-21T01:00:00.000000Z', updatedAt: '2026-11-21T01:00:00.000000Z' },
    ...more,
  }
}

function approval(more: Partial<Approval> = {}): Approval {
  return {
    ...{ id: 'apr_1', incidentId: 'inc_1', attempt: 1, callId: 'c1_0', tool: 'execute_migration' },
    ...{ arguments: { proposal_id: 'prp_1' }, targets: [{ kind: 'host', id: 'host-osl-1' }] },
    ...{ reason: 'the host is dead', risk: 'high', reversible: true, required: 1, approvals: 0 },
    ...{ dryRun: { possible: true, summary: 'start 3 VMs', details: {} }, actionDigest: 'd', stateFingerprint: 's' },
    ...{ status: 'pending', requestedAt: '2026-11-21T02:00:00.000000Z', expiresAt: '2026-11-21T02:10:00.000000Z' },
    ...{ useBy: null, edited: null, decisions: [] },
    ...more,
  }
}

type Element = { action_id: string; value?: string; url?: string }
const card = (more: Partial<Approval> = {}) => renderCard(approval(more), incident(), url, button)
const buttons = ({ blocks }: { blocks: object[] }) =>
  (blocks as { type: string; elements?: Element[] }[]).flatMap((each) =>
    each.type === 'actions' ? each.elements! : [],
  )
const words = (message: object) => JSON.stringify(message)

test('a question says what, how risky, the exact arguments, why, the dry run, who may and until when', () => {
  const said = words(card())
  for (const part of [
    ...['Approval wanted: execute_migration on host:host-osl-1', 'Risk: high, reversible', 'Why: the host is dead'],
    ...['{"proposal_id":"prp_1"}', 'Dry run: start 3 VMs', 'one person who may decide about high risk'],
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

test('what is critical has no button that decides, and says where it is decided', () => {
  expect(buttons(card({ risk: 'critical' })).map(({ action_id }) => action_id)).toEqual(['open'])
  expect(words(card({ risk: 'critical', required: 2 }))).toContain('never in Slack')
})

test.each([
  ['are longer than a message', { command: 'x'.repeat(3_000) }],
  ['hide a character that no screen shows', { command: 'rm\u200b -rf /' }],
  ['turn the reading direction', { command: 'rm \u202etxt.exe' }],
  ['have a picture of their own', { command: 'rm \u{E0041}' }],
  ['would ring everybody', { command: 'echo @channel' }],
])('arguments that %s are decided on the card alone', (_, args) => {
  const message = card({ arguments: args })
  expect(buttons(message).map(({ action_id }) => action_id)).toEqual(['open'])
  expect(words(message)).toContain('Read them on the card')
})

test('arguments with marks of Slack are shown as they are and can be decided', () => {
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
  'once %s a question has no buttons that decide, and says who, when and by which door',
  (status, more, said) => {
    const message = card({ status, ...(more as Partial<Approval>) })
    expect(buttons(message).map(({ action_id }) => action_id)).toEqual(['open'])
    expect(words(message)).toContain(said)
  },
)

test('while a second person is needed it says who agreed and can still be decided', () => {
  const message = card({ required: 2, approvals: 1, decisions: [{ ...decision, decision: 'approve' }] })
  expect(words(message)).toContain('1 of 2 have agreed')
  expect(buttons(message)).toHaveLength(3)
})

test('the first message of a thread says how the incident stands and who decided', () => {
  const message = renderRoot(
    incident({ resolution: 'the replica does not catch up' }),
    [approval({ status: 'denied', decisions: [{ ...decision, decision: 'deny', reason: 'no' }] })],
    'https://nightshift.example/incidents/inc_1',
  )
  for (const part of ['Status: escalated', 'Severity: critical', 'does not catch up', 'Denied by anna']) {
    expect(words(message)).toContain(part)
  }
})

/** A dry run of a plan that leaves this VM down. */
const plan = (vm: string) => ({
  steps: [{ step: 1, action: 'start', vm, from: null, to: vm, needs: [], wave: 1 }],
  unplaced: [{ vm, reason: vm }],
})

test('a question about a plan that has no place for all names who stays down', () => {
  const dryRun = { possible: true, summary: 'start 1 VM', details: plan('vm-7') }
  expect(words(card({ dryRun }))).toContain('1 VM stays down: vm-7')
  expect(words(card())).not.toContain('stays down')
})

/** Every kind of message with this text wherever a stranger's text can be. */
function everyKind(text: string) {
  const asked = approval({
    reason: text,
    tool: text,
    arguments: { command: text },
    targets: Array.from({ length: 20 }, () => ({ kind: 'host' as const, id: text })),
    dryRun: { possible: true, summary: text, details: plan(text) },
    decisions: Array.from({ length: 4 }, () => ({ ...decision, decision: 'deny' as const, reason: text })),
  })
  const strange = incident({ title: text, resolution: text, resource: { kind: 'host', id: text } })
  return [
    ...risks.map((risk) => renderCard({ ...asked, risk }, strange, url, button)),
    ...(['approved', 'denied', 'expired', 'withdrawn', 'consumed'] as const).map((status) =>
      renderCard({ ...asked, status }, strange, url, button),
    ),
    renderRoot(
      strange,
      Array.from({ length: 20 }, () => asked),
      url,
    ),
    ...(['critical', 'escalated'] as const).map((trigger) =>
      renderNotification({ ...notification({ title: text, reason: text, trigger }), incident: { ...strange } }),
    ),
    ...[0, 1, 2].map((reminder) =>
      renderNotification(
        notification({
          ...{ title: text, reason: text, trigger: 'approval' },
          approval: { ...asked, summary: text, reminder },
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
  'every kind of message is taken by Slack and inert with %j',
  (_, text) => {
    for (const message of everyKind(text)) expect(breaches(message)).toEqual([])
  },
)

test('whatever strangers write, every kind of message is taken by Slack and inert', () => {
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
