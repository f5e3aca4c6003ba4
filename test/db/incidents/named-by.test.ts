import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { byIndexes, fewNamedBy } from '../../../db/incidents/named-by.ts'
import { alertWordsIn } from '../../../domain/search-words.ts'
import { runCli, useServedApi } from '../../support/run-cli.ts'

const api = useServedApi()

type Listed = { items: { id: string; alertName: string | null }[] }

const labels = {
  alertname: 'NginxHighHttp5xxErrorRate',
  instance: 'web-9.example.lan:9113',
  env: 'prod-eu',
  team: 'Shop, Checkout',
  severity: 'warning',
}

async function post(alerts: object[]): Promise<string[]> {
  const { body } = await api.post('/ingest/alertmanager', { body: { version: '4', alerts }, as: api.tokens.ingest })
  return (body as unknown as { alerts: { incidentId: string }[] }).alerts.map(({ incidentId }) => incidentId)
}

const alert = (more: object, fingerprint: string) => ({
  status: 'firing',
  labels: { ...labels, ...more },
  annotations: { summary: 'Too many errors at the door' },
  startsAt: '2026-11-25T09:00:00Z',
  fingerprint,
})

/**
 * What each door finds: the box of the list, the search of the page and terminal, and the list of
 * alerts.
 */
async function found(q: string): Promise<Record<string, string[]>> {
  const encoded = encodeURIComponent(q)
  const incidents = (await api.get(`/incidents?q=${encoded}`)).body as unknown as Listed
  const search = (await api.get(`/search?q=${encoded}`)).body as unknown as { incidents: Listed['items'] }
  const alerts = (await api.get(`/alerts?q=${encoded}`)).body as unknown as { items: { incidentId: string }[] }
  return {
    list: incidents.items.map(({ id }) => id),
    search: search.incidents.map(({ id }) => id),
    alerts: alerts.items.map(({ incidentId }) => incidentId),
  }
}

test('text that people paste from an alert finds the alert in every search', async () => {
  const [id = '', other = ''] = await post([
    alert({}, '93f1a0c2d4b6e8f0'),
    alert({ alertname: 'Other', instance: 'web-8.example.lan:9113', env: 'test', team: 'Search' }, '0000aaaa0000bbbb'),
  ])
  const pasted = [
    ...['NginxHighHttp5xxErrorRate', 'nginxhighhttp5xxerrorrate', '93f1a0c2d4b6e8f0', '93F1A0C2D4B6E8F0'],
    ...['prod-eu', 'env=prod-eu', 'env="prod-eu"', 'Shop, Checkout', 'team="Shop, Checkout"'],
    ...['web-9.example.lan:9113', 'web-9.example.lan', 'instance=web-9.example.lan:9113'],
    ...['{alertname="NginxHighHttp5xxErrorRate", env="prod-eu"}', 'severity="warning", env="prod-eu",'],
  ]
  for (const q of pasted) expect([q, await found(q)]).toEqual([q, { list: [id], search: [id], alerts: [id] }])
  for (const q of ['nginx_high_http5xx_error_rate', 'nginx_high', 'NginxHighHttp5xx', 'http5xx']) {
    const { list, search } = await found(q)
    expect([q, list, search]).toEqual([q, [id], [id]])
  }
  expect((await found('severity=warning')).list?.sort()).toEqual([id, other].sort())
  for (const q of ['env=prod', 'prod-e', 'env="test", instance="web-9.example.lan"', '93f1', 'zq'])
    expect([q, (await found(q)).list]).toEqual([q, []])
})

test('an alert is found in the forms in which other tools write it', async () => {
  const [id = ''] = await post([
    alert(
      {
        alertname: 'CacheMisses',
        instance: 'cache-7.example.lan:9121',
        env: 'stage-7',
        team: 'Web Shop',
        city: 'Zürich ÅÄÖ',
      },
      'c4c4c4c4',
    ),
    alert({ alertname: 'Unrelated', instance: 'cache-6.example.lan:9121', env: 'stage-6', team: 'Other' }, 'd5d5d5d5'),
  ])
  const written = [
    // As people mark a name.
    ...[
      '"CacheMisses"',
      "'CacheMisses'",
      '`CacheMisses`',
      '“CacheMisses”',
      '«CacheMisses»',
      '*CacheMisses*',
      ' CacheMisses\n',
      'CacheMisses.',
      'CacheMisses:',
    ],
    // Headings of Alertmanager and Grafana in Slack and mail.
    ...[
      '[FIRING:1] CacheMisses',
      '[FIRING:1] CacheMisses (cache-7.example.lan:9121 warning)',
      '[RESOLVED] CacheMisses',
      '🔥 CacheMisses',
    ],
    // A series of Prometheus.
    ...[
      'ALERTS{alertname="CacheMisses", alertstate="firing", env="stage-7"}',
      'up{instance="cache-7.example.lan:9121"}',
    ],
    // Labels in lines, with blanks between and around.
    ...[
      'env=stage-7 severity=warning',
      'env=stage-7\nseverity=warning',
      '- env = stage-7\n- team = Web Shop',
      'team = Web Shop',
    ],
    ...[
      'team=Web Shop',
      'env: stage-7',
      'alertname: CacheMisses',
      'env="stage-7" team="Web Shop"',
      'env=“stage-7”',
      '"env": "stage-7"',
    ],
    // Letters in parts, and of another width.
    ...['Zürich ÅÄÖ'.normalize('NFD'), 'ｅｎｖ＝ｓｔａｇｅ－７'],
    id,
    `https://nightshift.example.net/incidents/${id}`,
  ]
  const missed: string[] = []
  for (const q of written) if ((await found(q)).list?.join() !== id) missed.push(q)
  expect(missed).toEqual([])
})

