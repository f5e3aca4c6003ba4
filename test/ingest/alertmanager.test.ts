import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Alert, alert as alertSchema } from '../../domain/alert.ts'
import { parseAlertmanager as parse } from '../../ingest/alertmanager.ts'

const now = '2026-11-21T02:00:00.000Z'
const folder = new URL('../data/alertmanager/', import.meta.url)
const recorded = (name: string) => readFileSync(new URL(`${name}.json`, folder))
const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

function alertsOf(bytes: Uint8Array): Alert[] {
  const parsed = parse(bytes, now)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alerts
}

/** One alert with the given fields over a plain firing one. */
function one(item: Record<string, unknown>, group: Record<string, unknown> = {}): Alert {
  return alertsOf(bytesOf({ version: '4', status: 'firing', alerts: [item], ...group }))[0]!
}

const table: [string, Partial<Alert>[], string[]][] = [
  [
    'service-down',
    [
      {
        status: 'firing',
        name: 'service_down',
        severity: 'critical',
        severitySource: 'alert',
        severityWord: 'critical',
        endsAt: null,
        groupKey: '{}:{alertname="service_down"}',
        truncatedAlerts: 0,
        cappedFields: [],
      },
    ],
    [],
  ],
  [
    'replication-lag',
    [
      {
        fingerprint: 'f009a6a4f240b923',
        title: 'MySQL replication lag exceeded 30s on shard db-osl-1',
        severity: 'critical',
        startsAt: '2026-11-21T01:44:28.691Z',
        endsAt: null,
        links: {
          generator: 'http://prometheus:9090/graph?g0.expr=replication_lag',
          external: 'http://alertmanager:9093/',
          runbook: 'https://runbooks.example.com/replication_lag',
        },
      },
    ],
    [],
  ],
  ['replication-lag-resolved', [{ status: 'resolved', fingerprint: 'f009a6a4f240b923' }], []],
  [
    'mixed-one-resolved-two-firing',
    [
      { fingerprint: 'cfacc9d93bd6f683', status: 'resolved', severity: 'warning', endsAt: '2026-11-21T01:45:42.955Z' },
      { fingerprint: 'd31ad0f4dc131d54', status: 'firing', severity: 'warning', endsAt: null },
      { fingerprint: '7327a53e3b15a237', status: 'firing', severity: 'critical', endsAt: null },
    ],
    [],
  ],
  ['disk-pressure-group-of-3', [{ name: 'disk_pressure' }, { name: 'disk_pressure' }, { name: 'disk_pressure' }], []],
  [
    'no-severity-no-instance',
    [
      {
        severity: 'warning',
        severitySource: 'default',
        severityWord: null,
        title: 'no_severity_no_instance',
        links: { generator: null, external: 'http://alertmanager:9093/', runbook: null },
      },
    ],
    [],
  ],
  [
    'hostile-labels',
    [
      {
        name: 'weird "name"; DROP TABLE incident;--',
        severity: 'warning',
        severitySource: 'default',
        severityWord: 'bogus-severity',
        title: '日本語 ünïcode ‮ rtl (node-<script>alert(1)</script>)', // the right-to-left mark is data; the pages show it inert
      },
    ],
    [],
  ],
  ['oversize-160-kb', [{ severity: 'critical' }], ['annotations', 'name']],
]

test.each(table)('a recorded %s webhook becomes the alerts that an operator expects', (name, expected, cappedKinds) => {
  const alerts = alertsOf(recorded(name))
  expect(alerts).toHaveLength(expected.length)
  for (const [index, fields] of expected.entries()) expect(alerts[index]).toMatchObject(fields)
  const capped = alerts.flatMap((one) => one.cappedFields)
  for (const kind of cappedKinds) expect(capped.some((field) => field.startsWith(kind))).toBe(true)
})

test('a group that the sender cut shows how many alerts are missing', () => {
  const alerts = alertsOf(recorded('disk-pressure-50-of-72-truncated'))
  expect(alerts).toHaveLength(50)
  expect(alerts.every((one) => one.truncatedAlerts === 22)).toBe(true)
})

test.each(readdirSync(folder).filter((name) => name.endsWith('.json')))(
  'every alert of %s fits the contract',
  (name) => {
    for (const one of alertsOf(readFileSync(new URL(name, folder)))) {
      expect(alertSchema.parse(one)).toEqual(one)
      expect(one.name.length).toBeLessThanOrEqual(200)
      expect([...one.title].length).toBeLessThanOrEqual(300)
      for (const value of Object.values(one.labels)) expect(Buffer.byteLength(value)).toBeLessThanOrEqual(1_024)
      for (const value of Object.values(one.annotations)) expect(Buffer.byteLength(value)).toBeLessThanOrEqual(4_096)
    }
  },
)

