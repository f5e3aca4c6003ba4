import { expect, test } from '@jest/globals'
import { parseAlertmanager } from '../../ingest/alertmanager.ts'
import { parseGeneric } from '../../ingest/generic.ts'
import { parseGrafana } from '../../ingest/grafana.ts'

const now = '2026-11-21T01:45:40.000Z'

/** A body as Grafana's documentation describes it. */
const body = {
  receiver: 'nightshift',
  status: 'firing',
  orgId: 1,
  groupKey: '{}:{alertname="DiskSpace"}',
  externalURL: 'https://grafana.example.com/',
  truncatedAlerts: 0,
  alerts: [
    {
      status: 'firing',
      labels: { alertname: 'DiskSpace', instance: 'web-1:9100', severity: 'critical' },
      annotations: { summary: 'The disk is nearly full' },
      startsAt: '2026-11-21T01:40:00Z',
      endsAt: '0001-01-01T00:00:00Z',
      fingerprint: 'c6eadffa33fcdf37',
      generatorURL: 'https://grafana.example.com/alerting/1/edit',
      silenceURL: 'https://grafana.example.com/alerting/silence/new?matcher=x',
      dashboardURL: 'https://grafana.example.com/d/abc',
      panelURL: 'javascript:alert(1)',
      values: { B: 97.25, C: 1, D: 'x' },
    },
  ],
}

const parse = (value: unknown) => parseGrafana(Buffer.from(JSON.stringify(value)), now)

test("Grafana's values and its links to dashboard and silence are kept", () => {
  expect(parse(body)).toMatchObject({
    ok: true,
    alerts: [
      {
        source: 'grafana',
        fingerprint: 'c6eadffa33fcdf37',
        severity: 'critical',
        title: 'The disk is nearly full (web-1:9100)',
        groupKey: '{}:{alertname="DiskSpace"}',
        values: { B: 97.25, C: 1 },
        links: {
          dashboard: 'https://grafana.example.com/d/abc',
          silence: 'https://grafana.example.com/alerting/silence/new?matcher=x',
          panel: null,
        },
      },
    ],
  })
})

test.each([[null], [{}], [{ alerts: {} }], [{ alerts: [7] }], [[]]])(
  '%j is refused with a reason, and parsing does not throw',
  (value) => {
    expect(parse(value)).toMatchObject({ ok: false, reason: expect.stringMatching(/./) })
  },
)

const titleOf = (labels: Record<string, string>, summary: string): string | undefined => {
  const alerts = [{ status: 'firing', labels: { alertname: 'X', ...labels }, annotations: { summary } }]
  const parsed = parseAlertmanager(Buffer.from(JSON.stringify({ alerts })), now)
  return parsed.ok ? parsed.alerts[0]?.title : undefined
}

test.each([
  [{ instance: 'web-1:9100' }, 'Disk is full', 'Disk is full (web-1:9100)'],
  [{ instance: 'web-1:9100' }, 'Disk of WEB-1 is full', 'Disk of WEB-1 is full'],
  [{ namespace: 'shop', pod: 'api-7d9f-x2x9k' }, 'Pod is crash looping', 'Pod is crash looping (shop/api-7d9f-x2x9k)'],
  [
    { namespace: 'shop', pod: 'node-exporter-x2x9k', instance: '10.0.0.1:9100' },
    'Clock skew',
    'Clock skew (10.0.0.1:9100)',
  ],
  [{ job: 'x' }, 'Something is wrong', 'Something is wrong'],
])('a title without a resource gets the one of its labels: %j', (labels, summary, title) => {
  expect(titleOf(labels as Record<string, string>, summary)).toBe(title)
})

test('a title stays within its limit with the resource named', () => {
  expect(titleOf({ instance: 'a'.repeat(400) }, 'long '.repeat(100))?.length).toBeLessThanOrEqual(300)
  const generic = parseGeneric(Buffer.from(JSON.stringify({ summary: 'Backup failed', labels: { host: 'db-1' } })), now)
  expect(generic).toMatchObject({ alerts: [{ title: 'Backup failed (db-1)' }] })
})
