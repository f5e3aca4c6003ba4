import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Alert, alert as alertSchema } from '../../domain/alert.ts'
import { parseAlertmanager } from '../../ingest/alertmanager.ts'
import { dialectOf, dialects } from '../../ingest/dialects.ts'
import { parseGeneric as parse, parseGeneric } from '../../ingest/generic.ts'
import { parseGrafana } from '../../ingest/grafana.ts'

describe('generic', () => {
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
    ['no_data', 'firing'], // a word we do not know must not close anything
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
    ['{"alerts":[]}', 'is it for the dialect alertmanager?'],
    ['7', 'the body is a number, not an object'],
  ])('the body %s is refused with a precise reason', (body, reason) => {
    expect(parse(new TextEncoder().encode(body), now)).toMatchObject({
      ok: false,
      reason: expect.stringContaining(reason),
    })
  })

  test('whatever bytes come, parsing answers, and a list gives as many alerts as it has items', () => {
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

  test('only the dialects that exist can be posted to', () => {
    expect(dialectOf('alertmanager')?.contentTypes).toContain('application/json')
    expect(dialectOf('generic')).not.toBeNull()
    expect(dialectOf('constructor')).toBeNull()
  })
})

describe('grafana', () => {
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
    '%j is refused with a reason, and nothing is thrown',
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
    [
      { namespace: 'shop', pod: 'api-7d9f-x2x9k' },
      'Pod is crash looping',
      'Pod is crash looping (shop/api-7d9f-x2x9k)',
    ],
    [
      { namespace: 'shop', pod: 'node-exporter-x2x9k', instance: '10.0.0.1:9100' },
      'Clock skew',
      'Clock skew (10.0.0.1:9100)',
    ],
    [{ job: 'x' }, 'Something is wrong', 'Something is wrong'],
  ])('a title that names no object gets the one of its labels: %j', (labels, summary, title) => {
    expect(titleOf(labels as Record<string, string>, summary)).toBe(title)
  })

  test('a title stays within its bound with the object named', () => {
    expect(titleOf({ instance: 'a'.repeat(400) }, 'long '.repeat(100))?.length).toBeLessThanOrEqual(300)
    const generic = parseGeneric(
      Buffer.from(JSON.stringify({ summary: 'Backup failed', labels: { host: 'db-1' } })),
      now,
    )
    expect(generic).toMatchObject({ alerts: [{ title: 'Backup failed (db-1)' }] })
  })
})

describe('times', () => {
  const now = '2026-11-22T03:00:00.000Z'
  const earlier = '2026-11-22T02:00:00.000Z'

  /** One alert of each dialect with these times; what each makes of them. */
  function parsed(dialect: string, times: Record<string, unknown>, status = 'firing') {
    const body =
      dialect !== 'generic'
        ? { alerts: [{ status, labels: { alertname: 'x' }, annotations: {}, ...times }] }
        : { summary: 'x', action: status === 'resolved' ? 'close' : 'trigger', ...times }
    const answer = dialects[dialect]?.parse(new TextEncoder().encode(JSON.stringify(body)), now)
    if (!answer?.ok) throw new Error(answer?.reason ?? 'no dialect')
    return answer.alerts[0]
  }

  describe.each(Object.keys(dialects))('times that %s cannot mean', (dialect) => {
    test.each([
      ['absent', {}],
      ['not a time', { startsAt: 'yesterday' }],
      ['a number', { startsAt: 1_700_000_000 }],
      ['on 30 February', { startsAt: '2026-02-30T03:00:00Z' }],
      ['on 31 April', { startsAt: 'Thu Apr 31 2026 03:00:00 GMT' }],
      ['an hour ahead', { startsAt: '2026-11-22T04:00:00Z' }],
    ])('a start that is %s becomes the time of receipt and starts no occurrence', (_what, times) => {
      expect(parsed(dialect, times)).toMatchObject({ startsAt: now, startGiven: false })
    })

    test('a start four minutes ahead is a clock that is wrong, and is believed', () => {
      const startsAt = '2026-11-22T03:04:00.000Z'
      expect(parsed(dialect, { startsAt })).toMatchObject({ startsAt, startGiven: true, timeNotes: [] })
    })

    test('the note says what would be accepted', () => {
      const [note] = parsed(dialect, { startsAt: '2026-11-22T04:00:00Z' })?.timeNotes ?? []
      expect(note).toMatch(/^startsAt lies in the future .*RFC 3339 is accepted, as 2026-11-22T03:04:05Z/)
    })

    test('an end ahead of the clock is an end now; one before its own start is kept and ends nothing', () => {
      expect(parsed(dialect, { startsAt: earlier, endsAt: '2026-11-23T03:00:00Z' }, 'resolved')).toMatchObject({
        endsAt: now,
      })
      const reversed = parsed(dialect, { startsAt: earlier, endsAt: '2026-11-22T01:00:00Z' }, 'resolved')
      expect(reversed).toMatchObject({ endsAt: '2026-11-22T01:00:00.000Z' })
      expect(reversed?.timeNotes?.[0]).toContain('such an end ends nothing')
    })

    test('while it fires, an end is no end', () => {
      expect(parsed(dialect, { startsAt: earlier, endsAt: '0001-01-01T00:00:00Z' })).toMatchObject({ endsAt: null })
    })
  })
})
