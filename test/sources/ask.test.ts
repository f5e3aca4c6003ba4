import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { putSource } from '../../db/inventory/sources.ts'
import { chooseLabels } from '../../sources/logs/last.ts'
import { useApi } from '../support/api.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Answer, json, matrix, useSourceServer, vector } from '../support/source-server.ts'

const directory = temporaryDirectory().path
const api = useApi(() => ({ sourcesDirectory: directory }))

const { stage, add, read } = useSourceServer(api)

test('a query returns the values of its series, and the same window a day and a week before, and the model reads at most 2 kB', async () => {
  await add('main')
  const now = Date.now() / 1000
  const series = (instance: string, height: number) => ({
    metric: { __name__: 'up', job: 'api', instance },
    values: Array.from({ length: 60 }, (_, at): [number, string] => [
      now - 3_600 + at * 60,
      String(at < 40 ? 1 : height),
    ]),
  })
  const all = [
    series('web-1:9100', 1),
    series('web-2:9100', 50),
    ...Array.from({ length: 80 }, (_, at) => series(`w-${at}`, 2)),
  ]
  // Points as they are; of what is asked of all samples each part by its name.
  stage.answer = (request, response, body) => {
    const query = new URLSearchParams(body).get('query') ?? ''
    const parts = [...query.matchAll(/"nightshift_part", "(\w+)"/g)].map(([, name = '']) => name)
    const told: Record<string, (values: number[]) => number> = {
      last: (values) => values.at(-1) ?? 0,
      min: (values) => Math.min(...values),
      max: (values) => Math.max(...values) + 1_000,
      lastAt: () => now - 60,
    }
    const of = (name: string) =>
      all.map(({ metric, values }) => ({
        metric: { ...metric, nightshift_part: name },
        value: [now, String((told[name] ?? (() => 7))(values.map(([, value]) => Number(value))))],
      }))
    return (parts.length === 0 ? matrix(all) : vector(parts.flatMap(of)))(request, response, body)
  }
  const { status, body } = await read({ source: 'main', promql: 'up{job="api"}' })
  expect(status).toBe(200)
  // The points, figures of all samples now, a day and a week before, and when the largest and the
  // smallest of them was.
  expect(stage.asked.length).toBeLessThanOrEqual(6)
  const summary = body.summary as unknown as { series: Record<string, unknown>[]; [name: string]: unknown }
  expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
  expect(summary).toMatchObject({ seriesFound: 82, sharedLabels: { __name__: 'up', job: 'api' } })
  expect(summary.series[0]).toMatchObject({
    labels: { instance: 'web-2:9100' },
    last: 50,
    min: 1,
    // No point shows it.
    max: 1_050,
    before: 1,
    after: 50,
    changedAt: expect.stringMatching(/Z$/),
    dayBefore: 7,
  })
})

test('a query that names a resource is a read of it, and an empty answer is not', async () => {
  await api.put('/inventory', { body: { nodes: [{ id: 'web-1', ip: '10.0.0.1' }] } })
  stage.answer = matrix([{ metric: { instance: 'web-1:9100' }, values: [[1_763_000_000, '1']] }])
  const found = await read({ source: 'main', promql: 'up{instance="web-1:9100"}' })
  expect(found.body).toMatchObject({ isEmpty: false, about: [{ kind: 'node', id: 'web-1' }] })
  stage.answer = matrix([])
  expect((await read({ source: 'main', promql: 'up{instance="web-1:9100"}' })).body).toMatchObject({ isEmpty: true })
})

const withRemarks = (resultType: string, result: unknown[], remarks: Record<string, unknown>): Answer =>
  json({ status: 'success', data: { resultType, result }, ...remarks })

