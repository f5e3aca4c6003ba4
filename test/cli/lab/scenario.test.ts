import { expect, test } from '@jest/globals'
import { incidentExample } from '../../../api/routes/examples.ts'
import type { ApiClient } from '../../../cli/api.ts'
import { describeEvent } from '../../../cli/incidents/timeline.ts'
import { describeHolder, printFiringAlerts } from '../../../cli/lab/demo.ts'
import { checkEnding, faultRows, scenarioNames } from '../../../cli/lab/endings.ts'
import { clearStage, findFreshTarget, untilQuiet } from '../../../cli/lab/place.ts'
import { type Audience, breakAndFind, findIncident } from '../../../cli/lab/play.ts'
import { withShortTimes } from '../../../cli/lab/scripts.ts'
import type { ApiIncident } from '../../../cli/read-api.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import type { LabClient } from '../../../lab/client.ts'
import type { Fault, FaultName } from '../../../lab/state.ts'

const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 3, 0, second)).toISOString()
const node = 'node-web-osl-1a'
const fault = { fault: 'service_down', target: node, on: node, hosts: [], at: at(10) } as unknown as Fault

type Stored = {
  id: string
  /** Null: the incident names no resource, only its title does. */
  on?: string | null
  title?: string
  status?: string
  closedAt?: string | null
  category?: string | null
  alerts: string[]
}

/** An API that knows these incidents, newest first, each with the starts of its alerts. */
function apiWith(stored: Stored[], type = 'service_down'): ApiClient {
  const items = stored.map(
    ({ id, on = node, title = 'Node down', status = 'open', closedAt = null, category = null }) => ({
      ...incidentExample,
      id,
      status,
      closedAt,
      category,
      type,
      title,
      resource: on === null ? null : { kind: 'node', id: on },
    }),
  )
  const get = async (path: string) => {
    const about = stored.find(({ id }) => path.includes(`/${id}/surroundings`))
    if (path.includes('/events')) return { items: [] }
    const one = items.find(({ id }) => path.endsWith(`/${id}`))
    if (one) return one
    if (about) return { alerts: about.alerts.map((startsAt) => ({ startsAt, status: 'firing' })) }
    expect(path).toContain(`type=${type}`)
    return { items, nextCursor: null }
  }
  return { url: 'http://api.test', get } as unknown as ApiClient
}

test.each<[string, Stored[], string]>([
  [
    'the one whose alert began after the fault, not a newer one of another place',
    [
      { id: 'inc_newer', on: 'node-web-ams-1a', alerts: [at(12)] },
      { id: 'inc_own', alerts: [at(11)] },
    ],
    'inc_own',
  ],
  [
    'an older one that its alert opened again, not a newer one of the same place that is closed',
    [
      { id: 'inc_closed', status: 'resolved', closedAt: at(5), alerts: [at(3)] },
      { id: 'inc_again', alerts: [at(1), at(11)] },
    ],
    'inc_again',
  ],
  [
    'the first of two with the same name that began after it',
    [
      { id: 'inc_second', alerts: [at(13)] },
      { id: 'inc_first', alerts: [at(11)] },
    ],
    'inc_first',
  ],
  [
    'the one whose title names the place, not one with a longer name',
    [
      { id: 'inc_own', on: null, title: `${node}: down`, alerts: [at(12)] },
      { id: 'inc_longer', on: null, title: `${node}-2 is down`, alerts: [at(11)] },
    ],
    'inc_own',
  ],
])('the incident of a fault is %s', async (_, stored, expected) => {
  expect((await findIncident(apiWith(stored), fault)).id).toBe(expected)
})

test.each<[string, string, string, string]>([
  [
    'k8s_crash_loop',
    'shop/cart',
    'lab-cluster:shop:deployment:cart',
    'Pod is crash looping. (shop/cart-6676c9bfb4-x4hdb)',
  ],
  ['k8s_job_endless', 'shop/reindex-catalog', 'lab-cluster:shop', 'Job did not complete (shop/reindex-catalog)'],
  ['k8s_volume_unbound', 'shop/ledger', 'lab-cluster:shop', 'Claim pending (shop/ledger-data-fast)'],
])(
  'the incident of %s is found by its resource, or by the name of a resource that is not in the registry yet',
  async (...words) => {
    const [name, on, id, title] = words
    const broken = { ...fault, fault: name, target: on, on } as unknown as Fault
    const stored = [
      { id: 'inc_other', on: 'lab-cluster:shop:deployment:catalog', title: 'Another (shop/catalog)', alerts: [at(11)] },
      { id: 'inc_own', on: id, title, alerts: [at(11)] },
    ]
    expect((await findIncident(apiWith(stored, faultRows[broken.fault].alert ?? ''), broken)).id).toBe('inc_own')
  },
)

