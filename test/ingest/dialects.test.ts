import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Alert, alert as alertSchema } from '../../domain/alert.ts'
import type { Change, ParsedChanges } from '../../domain/change.ts'
import { parseAlertmanager } from '../../ingest/alertmanager.ts'
import { parseGithub } from '../../ingest/changes/github.ts'
import { parseGitlab } from '../../ingest/changes/gitlab.ts'
import { parseGenericChanges, senderOf } from '../../ingest/changes/senders.ts'
import { dialectOf, dialects } from '../../ingest/dialects.ts'
import { parseGeneric as parse, parseGeneric } from '../../ingest/generic.ts'
import { parseGrafana } from '../../ingest/grafana.ts'
import { github, gitlab, signed } from '../support/deliveries.ts'

describe('dialects', () => {
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
})

describe('changes', () => {
  const now = '2026-11-22T03:00:00.000Z'
  const at = '2026-11-22T02:50:00Z'
  const bytesOf = (body: unknown): Uint8Array => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const readGithub = (event: string, body: unknown) => parseGithub({ bytes: bytesOf(body), event, key: null }, now)
  const readGitlab = (event: string, body: unknown, key: string | null = null) =>
    parseGitlab({ bytes: bytesOf(body), event, key }, now)
  const readGeneric = (body: unknown) => parseGenericChanges({ bytes: bytesOf(body), event: null, key: null }, now)

  function only(parsed: ParsedChanges): Change {
    if (!parsed.ok || parsed.changes.length !== 1) throw new Error(JSON.stringify(parsed))
    return parsed.changes[0] as Change
  }
  const ignored = (parsed: ParsedChanges): string | null => (parsed.ok ? parsed.ignored : `refused: ${parsed.reason}`)
  const refused = (parsed: ParsedChanges): string => (parsed.ok ? 'taken' : parsed.reason)

  test('a deployment of GitHub says what was deployed where, by whom, and when', () => {
    expect(only(readGithub('deployment_status', github.deployment({ at })))).toMatchObject({
      ...{ source: 'github', at: '2026-11-22T02:50:00.000Z', author: 'anna', environment: 'production' },
      title: 'Deployment of acme/shop to production: success',
      url: 'https://github.com/acme/shop/actions/runs/7/job/9',
      revision: 'f95f852bd8fca8fcc58a9a2d6c842781e32a215e',
      labels: { repository: 'acme/shop', environment: 'production', deployment: 'acme/shop@production', ref: 'main' },
    })
    expect(ignored(readGithub('deployment_status', github.deployment({ at, state: 'inactive' })))).toContain('inactive')
  })

  test('a push to the default branch of GitHub is a change, dated by the push; a push to another branch is not', () => {
    const pushedAt = Date.parse(at) / 1000
    expect(only(readGithub('push', github.push({ pushedAt })))).toMatchObject({
      ...{ at: '2026-11-22T02:50:00.000Z', author: 'anna', labels: { repository: 'acme/shop', branch: 'main' } },
      title: 'Push to main of acme/shop: Raise the pool to 50 (2 commits)',
    })
    for (const other of [{ ref: 'refs/heads/topic' }, { ref: 'refs/tags/main' }, { deleted: true }])
      expect(ignored(readGithub('push', github.push({ pushedAt, ...other })))).toMatch(/not the default branch|deleted/)
  })

  test('of a release of GitHub the publication counts, of a workflow its end on the default branch', () => {
    expect(only(readGithub('release', github.release({ action: 'published', at })))).toMatchObject({
      ...{ title: 'Release v2.1 of acme/shop: Winter sale', revision: 'v2.1' },
    })
    expect(ignored(readGithub('release', github.release({ action: 'released', at })))).toContain('released')
    expect(only(readGithub('workflow_run', github.run({ at }))).title).toBe(
      'Workflow Deploy of acme/shop on main: failure: Raise the pool to 50',
    )
    for (const other of [
      { action: 'requested' },
      { branch: 'topic' },
      { event: 'pull_request' },
      { conclusion: 'skipped' },
    ])
      expect([other, ignored(readGithub('workflow_run', github.run({ at, ...other })))]).toEqual([
        other,
        expect.any(String),
      ])
  })

  test('a push, a deployment and a pipeline of GitLab are changes, with their spelling of times', () => {
    expect(only(readGitlab('Push Hook', gitlab.push()))).toMatchObject({
      ...{ source: 'gitlab', at: now, author: 'anna', revision: 'da1560886d4f094c3e6c9ef40349f7d38b5d27d7' },
      title: 'Push to main of acme/shop: Raise the pool to 50 (4 commits)',
    })
    expect(only(readGitlab('Deployment Hook', gitlab.deployment({ at: '2026-11-22 03:50:00 +0100' })))).toMatchObject({
      ...{ at: '2026-11-22T02:50:00.000Z', environment: 'production', author: 'anna' },
      title: 'Deployment of acme/shop to production: success: Raise the pool to 50',
      revision: 'da1560886d4f094c3e6c9ef40349f7d38b5d27d7',
    })
    expect(only(readGitlab('Pipeline Hook', gitlab.pipeline({ at: '2026-11-22 02:50:00 UTC' })))).toMatchObject({
      ...{ at: '2026-11-22T02:50:00.000Z', title: 'Pipeline of acme/shop on main: success: Raise the pool to 50' },
    })
  })

  test('what deploys nothing at GitLab is ignored with its reason', () => {
    const said = [
      readGitlab('Push Hook', gitlab.push({ ref: 'refs/heads/topic' })),
      readGitlab('Push Hook', gitlab.push({ after: '0'.repeat(40) })),
      readGitlab('Deployment Hook', gitlab.deployment({ at, status: 'created' })),
      readGitlab('Pipeline Hook', gitlab.pipeline({ at, status: 'running' })),
      readGitlab('Pipeline Hook', gitlab.pipeline({ at, source: 'merge_request_event' })),
      readGitlab('Pipeline Hook', gitlab.pipeline({ at, ref: 'topic' })),
      readGitlab('Issue Hook', {}),
    ].map(ignored)
    for (const each of said) expect(each).toMatch(/^(?!refused)./)
    expect(only(readGitlab('Pipeline Hook', gitlab.pipeline({ at, ref: 'v1', tag: true }))).labels.tag).toBe('v1')
  })

  test('a delivery is the same when its body is, whatever an unsigned header calls it', () => {
    const body = github.deployment({ at })
    const deliveries = [body, body, github.deployment({ at, id: 2 })].map(
      (each) => only(readGithub('deployment_status', each)).delivery,
    )
    expect(new Set(deliveries).size).toBe(2)
    // GitLab pushes the same commits back and forth with the same body: its key tells a repeat from a second push.
    const keys = ['a', 'a', 'b'].map((key) => only(readGitlab('Push Hook', gitlab.push(), key)).delivery)
    expect(new Set(keys).size).toBe(2)
  })

  test('GitHub proves itself by the signature that its documentation gives as an example', () => {
    const sender = senderOf((name) => (name === 'x-github-event' ? 'push' : undefined))
    const given = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
    const isProven = (signature: string | undefined, body = 'Hello, World!') =>
      sender?.isProven("It's a Secret to Everybody", () => signature, Buffer.from(body))
    expect([isProven(given), isProven(given, 'Hello, World'), isProven(undefined), isProven('')]).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(signed("It's a Secret to Everybody", 'Hello, World!')).toBe(given)
    expect(senderOf(() => 'both')).toBeNull()
  })

  test('what a script posts is refused in words that say what to correct', () => {
    const good = { title: 'nginx 1.29', at, resources: 'node:web-1' }
    const cases: [unknown, RegExp][] = [
      ['', /empty/],
      ['{', /not JSON/],
      [[good, 5], /item 1 is a number/],
      [{ at }, /"title" is missing/],
      [{ ...good, title: 7 }, /"title" is a number/],
      [{ title: 'x' }, /"at" has to be/],
      [{ ...good, at: 'yesterday' }, /"at" has to be/],
      [{ ...good, at: '5' }, /"at" has to be/],
      [{ ...good, at: '2026-11-22T02:50:00' }, /"at" has to be/],
      [{ ...good, at: '2026-02-30T00:00:00Z' }, /"at" is no moment that a calendar has \(2026-02-30T00:00:00Z\)/],
      [{ ...good, at: '2026-02-29T23:00:00-05:00' }, /"at" is no moment that a calendar has/],
      [{ ...good, at: '2026-11-22T03:10:00Z' }, /future/],
      [{ ...good, url: 'javascript:alert(1)' }, /"url"/],
      [{ ...good, resources: ['web-1', {}] }, /"resources" holds an object/],
      [{ ...good, resources: Array(21).fill('a') }, /21 names/],
      [{ ...good, labels: [] }, /"labels" is an array/],
      [Array(101).fill(good), /101 changes/],
    ]
    for (const [body, reason] of cases)
      expect([body, refused(readGeneric(body))]).toEqual([body, expect.stringMatching(reason)])
    expect(only(readGeneric(good))).toMatchObject({ title: 'nginx 1.29', resources: ['node:web-1'], author: null })
    expect(only(readGeneric({ ...good, at: '2026-11-22T03:04:00Z' })).title).toBe('nginx 1.29')
  })

  test('long and hostile texts come within bounds, and no link leads anywhere but to http', () => {
    const change = only(
      readGeneric({
        title: 'x'.repeat(50_000),
        at,
        author: 'y'.repeat(9_000),
        labels: { a: 'z'.repeat(99_999), __proto__: 1 },
      }),
    )
    expect([change.title.length, change.author?.length]).toEqual([300, 200])
    expect(JSON.stringify(change).length).toBeLessThan(3_000)
    const evil = { ...gitlab.deployment({ at }), deployable_url: 'javascript:alert(1)' }
    expect(only(readGitlab('Deployment Hook', evil)).url).toBeNull()
  })

  test('no bytes of any sender throw', () => {
    const events = ['push', 'release', 'Push Hook', 'Pipeline Hook', 'constructor', '__proto__', '']
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), fc.string(), fc.constant(JSON.stringify(github.push({ pushedAt: 1e300 })))),
        fc.constantFrom(...events),
        (body, event) => {
          for (const parse of [parseGithub, parseGitlab, parseGenericChanges])
            expect(typeof parse({ bytes: Buffer.from(body), event, key: null }, now).ok).toBe('boolean')
        },
      ),
      { numRuns: 300, seed: 20_261_122 },
    )
  })
})