test.each([
  [
    'warnings of Thanos',
    { warnings: ['receive series from store-2:\n connection refused'] },
    ['receive series from store-2: connection refused'],
  ],
  ['isPartial of VictoriaMetrics', { isPartial: true }, ['some of its storage nodes did not answer (isPartial)']],
  ['a warning without words', { warnings: [{ text: 'no text' }] }, ['without words']],
])(
  'an answer with %s is partial and says why, and an empty one is no evidence of absence',
  async (_, remarks, partial) => {
    await add('main')
    stage.answer = withRemarks('vector', [], remarks)
    const now = await read({ source: 'main', promql: 'up{instance="web-1:9100"}', window: 'now' })
    expect(now.body).toMatchObject({ isEmpty: true, isPartial: true, summary: { partial } })
    stage.answer = withRemarks('matrix', [], remarks)
    const hour = await read({ source: 'main', promql: 'up{instance="web-1:9100"}' })
    expect(hour.body).toMatchObject({
      isPartial: true,
      summary: { partial, notCompared: 'a day before, a week before' },
    })
    stage.answer = withRemarks('vector', [], remarks)
    const known = await read({ source: 'main', labels: { instance: 'web-1:9100' } }, 'describe_metrics')
    expect(known.body).toMatchObject({ isEmpty: true, isPartial: true, summary: { partial } })
  },
)

test('an info leaves the answer complete, and a hundred long warnings take at most 2 kB', async () => {
  await add('main')
  const infos = ['PromQL info: metric might not be a counter']
  stage.answer = withRemarks('vector', [], { infos, isPartial: false, warnings: [] })
  const { body } = await read({ source: 'main', promql: 'up', window: 'now' })
  expect([body.isPartial, body.summary]).toEqual([false, expect.objectContaining({ infos })])
  expect(body.summary).not.toHaveProperty('partial')

  const warnings = Array.from({ length: 100 }, (_, at) => `store-${at} ${'ü'.repeat(2_000)}`)
  stage.answer = withRemarks('vector', [{ metric: { a: 'b' }, value: [1, '7'] }], { warnings })
  const long = await read({ source: 'main', promql: 'up', window: 'now' })
  const summary = long.body.summary as unknown as { partial: string[] }
  expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
  expect([summary.partial.length, summary.partial[3]]).toEqual([4, 'and 97 more'])
  expect(summary).toMatchObject({ values: [{ value: 7 }] })
})

test('an unbounded query never reaches the server, whoever asks', async () => {
  stage.asked = []
  for (const args of [
    { promql: '{job="x"}' },
    { promql: 'rate(up[90d])' },
    { promql: 'up', window: '90d' },
    { promql: 'up', window: '1d', step: '1s' },
    { promql: 'up', window: 'soon' },
    { promql: 'sum(' },
  ]) {
    const refused = await read({ source: 'main', ...args })
    expect([refused.status, refused.body.code]).toEqual([422, 'UNBOUNDED_QUERY'])
  }
  expect((await read({ source: 'main', promql: 'up', extra: 1 })).status).toBe(422)
  expect((await read({}, 'converge_shard')).body.code).toBe('UNKNOWN_TOOL')
  expect(stage.asked).toEqual([])
})

test('an agent reads only what its run announced', async () => {
  const refused = await api.post('/sources/read', {
    body: { tool: 'query_metrics', arguments: { source: 'main', promql: 'up' } },
    as: api.tokens.agent,
    headers: { 'idempotency-key': 'made-up' },
  })
  expect([refused.status, refused.body.code]).toEqual([403, 'UNJUDGED'])
})

test('with several sources of one kind the source has to be named', async () => {
  await add('second')
  const refused = await read({ promql: 'up' })
  expect(refused.body).toMatchObject({ code: 'NO_SOURCE', detail: expect.stringContaining('main, second') })
  expect((await read({ source: 'third', promql: 'up' })).body.detail).toContain(
    'there is no source third: main, second',
  )
  expect((await api.post('/sources/second/remove')).body).toEqual({ removed: 'second' })
})