test('a late incident is waited for, people see the reason, and so does the end', async () => {
  const stored: Stored[] = []
  const told: string[] = []
  const tell = (text: string) => {
    told.push(text)
    stored.push({ id: 'inc_late', alerts: [at(11)] })
  }
  const late = { ...apiWith([]), get: (path: string) => apiWith(stored).get(path) } as unknown as ApiClient
  expect((await findIncident(late, fault, { tell, everyMs: 0 })).id).toBe('inc_late')
  expect(told).toEqual([expect.stringContaining(`an alert service_down about ${node}`)])
  await expect(findIncident(apiWith([]), fault, { withinMs: 0 })).rejects.toThrow(`an alert service_down about ${node}`)
})

const stageOf = (target: string) => ({ faults: ['service_down' as const], target, hit: [] })

test('a scenario begins when no run works on its target', async () => {
  const working = {
    ...incidentExample,
    id: 'inc_1',
    type: 'red',
    status: 'investigating',
    resource: { kind: 'node', id: node },
  }
  const items = [working]
  const api = { url: 'http://api.test', get: async () => ({ items, nextCursor: null }) } as unknown as ApiClient
  await expect(untilQuiet(api, stageOf(node), { withinMs: 0 })).rejects.toThrow('inc_1 (red, investigating)')
  const told: string[] = []
  const tell = (text: string) => {
    told.push(text)
    items.pop()
  }
  await untilQuiet(api, stageOf('web-osl-1'), { everyMs: 0, tell })
  expect(told).toEqual([expect.stringContaining('inc_1')])
})

/** An API with one resolved incident whose alert still fires, of a sender with these labels. */
const firingStill = (labels: Record<string, string>) => {
  const incident = { ...incidentExample, id: 'inc_1', type: 'service_down', status: 'resolved' }
  const items = [{ ...incident, alerts: { firing: 1, unknown: 0 }, resource: { kind: 'node', id: node } }]
  const alerts = [{ startsAt: at(1), status: 'firing', labels }]
  const get = async (path: string) => (path.includes('surroundings') ? { alerts } : { items, nextCursor: null })
  return { url: 'http://api.test', get } as unknown as ApiClient
}

test('a scenario begins when the alert of the previous play has ended, because its alert would not start again', async () => {
  const stage = stageOf('web-osl-1')
  await expect(untilQuiet(firingStill({}), stage, { withinMs: 0 })).rejects.toThrow(
    `the alert service_down about ${node} (inc_1) to end, and broke nothing`,
  )
  // Its sender never tells of an end.
  await untilQuiet(firingStill({ monitor: 'cron-check' }), stage, { withinMs: 0 })
  await untilQuiet(firingStill({}), stageOf('web-ams-1'), { withinMs: 0 })
})

test.each<[string, { target: string; faults: FaultName[]; isNamed: boolean }, string[], string[]]>([
  [
    'the same fault anywhere, and what else was broken on its shard',
    { target: 'web-osl-1', faults: ['service_down'], isNamed: false },
    ['service_down node-web-osl-1a', 'disk_pressure_tenant node-web-osl-1b', 'service_down node-web-ams-1a'],
    ['node-web-osl-1a', 'node-web-osl-1b'],
  ],
  [
    'only what is on its shard, where the target was named',
    { target: node, faults: ['service_down'], isNamed: true },
    ['service_down node-web-osl-1a', 'disk_pressure_tenant node-web-osl-1b'],
    ['node-web-osl-1a', 'node-web-osl-1b'],
  ],
  [
    'every fault of a host, where it is played on one',
    { target: 'host-osl-1', faults: ['host_down'], isNamed: false },
    ['rack_down ams-r1', 'drain host-osl-3'],
    ['ams-r1', 'host-ams-1', 'host-ams-2', 'host-osl-3', 'host-osl-3'],
  ],
  [
    'what an alert is about, where that is a server that several use',
    { target: 'node-web-ams-1b', faults: ['connection_pool'], isNamed: false },
    ['service_down node-web-ams-1a', 'connection_pool node-db-osl-1a'],
    ['node-web-ams-1a', 'node-db-osl-1a'],
  ],
])('leftovers of earlier plays are reverted: %s', async (_, { isNamed, ...stage }, expected, waitedFor) => {
  const left = [
    ['service_down', 'node-web-osl-1a', []],
    ['disk_pressure_tenant', 'node-web-osl-1b', []],
    ['service_down', 'node-web-ams-1a', []],
    ['rack_down', 'ams-r1', ['host-ams-1', 'host-ams-2']],
    ['drain', 'host-osl-3', ['host-osl-3']],
    ['connection_pool', 'node-db-osl-1a', [], 'node-web-osl-2b'],
  ].map(([name, on, hosts, target = on]) => ({ ...fault, fault: name, on, target, hosts }) as Fault)
  const healed: string[] = []
  const heal = async (name: string, target: string) => {
    const { on } = left.find((each) => each.fault === name && each.target === target) as Fault
    return healed.push(`${name} ${on}`)
  }
  const lab = { faults: async () => left, heal } as unknown as LabClient
  const hit = await clearStage(lab, { ...stage, hit: [] }, { isNamed, tell: () => undefined })
  expect(healed).toEqual(expected)
  expect(hit).toEqual(waitedFor)
})