test('page and terminal show the name that the sender gives the alert', async () => {
  const [id = ''] = await post([alert({ alertname: 'SomeOtherName' }, 'named-by-sender')])
  expect((await api.get(`/incidents/${id}`)).body).toMatchObject({ alertName: 'SomeOtherName' })
  const search = await runCli(['search', 'SomeOtherName'], api.as('viewer'))
  expect(search.stdout).toMatch(new RegExp(`${id}.*Too many errors.*\\[SomeOtherName\\]`))
  expect((await runCli(['incidents', 'show', id], api.as('viewer'))).stdout).toMatch(/alert +SomeOtherName/)
  const narrow = await runCli(['incidents', 'list', '--search', 'SomeOtherName'], api.as('viewer'))
  expect(narrow.stdout).toContain(id)
})

test.each([
  ['a word', [['a word']]],
  ['Env = Prod', [['Env = Prod'], ['Env=Prod']]],
  ['{a="b,c", d="e\\"f"}', [['{a="b,c", d="e\\"f"}'], ['a=b,c', 'd=e"f']]],
  ["job='node',", [["job='node',"], ['job=node'], ["job='node"]]],
  ['a=b c', [['a=b c']]],
  ['{}', [['{}']]],
  ['', [['']]],
  [
    '[FIRING:2] NodeDown (web-1 critical)',
    [['[FIRING:2] NodeDown (web-1 critical)'], ['NodeDown'], ['FIRING:2] NodeDown (web-1 critical']],
  ],
])('%j names %j', (text, words) => {
  expect(alertWordsIn(text)).toEqual(words)
})

test('names in a text are found by indexes alone, also two letters without a match and pairs', async () => {
  await sql`
    insert into incident (id, type, severity, title, resource_kind, resource_id)
    select 'inc_seed' || n, 'type_' || n % 50, 'warning', 'Shard ' || n || ' is behind', 'shard', 'shard-' || n
    from generate_series(1, 5000) n`.execute(api.owner)
  await sql`
    insert into alert (id, source, fingerprint, status, name, labels, annotations, links, starts_at, incident_id, raw)
    select 'alr_seed' || n, 'seed', 'seed-' || n, 'firing', 'Type' || n % 50, jsonb_build_object('shard', 'shard-' || n, 'env', 'prod'),
      '{}', '{}', now(), 'inc_seed' || n, '{}' from generate_series(1, 5000) n`.execute(api.owner)
  await sql`vacuum analyze incident`.execute(api.owner)
  await sql`vacuum analyze alert`.execute(api.owner)
  for (const q of ['zq', 'sh', 'z', 'no such words', 'env=prod', 'Type7', 'type_7', 'seed-77', 'shard-1']) {
    const plan = await api.db.transaction().execute(async (trx) => {
      await byIndexes(trx)
      const { rows } = await sql<{ 'QUERY PLAN': string }>`explain ${fewNamedBy(q)}`.execute(trx)
      return rows.map((row) => row['QUERY PLAN']).join('\n')
    })
    expect([q, /Seq Scan/.test(plan)]).toEqual([q, false])
    const indexes = new Set([...plan.matchAll(/Index Scan on (\w+)/g)].map(([, name]) => name))
    expect([q, [...indexes].sort()]).toEqual([q, ['incident_type_words', 'incident_words']])
    expect(plan).toMatch(/Function Scan on alerts_with_words/)
  }
  const words = await api.owner.transaction().execute(async (trx) => {
    await byIndexes(trx)
    const { rows } = await sql<{ 'QUERY PLAN': string }>`
      explain select id from alert where alert_words(name, fingerprint, labels) @> array['env=prod']`.execute(trx)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  })
  expect(words).toMatch(/Bitmap Index Scan on alert_by_words/)
  // The newest of what is everywhere come first, whatever holds it.
  const { list } = await found('env=prod')
  expect(list).toHaveLength(50)
  expect(list).toEqual([...(list ?? [])].sort().reverse())
})