test('a source without an answer rests after five failures, and says so', async () => {
  const made = await api.put('/sources/gone', { body: { kind: 'prometheus', url: 'http://127.0.0.1:1' } })
  expect(made.body.health).toMatchObject({ state: 'unknown' })
  for (let at = 0; at < 5; at += 1)
    expect((await read({ source: 'gone', promql: 'up', window: 'now' })).body.code).toBe('UNREACHABLE')
  expect((await read({ source: 'gone', promql: 'up', window: 'now' })).body.code).toBe('RESTING')
  const { items } = (await api.get('/sources')).body as unknown as {
    items: { name: string; health: { state: string } }[]
  }
  expect(items.find(({ name }) => name === 'gone')?.health).toMatchObject({
    state: 'resting',
    lastError: expect.any(String),
  })
})

test("a refused query is an error of the query, with the server's reason", async () => {
  await add('main')
  stage.answer = (_, response) =>
    void response
      .writeHead(400, { 'content-type': 'application/json' })
      .end('{"status":"error","error":"many-to-many matching"}')
  for (let at = 0; at < 7; at += 1)
    expect((await read({ source: 'main', promql: 'up', window: 'now' })).body).toMatchObject({
      code: 'REJECTED',
      detail: 'main refused the query: many-to-many matching',
    })
})

test('a credential is read from its file, sent, and shown nowhere', async () => {
  const file = join(directory, 'token')
  writeFileSync(file, 'sesame-open-the-door\n')
  await add('main', { credential: `file:${file}` })
  stage.answer = matrix([])
  await read({ source: 'main', promql: 'up', window: 'now' })
  expect(stage.asked[0]?.authorization).toBe('Bearer sesame-open-the-door')
  expect(JSON.stringify((await api.get('/sources')).body)).not.toContain('sesame')
  const nowhere = `file:${directory}/nowhere/token`
  await add('main', { credential: nowhere })
  expect((await read({ source: 'main', promql: 'up', window: 'now' })).body).toMatchObject({
    code: 'NO_CREDENTIAL',
    detail: expect.stringContaining('/nowhere/token'),
  })
  expect(stage.asked).toEqual([])
})

test('only regular files of a limited size below SOURCES_DIR are read, whatever names and links say', async () => {
  const outside = join(temporaryDirectory().path, 'database-url')
  writeFileSync(outside, 'postgresql://nightshift:secret@db/nightshift')
  writeFileSync(join(directory, '.hidden'), 'a-token-of-another')
  symlinkSync(outside, join(directory, 'link'))
  symlinkSync(join(outside, '..'), join(directory, 'folder'))
  mkdirSync(join(directory, 'sub'))
  writeFileSync(join(directory, 'large'), 'x')
  truncateSync(join(directory, 'large'), 3_000_000)
  writeFileSync(join(directory, 'short'), 'ab')
  writeFileSync(join(directory, 'no-pem'), 'postgresql://nightshift:secret@db/nightshift')
  const refused = [
    [{ credential: `file:${outside}` }, /is not below .* \(SOURCES_DIR\): mv .* && nightshift sources add x --kind/],
    [{ credential: `file:${directory}/../${outside}` }, /is not below/],
    [{ credential: `file:${directory}/sub/../../x` }, /is not below/],
    [{ credential: `file:${directory}//token` }, /is not below/],
    [{ credential: `file:${directory}/.hidden` }, /begins with a dot/],
    [{ credential: `file:${directory}/link` }, /resolves to a path outside/],
    [{ credential: `file:${directory}/folder/database-url` }, /resolves to a path outside/],
    [{ credential: `file:${directory}/sub` }, /not a regular file/],
    [{ credential: `file:${directory}/large` }, /larger than 64 kB/],
    [{ credential: `file:${directory}/short` }, /fewer than 4 characters/],
    [{ credential: 'file:/proc/self/environ' }, /is not below/],
    [{ caFile: '/etc/ssl/certs/ca-certificates.crt' }, /is not below/],
    [{ caFile: `${directory}/large` }, /larger than 2000 kB/],
    [{ caFile: `${directory}/no-pem` }, /holds no certificate/],
  ] as const
  for (const [more, reason] of refused) {
    const answer = await api.put('/sources/x', { body: { kind: 'prometheus', url: stage.url, ...more } })
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringMatching(reason)])
    expect(JSON.stringify(answer.body)).not.toContain('secret')
  }
})