test.each([
  ['critical', 'critical'],
  ['CRITICAL', 'critical'],
  [' Error ', 'critical'],
  ['high', 'critical'],
  ['major', 'critical'],
  ['page', 'critical'],
  ['fatal', 'critical'],
  ['emergency', 'critical'],
  ['p1', 'critical'],
  ['medium', 'warning'],
  ['minor', 'warning'],
  ['warn', 'warning'],
  ['average', 'warning'],
  ['low', 'info'],
  ['notice', 'info'],
  ['debug', 'info'],
  ['none', 'info'],
  ['ok', 'info'],
])('severity %s is %s', (word, severity) => {
  expect(one({ labels: { alertname: 'X', severity: word } })).toMatchObject({ severity, severitySource: 'alert' })
})

test.each(['constructor', '__proto__', 'toString', 'bogus', '💥'])(
  'the unknown severity %s is a warning that is marked as a default',
  (word) => {
    const found = one({ labels: JSON.parse(`{"alertname":"X","severity":${JSON.stringify(word)}}`) })
    expect(found).toMatchObject({ severity: 'warning', severitySource: 'default', severityWord: word })
  },
)

test.each([
  ['', 'the request body is empty'],
  ['{', 'the request body is not JSON'],
  ['[]', 'not an Alertmanager webhook: the request body is an array, not an object'],
  ['"x"', 'not an Alertmanager webhook: the request body is a string, not an object'],
  ['null', 'not an Alertmanager webhook: the request body is null, not an object'],
  ['{}', 'not an Alertmanager webhook: "alerts" is missing, not a list'],
  ['{"alerts":{}}', 'not an Alertmanager webhook: "alerts" is an object, not a list'],
  ['{"alerts":[{},7]}', 'not an Alertmanager webhook: alerts[1] is a number, not an object'],
])('the body %s is refused with a precise reason', (body, reason) => {
  expect(parse(new TextEncoder().encode(body), now)).toEqual({ ok: false, reason })
})

test('a webhook without alerts is valid and more than fifty thousand are refused', () => {
  expect(parse(bytesOf({ alerts: [] }), now)).toEqual({ ok: true, alerts: [] })
  expect(alertsOf(bytesOf({ alerts: Array(1_001).fill({}) }))).toHaveLength(1_001)
  expect(parse(bytesOf({ alerts: Array(50_001).fill({}) }), now)).toMatchObject({
    ok: false,
    reason: expect.stringContaining('50001 alerts'),
  })
})

test('an alert without a fingerprint gets one from its labels, in any order', () => {
  const a = one({ labels: { alertname: 'X', node: 'n1' } }).fingerprint
  const b = one({ labels: { node: 'n1', alertname: 'X' } }).fingerprint
  expect(a).toMatch(/^[0-9a-f]{16}$/)
  expect(b).toBe(a)
  expect(one({ labels: { node: 'n2', alertname: 'X' } }).fingerprint).not.toBe(a)
})

test('two alerts that differ only behind the limit of a label stay two alerts', () => {
  const long = 'x'.repeat(5_000)
  const [a, b] = [one({ labels: { l: `${long}a` } }), one({ labels: { l: `${long}b` } })]
  expect(a.labels).toEqual(b.labels)
  expect(a.fingerprint).not.toBe(b.fingerprint)
  const [c, d] = [one({ fingerprint: `${long}a` }), one({ fingerprint: `${long}b` })]
  expect(c.fingerprint).not.toBe(d.fingerprint)
  expect(c.fingerprint.length).toBeLessThanOrEqual(200)
})

test('an alert fires whatever the group says, unless the alert itself is resolved', () => {
  expect(one({}, { status: 'resolved' })).toMatchObject({ status: 'firing', endsAt: null })
  expect(one({ status: 'resolved', endsAt: '0001-01-01T00:00:00Z' })).toMatchObject({ status: 'resolved', endsAt: now })
  expect(one({ status: 'firing', endsAt: '2027-01-01T00:00:00Z' }).endsAt).toBeNull()
})

test('links that are not http or https, or that hide their host, are dropped', () => {
  for (const link of [
    'javascript:alert(1)',
    'java\nscript:alert(1)',
    'file:///etc/passwd',
    'https://a.example@b.example/',
    7,
  ]) {
    const found = one({ generatorURL: link, annotations: { runbook_url: link } }, { externalURL: link })
    expect(found.links).toEqual({ generator: null, external: null, runbook: null })
  }
})