const lab = { break: async () => fault } as unknown as LabClient
const silent = { broken() {}, found() {}, remark() {} } as unknown as Audience
const spent = (closedAt: string): Stored => ({ id: 'inc_1', status: 'escalated', closedAt, alerts: [at(11)] })

test('a fresh place is one without a fault, and without an incident of the same sender today', async () => {
  const items = [
    { ...incidentExample, id: 'inc_1', resource: { kind: 'node', id: 'node-1' }, updatedAt: new Date().toISOString() },
    { ...incidentExample, id: 'inc_2', resource: { kind: 'node', id: 'node-2' }, updatedAt: new Date().toISOString() },
  ]
  const alertsOf = (path: string) => [{ startsAt: at(1), status: 'firing', labels: path.includes('inc_2') ? cron : {} }]
  const cron = { monitor: 'cron-check' }
  const get = async (path: string) =>
    path.includes('surroundings') ? { alerts: alertsOf(path) } : { items, nextCursor: null }
  const api = { url: 'http://api.test', get } as unknown as ApiClient
  const places = ['node-0', 'node-1', 'node-2']
  const world = { faults: async () => [{ ...fault, on: 'node-0' }] } as unknown as LabClient
  expect(await findFreshTarget(api, world, 'relapse', places)).toBe('node-2')
  expect(await findFreshTarget(api, world, 'unended_alert', places)).toBe('node-1')
})

test.each<[string, Stored, boolean, number]>([
  ['only counted, since it was handed over before', spent(at(5)), true, 1],
  ['handed over at once', { ...spent(at(12)), category: 'does_not_last' }, true, 1],
  [
    'handed over at once, and its three attempts are the play',
    { ...spent(at(12)), category: 'does_not_last' },
    false,
    0,
  ],
  ['investigated', { ...spent(at(12)), category: 'no_tool' }, true, 0],
])(
  'whether an attempt is requested if earlier plays used up the attempts of a day: %s',
  async (_, stored, asksForMore, n) => {
    const posted: string[] = []
    const api = { ...apiWith([stored]), post: async (path: string) => posted.push(path) } as unknown as ApiClient
    await breakAndFind({ api, lab, asksForMore }, 'service_down', node, silent)
    expect(posted).toEqual(Array(n).fill('/api/v1/incidents/inc_1/investigate'))
  },
)

test('an incident that its alert reopened after it was listed is not taken for the closed one', async () => {
  const stored = [spent(at(5))]
  const listed = apiWith(stored)
  const get = async (path: string) => {
    const answer = await listed.get(path)
    return path.endsWith('/inc_1') ? { ...(answer as object), status: 'open', closedAt: null } : answer
  }
  const post = async (path: string) => Promise.reject(new Error(`409 of ${path}`))
  const api = { ...listed, get, post } as unknown as ApiClient
  const found = await breakAndFind({ api, lab, asksForMore: true }, 'service_down', node, silent)
  expect(found.incidentId).toBe('inc_1')
})

test('if no attempt is requested, an alert that is only counted is reported as such', async () => {
  await expect(breakAndFind({ api: apiWith([spent(at(5))]), lab }, 'service_down', node, silent)).rejects.toThrow(
    'Nightshift only counts its alert',
  )
})