test('an older source whose file is elsewhere is not asked, and list, status and doctor name the path and the remedy', async () => {
  const elsewhere = join(temporaryDirectory().path, 'token')
  writeFileSync(elsewhere, 'sesame-open-the-door')
  const row = {
    writeCredential: null,
    caFile: null,
    scheme: null,
    headers: {},
    certFile: null,
    keyFile: null,
    options: { x: ['a', 'b'] },
    timeoutSeconds: 20,
    credential: `file:${elsewhere}`,
  }
  await putSource(api.db, 'old', { kind: 'prometheus', url: stage.url, ...row }, 'anna')
  stage.asked = []
  const told = await read({ source: 'old', promql: 'up', window: 'now' })
  const move = `mv ${elsewhere} ${directory}/ && nightshift sources add old --kind prometheus --at ${stage.url} --credential file:${directory}/token --timeout 20 --option x=a,b`
  expect(told.body).toMatchObject({ code: 'NO_CREDENTIAL', detail: expect.stringContaining(move) })
  expect(stage.asked).toEqual([])
  const { items } = (await api.get('/sources')).body as unknown as { items: { name: string; health: unknown }[] }
  expect(items.find(({ name }) => name === 'old')?.health).toMatchObject({
    state: 'failing',
    lastError: expect.stringContaining(move),
  })
  const { sources } = (await api.get('/status')).body as unknown as { sources: { name: string }[] }
  expect(sources.find(({ name }) => name.startsWith('old'))).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining(move),
  })
  await api.post('/sources/old/remove')
})

test('a credential is sent only to the addresses that it was given for, unless its digest is given', async () => {
  writeFileSync(join(directory, 'bound'), 'sesame-open-the-door\n')
  const credential = `file:${directory}/bound`
  await add('bound', { credential })
  const other = { kind: 'prometheus', url: 'http://127.0.0.1:1/path' }
  const sentence =
    /bound was set for http:\/\/127.0.0.1:\d+, and http:\/\/127.0.0.1:1 would now get this credential\..* "credentialSha256" .*sha256sum < /
  for (const name of ['bound', 'another']) {
    for (const credentialSha256 of [undefined, '0'.repeat(64)]) {
      const asked = await api.put(`/sources/${name}`, { body: { ...other, credential, credentialSha256 } })
      expect([asked.status, asked.body.code]).toEqual([422, 'CREDENTIAL_ASKED'])
      expect(asked.body.detail).toMatch(sentence)
    }
  }
  const silent = await api.put('/sources/bound', { body: other })
  expect([silent.status, silent.body.code, silent.body.detail]).toEqual([
    422,
    'CREDENTIAL_ASKED',
    expect.stringMatching(/end "credential" too.*or null.*--credential REF/),
  ])
  await api.post('/sources/bound/remove')
  expect((await api.put('/sources/bound', { body: { ...other, credential } })).status).toBe(422)
  // The same server under another path is the same server.
  await add('bound', { credential, url: `${stage.url}/prometheus` })
  for (const text of ['sesame-open-the-door', 'sesame-open-the-door\n']) {
    const credentialSha256 = createHash('sha256').update(text).digest('hex')
    const put = await api.put('/sources/known', { body: { ...other, credential, credentialSha256 } })
    expect([put.status, JSON.stringify(put.body)]).toEqual([200, expect.not.stringContaining(credentialSha256)])
  }
  expect((await api.put('/sources/bound', { body: { ...other, credential: null } })).status).toBe(200)
  const { items } = (await api.get('/audit?what=source.credential_refused')).body as unknown as { items: unknown[] }
  expect(items).toHaveLength(5)
  for (const name of ['bound', 'known']) await api.post(`/sources/${name}/remove`)
})

