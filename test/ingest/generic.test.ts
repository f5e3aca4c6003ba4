import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Alert, alert as alertSchema } from '../../domain/alert.ts'
import { dialectOf } from '../../ingest/dialects.ts'
import { parseGeneric as parse } from '../../ingest/generic.ts'

const now = '2026-11-21T02:00:00.000Z'
const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

function alertsOf(value: unknown): Alert[] {
  const parsed = parse(bytesOf(value), now)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alerts
}

test('a script that posts a summary opens an alert, and its close finds the same one', () => {
  const [opened] = alertsOf({
    summary: 'Backup failed',
    details: 'exit 2 at 01:00',
    severity: 'error',
    meta: { job: 'b1' },
  })
  const [closed] = alertsOf({ summary: 'Backup failed', details: 'all good', action: 'close' })
  expect(opened).toMatchObject({
    source: 'generic',
    status: 'firing',
    severity: 'critical',
    title: 'Backup failed',
    annotations: { job: 'b1', summary: 'Backup failed', description: 'exit 2 at 01:00' },
    startsAt: now,
    endsAt: null,
  })
  expect(closed).toMatchObject({ status: 'resolved', endsAt: now, fingerprint: opened!.fingerprint })
})

test('the dedup key is the identity, and labels route the alert', () => {
  const [found] = alertsOf({
    name: 'replication_lag',
    summary: 'lag 40 s',
    dedup: 'lag/db-osl-1',
    labels: { shard: 'db-osl-1', incident_type: 'replication_lag', lag: 40 },
  })
  expect(found).toMatchObject({
    fingerprint: 'lag/db-osl-1',
    name: 'replication_lag',
    title: 'lag 40 s (db-osl-1)',
    severitySource: 'default',
    labels: { shard: 'db-osl-1', lag: '40' },
  })
})

test.each([
  ['alerting', 'firing'],
  ['ok', 'resolved'],
  ['OK', 'resolved'],
  ['no_data', 'firing'], // no data must not close anything
])('an OnCall alert in state %s is %s', (state, status) => {
  const [found] = alertsOf({
    alert_uid: '08d6891a',
    title: 'Disk full',
    state,
    message: 'node-osl-3 at 99 %',
    link_to_upstream_details: 'https://grafana.example/alert/1',
    image_url: 'https://grafana.example/1.png',
  })
  expect(found).toMatchObject({
    fingerprint: '08d6891a',
    status,
    title: 'Disk full',
    annotations: { description: 'node-osl-3 at 99 %', image_url: 'https://grafana.example/1.png' },
    links: { generator: 'https://grafana.example/alert/1', external: null, runbook: null },
  })
})

test.each([
  ['{}', 'the body has no "summary", "title", "name" or "message"'],
  ['[{"summary":"a"},{"summary":""}]', 'item 1 has no "summary", "title", "name" or "message"'],
  ['[{"summary":"a"},null]', 'item 1 is null, not an object'],
  ['{"alerts":[]}', 'should its dialect be alertmanager?'],
  ['7', 'the body is a number, not an object'],
])('the body %s is refused with a precise reason', (body, reason) => {
  expect(parse(new TextEncoder().encode(body), now)).toMatchObject({
    ok: false,
    reason: expect.stringContaining(reason),
  })
})

test('parsing answers for any bytes, and a list gives as many alerts as it has items', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => typeof parse(bytes, now).ok === 'boolean'))
  const item = fc.record(
    {
      labels: fc.jsonValue(),
      meta: fc.jsonValue(),
      action: fc.jsonValue(),
      dedup: fc.jsonValue(),
      severity: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(item, { maxLength: 5 }), (items) => {
      const alerts = alertsOf(items.map((fields) => ({ ...fields, summary: 'x' })))
      expect(alerts).toHaveLength(items.length)
      for (const found of alerts) expect(alertSchema.safeParse(found).success).toBe(true)
    }),
  )
})

test('only existing dialects can be posted to', () => {
  expect(dialectOf('alertmanager')?.contentTypes).toContain('application/json')
  expect(dialectOf('generic')).not.toBeNull()
  expect(dialectOf('constructor')).toBeNull()
})
