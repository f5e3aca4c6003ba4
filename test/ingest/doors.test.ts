import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Alert, alert as alertSchema } from '../../domain/alert.ts'
import { alertDialects } from '../../domain/alert-body.ts'
import { dialects } from '../../ingest/dialects.ts'
import { doors } from '../../ingest/doors.ts'
import { hintOf } from '../../ingest/nearest.ts'
import { bodiesOf } from '../support/senders.ts'

const now = '2026-11-27T10:00:00.000Z'
const parse = (dialect: string, body: string | Uint8Array) => dialects[dialect]!.parse(Buffer.from(body), now)

function alertOf(dialect: string, body: string): Alert {
  const parsed = parse(dialect, body)
  if (!parsed.ok || parsed.alerts.length !== 1) throw new Error(JSON.stringify(parsed))
  return parsed.alerts[0]!
}

const read: Record<keyof typeof bodiesOf, Partial<Alert>> = {
  pagerduty: {
    name: 'Checkout answers slowly',
    severity: 'critical',
    severityWord: 'P1',
    labels: { service: 'Shop', team: 'Commerce', incident_key: 'srv01/http' },
    startsAt: '2026-11-27T09:12:03.000Z',
    links: { generator: 'https://acme.pagerduty.com/incidents/Q1WFQ2G0K3NVZX', external: null, runbook: null },
  },
  'uptime-kuma': {
    name: 'Shop front',
    severity: 'critical',
    startsAt: '2026-11-27T09:12:03.512Z',
    labels: {
      monitor: 'Shop front',
      monitor_type: 'http',
      target: 'https://web-1.example.com/health',
      severity: 'critical',
    },
  },
  zabbix: {
    name: 'Disk is full',
    title: 'Disk /var is 96 % full (web-1)',
    severity: 'critical',
    startsAt: new Date(1_795_770_723_000).toISOString(),
    labels: {
      host: 'web-1',
      host_ip: '10.0.0.1',
      host_group: 'Linux servers',
      component: 'storage',
      scope: 'capacity, notice',
    },
  },
  cloudwatch: {
    name: 'shop-cpu',
    severity: 'warning',
    severitySource: 'default',
    startsAt: '2026-11-27T09:12:03.123Z',
    labels: {
      aws_account: '123456789012',
      aws_region: 'EU (Stockholm)',
      aws_namespace: 'AWS/EC2',
      metric: 'CPUUtilization',
      instance: 'i-0f1e2d3c',
    },
  },
  proxmox: {
    name: 'Proxmox vzdump',
    severity: 'critical',
    startsAt: new Date(1_795_770_723_000).toISOString(),
    labels: { node: 'pve1', job_id: 'backup-5e6f', kind: 'vzdump' },
  },
}

test.each(Object.entries(bodiesOf))(
  'a body of %s as in its documentation fires, and its end finds it',
  (dialect, body) => {
    const [fired, ended] = [alertOf(dialect, body()), alertOf(dialect, body({ isOver: true }))]
    expect(fired).toMatchObject({ source: dialect, status: 'firing', ...read[dialect as keyof typeof bodiesOf] })
    expect(fired.timeNotes).toEqual([])
    expect(alertSchema.parse(fired)).toEqual(fired)
    expect(ended).toMatchObject({ status: 'resolved', fingerprint: fired.fingerprint })
    expect(Date.parse(ended.endsAt!)).toBeGreaterThanOrEqual(Date.parse(fired.startsAt))
    expect(fired).not.toHaveProperty('stateWord')
  },
)

test.each([
  ['proxmox', 'the same backup job on another node', '"hostname":"pve1"', '"hostname":"pve2"'],
  ['uptime-kuma', 'the monitor of the same number at another server', '"name":"Shop front"', '"name":"Mail"'],
  ['zabbix', 'the trigger of the same number at another server', '"host_host":"web-1"', '"host_host":"mail-1"'],
] as const)('an end from %s of %s ends no other alert', (dialect, _, ours, others) => {
  const end = bodiesOf[dialect]({ isOver: true })
  const ended = alertOf(dialect, end.replace(ours, others))
  expect(end).toContain(ours)
  expect(ended.status).toBe('resolved')
  expect(ended.fingerprint).not.toBe(alertOf(dialect, bodiesOf[dialect]()).fingerprint)
})