test('a token for settings alone can use an unused credential only with its digest', async () => {
  writeFileSync(join(directory, 'unused'), 'nobody-uses-this-yet')
  const minted = await api.post('/tokens', {
    body: { name: 'settings', role: 'admin', operator: 'admin', scopes: ['write_config'] },
  })
  const token = String(minted.body.token)
  const body = { kind: 'prometheus', url: 'http://127.0.0.1:1', credential: `file:${directory}/unused` }
  const refused = await api.put('/sources/theirs', { body, as: token })
  expect([refused.status, refused.body.code]).toEqual([422, 'CREDENTIAL_ASKED'])
  expect(refused.body.detail).toMatch(
    /was set for no address yet, and http:\/\/127.0.0.1:1 would now get this credential/,
  )
  const credentialSha256 = createHash('sha256').update('nobody-uses-this-yet').digest('hex')
  expect((await api.put('/sources/theirs', { body: { ...body, credentialSha256 }, as: token })).status).toBe(200)
  await api.post('/sources/theirs/remove')
})

test.each([
  [{ kind: 'nothing', url: 'http://x' }, /not a kind of source/],
  [{ kind: 'prometheus', url: 'ftp://x' }, /url/i],
  [{ kind: 'prometheus', url: 'http://a:b@x' }, /contains a password/],
  [{ kind: 'prometheus', url: 'http://x', credential: 'sesame' }, /file:\/path/],
  [{ kind: 'prometheus', url: 'http://x', credential: 'env:DATABASE_URL' }, /NIGHTSHIFT_SOURCE_/],
  [{ kind: 'prometheus', url: 'http://x', options: { x: 1 } }, /options/],
])('an invalid source is refused with its error: %j', async (body, reason) => {
  const refused = await api.put('/sources/wrong', { body })
  expect(refused.status).toBe(422)
  expect(JSON.stringify(refused.body)).toMatch(reason)
})

test('only people who may change the configuration add a source, and a removal is in the audit log', async () => {
  expect(
    (await api.put('/sources/x', { body: { kind: 'prometheus', url: stage.url }, as: api.tokens.approver })).status,
  ).toBe(403)
  const { items } = (await api.get('/audit?what=source')).body as unknown as {
    items: { what: string; subject: string }[]
  }
  expect(items.map(({ what, subject }) => `${what} ${subject}`)).toContain('source.removed second')
})

test('labels of logs are chosen by code: the narrowest first, and a service only on its machine', () => {
  const subject = { machine: ['web-1', '10.0.0.1'], unit: ['nginx.service'], workload: [], alertLabels: {} }
  const there = new Set(['host', 'unit', 'job'])
  expect(chooseLabels(there, subject)).toEqual([
    { host: 'web-1', unit: 'nginx.service' },
    { host: '10.0.0.1', unit: 'nginx.service' },
    { host: 'web-1' },
    { host: '10.0.0.1' },
  ])
  expect(chooseLabels(new Set(['unit', 'job']), subject)).toEqual([])
  const workload = { ...subject, machine: [], unit: [], workload: ['shop'] }
  const pods = (pod: string) => chooseLabels(new Set(['pod']), { ...workload, alertLabels: { pod } })
  expect([pods('shop-7d9f8b6c5-x2x9k'), pods('exporter-1')]).toEqual([[{ pod: 'shop-7d9f8b6c5-x2x9k' }], []])
})

test('a person who reads a source by hand, and the question, are in the audit log', async () => {
  await add('main')
  stage.answer = matrix([])
  const asked = { tool: 'query_metrics', arguments: { source: 'main', promql: 'up{team="payroll"}', window: 'now' } }
  expect((await api.post('/sources/read', { body: asked, as: api.tokens.viewer })).status).toBe(200)
  const { items } = (await api.get('/audit?what=source.read')).body as unknown as { items: Record<string, string>[] }
  expect(items[0]).toMatchObject({ who: 'viewer', subject: 'main', detail: expect.stringContaining('payroll') })
})