test('intervals that a scenario shortens are restored, and both changes are printed, also when it fails', async () => {
  const values: Record<string, string> = {}
  const api = {
    async get(path: string) {
      if (path.includes('/effective')) return { items: [{ name: 'alert.settle', value: 900 }] }
      const key = decodeURIComponent(path.split('/').at(-1) as string)
      return { key, value: values[key] ?? null, version: 1, locked: false, problem: null }
    },
    async put(path: string, body: { value: string }) {
      values[decodeURIComponent(path.split('/').at(-1) as string)] = body.value
    },
  } as unknown as ApiClient
  const said: string[] = []
  const work = async () => {
    said.push(`it is ${values['alert.settle.service_down']}`)
    throw new Error('it failed')
  }
  const times = { 'alert.settle': 10 }
  await expect(withShortTimes(api, 'service_down', times, (text) => said.push(text), work)).rejects.toThrow('it failed')
  expect(said).toEqual([
    'For this scenario: alert.settle.service_down is 10 s.',
    'it is 10',
    'Settings as before: alert.settle.service_down is 900 s.',
  ])
})

const incident = (rest: Partial<ApiIncident>) =>
  ({
    id: 'inc_1',
    type: 'service_down',
    status: 'escalated',
    outcome: null,
    category: null,
    closedBy: 'agent',
    alerts: { firing: 1, unknown: 0 },
    resolution: '',
    watchUntil: null,
    reviewWantedAt: null,
    cancelledUntil: null,
    owner: null,
    keptReason: null,
    ...rest,
  }) as ApiIncident
const row = (kind: string, code?: string) => ({ kind, metadata: { code } }) as unknown as IncidentEvent
const rows = (...kinds: string[]) => kinds.map((kind) => row(kind))
const quotes = [1, 2, 3].map((attempt) => `Attempt ${attempt} of inc_1: …`).join('\n')

const readsOfLock = (seq: number, tool = 'run_job') =>
  [
    {
      seq: 7,
      kind: 'tool_finished',
      metadata: { tool: 'exec', outcome: 'done', arguments: { argv: ['tail', 'logs/search.log'] } },
    },
    { seq: 8, kind: 'tool_finished', metadata: { tool, effect: 'write', outcome: 'done', arguments: {} } },
    { seq: 9, kind: 'resolved', metadata: { claims: [{ quotes: [{ seq, text: 'locked by pid 7' }] }] } },
  ] as unknown as IncidentEvent[]

const held = { kind: 'verification', metadata: { outcome: 'held' } } as unknown as IncidentEvent
const supportedBy = (seq: number) =>
  ({
    kind: 'commented',
    metadata: { hypothesis: { state: 'supported', quotes: [{ seq, text: 'x' }] } },
  }) as unknown as IncidentEvent

/** The same rows of two plays one after the other, in one incident. */
const playedTwice = [2, 12].flatMap((second) => readsOfLock(7).map((each) => ({ ...each, at: at(second) })))