test('the page that tries a body offers each dialect', () => {
  expect(Object.keys(dialects)).toEqual([...alertDialects])
})

test('each entry of the table names its page, and its sender has words for states', () => {
  for (const [name, door] of Object.entries(doors)) {
    expect([name, door.from]).toEqual([name, expect.stringMatching(/^https:\/\//)])
    expect(Object.keys(bodiesOf)).toContain(name)
  }
})

const { stringify } = JSON
const kuma = JSON.parse(bodiesOf['uptime-kuma']())
test.each([
  [
    'pagerduty',
    bodiesOf.pagerduty({ key: 'inc_01kam3x0q2v8d5t7w9y1b3c5e7' }),
    'Nightshift itself opened this incident',
  ],
  ['pagerduty', bodiesOf.pagerduty({ type: 'incident.acknowledged' }), 'does not show whether an incident fires'],
  ['pagerduty', bodiesOf.pagerduty({ type: 'pagey.ping' }), 'does not show whether an incident fires'],
  ['uptime-kuma', stringify({ heartbeat: null, monitor: null, msg: 'Nightshift Testing' }), 'a test'],
  ['proxmox', stringify({ title: 'Test', message: 'm', severity: 'info', fields: { type: 'test' } }), 'a test'],
  ['cloudwatch', stringify({ Type: 'SubscriptionConfirmation', Message: 'You have chosen…' }), 'reports no alert'],
])('a body of %s without an alert is accepted and says why', (dialect, body, why) => {
  expect(parse(dialect, body)).toEqual({ ok: true, alerts: [], ignored: expect.stringContaining(why) })
})

test.each([
  [
    'cloudwatch',
    bodiesOf.cloudwatch({ state: 'INSUFFICIENT_DATA' }),
    { status: 'firing', endReason: 'INSUFFICIENT_DATA' },
  ],
  ['cloudwatch', stringify({ Type: 'Notification', Message: bodiesOf.cloudwatch() }), { name: 'shop-cpu' }],
  [
    'uptime-kuma',
    stringify({ ...kuma, heartbeat: { ...kuma.heartbeat, status: 3 } }),
    { status: 'resolved', endReason: '3' },
  ],
  ['uptime-kuma', stringify({ ...kuma, heartbeat: { ...kuma.heartbeat, status: 2 } }), { status: 'firing' }],
  [
    'uptime-kuma',
    stringify({ ...kuma, heartbeat: { ...kuma.heartbeat, status: 9 } }),
    { status: 'firing', stateWord: '9' },
  ],
  [
    'uptime-kuma',
    stringify({ heartbeat: null, monitor: null, msg: '[Shop][https://shop] certificate will expire in 7 days' }),
    { name: 'Message of Uptime Kuma', status: 'firing' },
  ],
  [
    'proxmox',
    stringify({ title: 'Disk failing', message: 'smartd', priority: 8 }),
    { severity: 'critical', name: 'Disk failing' },
  ],
  [
    'proxmox',
    stringify({ title: 't', message: 'm', severity: 'info', fields: { type: 'package-updates' } }),
    { status: 'firing', severity: 'info' },
  ],
])('other words of %s have their meaning', (dialect, body, meant) => {
  expect(alertOf(dialect, body)).toMatchObject(meant)
})

test('a body for another dialect is answered with the nearest dialect and the missing fields', () => {
  const [fired] = [JSON.parse(bodiesOf['uptime-kuma']())]
  expect(hintOf(Buffer.from(stringify(fired)))?.nearest).toEqual({
    dialect: 'uptime-kuma',
    has: ['heartbeat', 'monitor', 'msg'],
    missing: [],
  })
  const { msg: _, ...less } = fired
  expect(hintOf(Buffer.from(stringify(less)))?.nearest).toMatchObject({ dialect: 'uptime-kuma', missing: ['msg'] })
  expect(hintOf(Buffer.from(stringify({ alerts: [], receiver: 'r', groupKey: 'g' })))?.nearest?.dialect).toBe(
    'alertmanager',
  )
  expect(
    hintOf(Buffer.from(stringify({ Type: 'Notification', Message: bodiesOf.cloudwatch() })))?.nearest?.dialect,
  ).toBe('cloudwatch')
  expect(hintOf(Buffer.from('{"title":"a"}'))?.nearest).toBeNull()
  expect(hintOf(Buffer.from('[1]'))).toBeNull()
})

test('a body of no dialect gets a mapping of its fields', () => {
  const body = {
    check: { title: 'Ping lost', level: 'high' },
    entity: { hostname: 'web-1' },
    status: 'down',
    id: 'c-7',
  }
  expect(hintOf(Buffer.from(stringify(body)))?.mapping).toEqual([
    { field: 'name', path: 'check.title', value: 'Ping lost' },
    { field: 'severity', path: 'check.level', value: 'high' },
    { field: 'state', path: 'status', value: 'down' },
    { field: 'dedup', path: 'id', value: 'c-7' },
    { field: 'labels.hostname', path: 'entity.hostname', value: 'web-1' },
  ])
})

/** Bodies of senders with parts of them exchanged, left out, doubled or cut. */
const whole = [
  ...Object.values(bodiesOf).flatMap((body) => [body(), body({ isOver: true })]),
  stringify({ Type: 'Notification', Message: bodiesOf.cloudwatch() }),
  stringify({
    receiver: 'r',
    groupKey: 'g',
    alerts: [{ labels: { alertname: 'A' } }, { status: 'resolved', labels: {} }],
  }),
  stringify([{ summary: 'a' }, { title: 'b', state: 'ok' }]),
].map((text): unknown => JSON.parse(text))

const odd = fc.oneof(
  fc.constantFrom(
    null,
    '',
    0,
    -1,
    1e308,
    true,
    [],
    {},
    '\u0000',
    '\ud800',
    '__proto__',
    'inc_01kam3x0q2v8d5t7w9y1b3c5e7',
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>,
)
type Change = { at: number; how: number; value: unknown }

/** One of the places of a value, changed. */
function mutate(value: unknown, { at, how, value: other }: Change): unknown {
  const root = structuredClone({ value })
  const places: [Record<string, unknown>, string][] = []
  const open: unknown[] = [root]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const key of Object.keys(next as object)) {
      places.push([next as Record<string, unknown>, key])
      const inner = (next as Record<string, unknown>)[key]
      if (inner !== null && typeof inner === 'object') open.push(inner)
    }
  }
  const [parent, key] = places[at % places.length]!
  if (how === 0) Reflect.deleteProperty(parent, key)
  else if (how === 1) parent[key] = [parent[key], parent[key]]
  else if (how === 2) parent[key] = stringify(parent[key])
  else parent[key] = other
  return root.value
}

/** How many alerts a body claims to hold for a dialect. */
const claimed = (dialect: string, body: unknown): number => {
  if (dialect === 'generic') return Array.isArray(body) ? body.length : 1
  if (dialect === 'alertmanager' || dialect === 'grafana') return (body as { alerts: unknown[] }).alerts.length
  return 1
}

// `BODIES=1000000 npm test -- test/ingest/doors` tries more of them.
test('in changed bodies each alert is accounted for, and parsing never throws', () => {
  const changes = fc.array(fc.record({ at: fc.nat(), how: fc.nat(5), value: odd }), { minLength: 1, maxLength: 4 })
  const made = fc.record({
    body: fc.constantFrom(...whole),
    changes,
    dialect: fc.constantFrom(...Object.keys(dialects)),
  })
  fc.assert(
    fc.property(made, ({ body, changes: all, dialect }) => {
      const changed = all.reduce(mutate, body)
      const bytes = Buffer.from(stringify(changed) ?? '')
      const parsed = dialects[dialect]!.parse(bytes, now)
      hintOf(bytes)
      if (!parsed.ok) return expect(parsed.reason).not.toBe('')
      const accounted = parsed.alerts.length + (parsed.ignored === undefined ? 0 : 1)
      if (accounted !== claimed(dialect, changed)) throw new Error(`${accounted} of ${claimed(dialect, changed)}`)
      for (const alert of parsed.alerts) {
        if (!alert.name.isWellFormed() || alert.title.includes('\u0000')) throw new Error('it cannot be stored')
        if (alert.fingerprint.length === 0 || alert.fingerprint.length > 200) throw new Error('its fingerprint is none')
        if (Number.isNaN(Date.parse(alert.startsAt))) throw new Error('its start is none')
      }
    }),
    { numRuns: Number(process.env.BODIES ?? 20_000) },
  )
})
