import { expect, test } from '@jest/globals'
import { incidentExample } from '../../api/routes/examples.ts'
import type { ApiClient, ApiIncident } from '../../cli/api.ts'
import { describeHolder, printFiringAlerts } from '../../cli/demo/demo.ts'
import { checkEnding, scenarioNames } from '../../cli/lab/endings.ts'
import type { IncidentEvent } from '../../domain/event.ts'

const incident = (rest: Partial<ApiIncident>) =>
  ({
    ...{ id: 'inc_1', type: 'service_down', status: 'escalated', outcome: null, category: null, closedBy: 'agent' },
    ...{ alerts: { firing: 1, unknown: 0 }, resolution: '', watchUntil: null, cancelledUntil: null },
    ...{ owner: null, keptReason: null },
    ...rest,
  }) as ApiIncident
const row = (kind: string, code?: string) => ({ kind, metadata: { code } }) as unknown as IncidentEvent
const rows = (...kinds: string[]) => kinds.map((kind) => row(kind))
const quotes = [1, 2, 3].map((attempt) => `Attempt ${attempt} of inc_1: …`).join('\n')

test.each<[string, Parameters<typeof checkEnding>]>([
  ['a repair', ['service_down', incident({ status: 'resolved', outcome: 'repaired' }), []]],
  ["a tenant's disk that people have", ['disk_pressure_tenant', incident({}), []]],
  ['a dead host whose VMs run elsewhere', ['host_lost', incident({ category: 'mitigated' }), []]],
  [
    'what does not last, after three attempts',
    [
      'relapse',
      incident({ category: 'does_not_last', resolution: quotes }),
      rows('claimed', 'resolved', 'claimed', 'resolved', 'claimed', 'resolved', 'escalated'),
    ],
  ],
  [
    'an alert that goes on, of which people heard once before',
    ['unended_alert', incident({ category: 'alert_goes_on' }), [row('claimed'), row('noted', 'repair_confirmed')]],
  ],
  [
    'what is expected, without a run after the mark',
    [
      'backup_notice',
      incident({ status: 'resolved', outcome: 'expected' }),
      [row('claimed'), row('noted', 'expected_marked')],
    ],
  ],
])('%s is a good end', (_, end) => expect(checkEnding(...end)).toEqual([]))

test.each<[string, Parameters<typeof checkEnding>]>([
  ['a dead host that is called repaired', ['host_down', incident({ status: 'resolved', outcome: 'repaired' }), []]],
  [
    'a mitigation of what does not fire',
    ['host_lost', incident({ category: 'mitigated', alerts: { firing: 0, unknown: 0 } }), []],
  ],
  ['a plan without room that is called a mitigation', ['rack_down', incident({ category: 'mitigated' }), []]],
  ['a notice that is called no fault', ['backup_notice', incident({ status: 'resolved', outcome: 'no_fault' }), []]],
  [
    'a mark after which a run began all the same',
    [
      'backup_notice',
      incident({ status: 'resolved', outcome: 'expected' }),
      [row('noted', 'expected_marked'), row('claimed')],
    ],
  ],
  [
    'a relapse that two attempts gave up',
    ['relapse', incident({ category: 'does_not_last', resolution: quotes }), rows('claimed', 'claimed')],
  ],
  [
    'an escalation that quotes no attempt',
    ['relapse', incident({ category: 'does_not_last' }), rows('claimed', 'claimed', 'claimed')],
  ],
  [
    'an alert that goes on, and nobody heard that the repair held',
    ['unended_alert', incident({ category: 'alert_goes_on' }), rows('claimed')],
  ],
  [
    'a repair at the first attempt, where a person had to end another fault before',
    ['after_escalated', incident({ status: 'resolved', outcome: 'repaired' }), rows('claimed')],
  ],
])('%s is none', (_, end) => expect(checkEnding(...end)).not.toEqual([]))

test('an incident that is still worked on is no end of any scenario', () => {
  for (const scenario of scenarioNames) {
    expect([scenario, checkEnding(scenario, incident({ status: 'open' }), []).length]).toEqual([scenario, 1])
  }
})

test.each<[string, Partial<ApiIncident>]>([
  ['it waits for its investigation', { status: 'open' }],
  ['it is being investigated', { status: 'investigating' }],
  ['it waits for a decision of a person', { status: 'awaiting_approval' }],
  ['mitigated, people have it', { category: 'mitigated' }],
  ['handed over, people have it', {}],
  ['anna has it', { owner: { id: 'op_1', name: 'anna', since: '' } }],
  ['repaired, watched until it ends', { status: 'resolved', outcome: 'repaired', watchUntil: '2026-01-01T00:00:00Z' }],
  ['expected, by the mark of a person', { status: 'resolved', outcome: 'expected' }],
  ['a person closed it, and is reminded', { status: 'resolved', outcome: 'no_fault', closedBy: 'person' }],
])('of an alert that fires: %s', (told, rest) => expect(describeHolder(incident(rest))).toBe(told))

test.each<[string, Partial<ApiIncident>]>([
  ['repaired, and nothing watches it', { status: 'resolved', outcome: 'repaired' }],
  ['over by itself', { status: 'resolved', outcome: 'self_resolved' }],
  ['no fault', { status: 'resolved', outcome: 'no_fault' }],
])('an alert that fires on an incident that ended as %s has nobody', (_, rest) =>
  expect(describeHolder(incident(rest))).toBeNull(),
)

const apiWith = (...items: ApiIncident[]) =>
  ({ url: 'http://api.test', get: async () => ({ items, nextCursor: null }) }) as unknown as ApiClient
const whole = (rest: Partial<ApiIncident>) => ({ ...incidentExample, ...incident({}), ...rest }) as ApiIncident

test('a show does not end well while an alert fires that nobody has', async () => {
  const closed = whole({ status: 'resolved', outcome: 'self_resolved', closedBy: 'agent' })
  await expect(printFiringAlerts(apiWith(whole({ category: 'mitigated' }), closed))).rejects.toThrow(
    'An alert fires that no person has and nothing watches: service_down of inc_1.',
  )
  await printFiringAlerts(apiWith(whole({ category: 'mitigated' })))
  await printFiringAlerts(apiWith({ ...closed, alerts: { firing: 0, unknown: 0 } }))
})