test.each<[string, Parameters<typeof checkEnding>]>([
  [
    'what this play did, in an incident where an earlier one did the same',
    ['stale_lock', incident({ status: 'resolved', outcome: 'repaired' }), playedTwice, at(10)],
  ],
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
    'a log that tail read and the resolution quotes',
    ['stale_lock', incident({ status: 'resolved', outcome: 'repaired' }), readsOfLock(7)],
  ],
  [
    'a lock that another write than the job took away',
    ['stale_lock', incident({ status: 'resolved', outcome: 'repaired' }), readsOfLock(7, 'exec')],
  ],
  [
    'a log that the supported cause quotes',
    ['stale_lock', incident({ status: 'resolved', outcome: 'repaired' }), [...readsOfLock(8), supportedBy(7)]],
  ],
  [
    'room that was made in a log which is filled on',
    ['full_log', incident({ category: 'mitigated' }), readsOfLock(7, 'exec')],
  ],
  ['a dead host that people get after its VMs were moved', ['host_down', incident({ category: 'no_tool' }), [held]]],
  [
    'a relapse that the second attempt hands over',
    ['relapse', incident({ category: 'no_tool' }), rows('claimed', 'claimed')],
  ],
  ['a wrong check that no tool may change', ['false_alarm', incident({ category: 'no_tool' }), []]],
  ['a healthy service whose metrics are missing', ['missing_data', incident({ category: 'no_fault_found' }), []]],
  [
    'an alert that goes on after a write whose verification held',
    ['unended_alert', incident({ category: 'alert_goes_on' }), [row('claimed'), held]],
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
  [
    'a log that no word was quoted of',
    ['stale_lock', incident({ status: 'resolved', outcome: 'repaired' }), readsOfLock(8)],
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
  ['a log that is called mitigated and no room was made', ['full_log', incident({ category: 'mitigated' }), []]],
  [
    'a lock that nothing took away',
    [
      'stale_lock',
      incident({ status: 'resolved', outcome: 'repaired' }),
      readsOfLock(7).filter(({ seq }) => seq !== 8),
    ],
  ],
  ['a dead host that people get without any write', ['host_down', incident({ category: 'no_tool' }), []]],
  ['a relapse that is handed over at first sight', ['relapse', incident({ category: 'no_tool' }), rows('claimed')]],
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
])('%s is not a good end', (_, end) => expect(checkEnding(...end)).not.toEqual([]))

test('an open incident is not the end of any scenario', () => {
  for (const scenario of scenarioNames) {
    expect([scenario, checkEnding(scenario, incident({ status: 'open' }), []).length]).toEqual([scenario, 1])
  }
})

test.each<[string, Partial<ApiIncident>]>([
  ['the incident waits for its investigation', { status: 'open' }],
  ['the incident is being investigated', { status: 'investigating' }],
  ['the incident awaits approval', { status: 'awaiting_approval' }],
  ['escalated (mitigated)', { category: 'mitigated' }],
  ['escalated', {}],
  ['anna owns the incident', { owner: { id: 'op_1', name: 'anna', since: '' } }],
  ['repaired, watched until it ends', { status: 'resolved', outcome: 'repaired', watchUntil: '2026-01-01T00:00:00Z' }],
  ['a person marked the alert as expected', { status: 'resolved', outcome: 'expected' }],
  ['a person closed the incident, and is reminded', { status: 'resolved', outcome: 'no_fault', closedBy: 'person' }],
])('the holder of a firing alert is described: %s', (told, rest) => expect(describeHolder(incident(rest))).toBe(told))

test.each<[string, Partial<ApiIncident>]>([
  ['repaired, and nothing watches it', { status: 'resolved', outcome: 'repaired' }],
  ['over by itself', { status: 'resolved', outcome: 'self_resolved' }],
  ['no fault', { status: 'resolved', outcome: 'no_fault' }],
])('a firing alert on an incident that ended as %s has no owner', (_, rest) =>
  expect(describeHolder(incident(rest))).toBeNull(),
)

const apiOf = (...items: ApiIncident[]) =>
  ({ url: 'http://api.test', get: async () => ({ items, nextCursor: null }) }) as unknown as ApiClient
const whole = (rest: Partial<ApiIncident>) => ({ ...incidentExample, ...incident({}), ...rest }) as ApiIncident

test('a show does not end well while an alert fires without an owner', async () => {
  const closed = whole({ status: 'resolved', outcome: 'self_resolved', closedBy: 'agent' })
  await expect(printFiringAlerts(apiOf(whole({ category: 'mitigated' }), closed))).rejects.toThrow(
    'An alert fires, and nobody has taken or watches its incident: service_down of inc_1.',
  )
  await printFiringAlerts(apiOf(whole({ category: 'mitigated' })))
  await printFiringAlerts(apiOf({ ...closed, alerts: { firing: 0, unknown: 0 } }))
})

const started = (tool: string, args: Record<string, unknown>) =>
  describeEvent({ kind: 'tool_started', metadata: { tool, arguments: args } } as unknown as IncidentEvent)
const finished = (data: unknown) =>
  describeEvent({
    kind: 'tool_finished',
    metadata: { tool: 'exec', arguments: {}, outcome: 'done', result: { ok: true, data }, durationMs: 7 },
  } as unknown as IncidentEvent)

test.each([
  ['converge_shard', { id: 'db-osl-1', reason: 'it lags' }, 'converge_shard db-osl-1 starts'],
  ['pkg_install', { on: 'web-1', packages: ['tariffs'] }, 'pkg_install web-1: tariffs starts'],
  [
    'exec',
    { on: 'web-1', argv: ['rm', '--', '/srv/log/trace.log.1'] },
    'exec web-1: rm -- /srv/log/trace.log.1 starts',
  ],
  ['exec', { argv: ['uptime'] }, 'exec uptime starts'],
  ['exec', { on: 'web-1', argv: ['rm', 'x'.repeat(200)] }, `exec web-1: rm ${'x'.repeat(67)}… starts`],
])('a call of %s is printed with its targets: %j', (tool, args, told) => {
  expect(started(tool, args)).toBe(told)
})

test('an answer is printed as far as it fits in a line, and empty fields are left out', () => {
  expect(finished({ device: 'web-1', exit_code: 0, stdout: '', stderr: '', cmd: 'a\nb' })).toBe(
    'exec done: device web-1, exit_code 0 (7 ms)',
  )
})