test('a __proto__ label is data and changes no prototype', () => {
  const text = '{"alerts":[{"labels":{"__proto__":"x","alertname":"A"},"__proto__":{"status":"resolved"}}]}'
  const found = alertsOf(new TextEncoder().encode(text))[0]!
  expect(Object.entries(found.labels)).toContainEqual(['__proto__', 'x'])
  expect(found.status).toBe('firing')
  expect(({} as Record<string, unknown>).status).toBeUndefined()
})

test('U+0000 and lone surrogates are replaced', () => {
  const text =
    '{"alerts":[{"labels":{"alertname":"a\\u0000b\\ud800","k\\u0000":"v"},"annotations":{"summary":"\\udfff!"}}]}'
  const found = alertsOf(new TextEncoder().encode(text))[0]!
  expect(found.name).toBe('a\uFFFDb\uFFFD')
  expect(found.title).toBe('\uFFFD!')
  expect(JSON.stringify(found)).not.toMatch(/\\u0000|\\ud[89a-f]/)
})

test('the labels that route an alert are kept among many others', () => {
  const crowd = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, 'x']))
  const found = one({
    labels: { ...crowd, alertname: 'X', severity: 'critical', shard: 'db-osl-1', incident_type: 'y' },
  })
  expect(Object.keys(found.labels)).toHaveLength(64)
  expect(found.labels).toMatchObject({ shard: 'db-osl-1', incident_type: 'y', severity: 'critical' })
  expect(found.cappedFields).toHaveLength(40)
})

test('values are cut between code points, never inside one', () => {
  const found = one({
    labels: { alertname: '😀'.repeat(300), l: '😀'.repeat(600) },
    annotations: { summary: 'é'.repeat(400) },
  })
  expect([...found.name]).toHaveLength(200)
  expect([...found.title]).toHaveLength(300)
  for (const text of [found.name, found.title, found.labels.l!]) {
    expect(text.isWellFormed()).toBe(true)
    expect(text.endsWith('…')).toBe(true)
  }
  expect(found.cappedFields).toEqual(['labels.alertname', 'labels.l', 'name', 'title'])
})

test('a body nested a million deep is refused or read, without a crash', () => {
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
  expect(parse(new TextEncoder().encode(deep), now).ok).toBe(false)
  expect(alertsOf(new TextEncoder().encode(`{"alerts":[{"labels":{"x":${deep}}}]}`))).toHaveLength(1)
})

test('parsing answers for any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      expect(typeof parse(bytes, now).ok).toBe('boolean')
    }),
  )
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(typeof parse(new TextEncoder().encode(text), now).ok).toBe('boolean')
    }),
  )
})

test('parsing returns as many alerts as the body has, each within the contract', () => {
  const text = fc.string({ unit: 'binary' })
  const item = fc.record(
    {
      status: fc.oneof(fc.constantFrom('firing', 'resolved'), fc.anything()),
      labels: fc.oneof(fc.dictionary(text, fc.oneof(text, fc.jsonValue())), fc.jsonValue()),
      annotations: fc.oneof(fc.dictionary(text, text), fc.jsonValue()),
      startsAt: fc.oneof(text, fc.jsonValue()),
      endsAt: fc.oneof(text, fc.jsonValue()),
      generatorURL: fc.oneof(text, fc.webUrl(), fc.jsonValue()),
      fingerprint: fc.oneof(text, fc.jsonValue()),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(item, { maxLength: 5 }), fc.jsonValue(), (items, noise) => {
      const sent = JSON.parse(JSON.stringify({ alerts: items, groupKey: noise, truncatedAlerts: noise }))
      const alerts = alertsOf(bytesOf(sent))
      expect(alerts).toHaveLength(items.length)
      for (const found of alerts) expect(alertSchema.safeParse(found).success).toBe(true)
    }),
  )
})

test('the title of an alert about a systemd unit names the unit and its host', () => {
  const title = (labels: object, summary: string) => {
    const alerts = [{ status: 'firing', labels: { alertname: 'x', ...labels }, annotations: { summary } }]
    const parsed = parse(new TextEncoder().encode(JSON.stringify({ version: '4', alerts })), new Date().toISOString())
    return parsed.ok ? parsed.alerts[0]?.title : parsed.reason
  }
  const at = { instance: '192.0.2.11:9100' }
  const failed = 'A systemd service failed'
  expect(title({ ...at, name: 'cron.service' }, failed)).toBe(`${failed} (cron.service on 192.0.2.11:9100)`)
  expect(title({ ...at, systemd_unit: 'backup.timer' }, `${failed} on 192.0.2.11`)).toBe(
    `${failed} on 192.0.2.11 (backup.timer)`,
  )
  expect(title({ unit: 'nginx.service' }, 'nginx is down')).toBe('nginx is down')
  expect(title({ ...at, name: 'db container' }, failed)).toBe(`${failed} (192.0.2.11:9100)`)
})
