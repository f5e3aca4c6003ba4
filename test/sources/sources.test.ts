import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { contextActivities } from '../../activities/context.ts'
import { bodyText } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { EventMetadata } from '../../domain/event.ts'
import type { CoreAnswer, CorePort } from '../../domain/tool.ts'
import { readPrompts } from '../../prompts/render.ts'
import { chooseLabels } from '../../sources/logs/last.ts'
import { useApi } from '../api/api.ts'
import { openedIncident } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Answer, json, matrix, useSourceServer } from './server.ts'

const api = useApi()

const { stage, add, read } = useSourceServer(api)

test('a query gives what its series did, and the same window a day and a week before; the model reads 2 kB at most', async () => {
  await add('main')
  const now = Date.now() / 1000
  const series = (instance: string, height: number) => ({
    metric: { __name__: 'up', job: 'api', instance },
    values: Array.from({ length: 60 }, (_, at) => [now - 3_600 + at * 60, String(at < 40 ? 1 : height)]),
  })
  stage.answer = matrix([
    series('web-1:9100', 1),
    series('web-2:9100', 50),
    ...Array.from({ length: 80 }, (_, at) => series(`w-${at}`, 2)),
  ])
  const { status, body } = await read({ source: 'main', promql: 'up{job="api"}' })
  expect(status).toBe(200)
  expect(stage.asked).toHaveLength(3)
  const summary = body.summary as unknown as { series: Record<string, unknown>[]; [name: string]: unknown }
  expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
  expect(summary).toMatchObject({ seriesFound: 82, sharedLabels: { __name__: 'up', job: 'api' } })
  expect(summary.series[0]).toMatchObject({
    labels: { instance: 'web-2:9100' },
    last: 50,
    min: 1,
    before: 1,
    after: 50,
    changedAt: expect.stringMatching(/Z$/),
    dayBefore: expect.any(Number),
  })
})

test('a query that names a resource says which, and an empty answer is no look at it', async () => {
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
  ['isPartial of VictoriaMetrics', { isPartial: true }, ['some of its storage nodes gave no answer (isPartial)']],
  ['a warning without words', { warnings: [{ text: 'no text' }] }, ['without words']],
])(
  'an answer with %s is partial and says why, and where nothing is in it, that is no evidence of absence',
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

test('by an info nothing is missing, and a hundred long warnings take 2 kB at most', async () => {
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

test('what was not bounded never reaches the server, whoever asks', async () => {
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

test('several sources of one kind have to be named', async () => {
  await add('second')
  const refused = await read({ promql: 'up' })
  expect(refused.body).toMatchObject({ code: 'NO_SOURCE', detail: expect.stringContaining('main, second') })
  expect((await read({ source: 'third', promql: 'up' })).body.detail).toContain(
    'there is no source third: main, second',
  )
  expect((await api.post('/sources/second/remove')).body).toEqual({ removed: 'second' })
})

test('a source that nobody answers at is left alone after five failures, and says so', async () => {
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

test("a refused query is the query's fault, with the server's reason", async () => {
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

test('a credential is read where it lies, sent, and shown nowhere', async () => {
  const file = join(temporaryDirectory().path, 'token')
  writeFileSync(file, 'sesame-open-the-door\n')
  await add('main', { credential: `file:${file}` })
  stage.answer = matrix([])
  await read({ source: 'main', promql: 'up', window: 'now' })
  expect(stage.asked[0]?.authorization).toBe('Bearer sesame-open-the-door')
  expect(JSON.stringify((await api.get('/sources')).body)).not.toContain('sesame')
  await add('main', { credential: 'file:/nowhere/token' })
  expect((await read({ source: 'main', promql: 'up', window: 'now' })).body).toMatchObject({
    code: 'NO_CREDENTIAL',
    detail: expect.stringContaining('/nowhere/token'),
  })
  expect(stage.asked).toEqual([])
})

test.each([
  [{ kind: 'nothing', url: 'http://x' }, /no kind of source/],
  [{ kind: 'prometheus', url: 'ftp://x' }, /url/i],
  [{ kind: 'prometheus', url: 'http://a:b@x' }, /holds a password/],
  [{ kind: 'prometheus', url: 'http://x', credential: 'sesame' }, /file:\/path/],
  [{ kind: 'prometheus', url: 'http://x', credential: 'env:DATABASE_URL' }, /NIGHTSHIFT_SOURCE_/],
  [{ kind: 'prometheus', url: 'http://x', options: { x: 1 } }, /options/],
])('a source that cannot be is refused with what is wrong: %j', async (body, reason) => {
  const refused = await api.put('/sources/wrong', { body })
  expect(refused.status).toBe(422)
  expect(JSON.stringify(refused.body)).toMatch(reason)
})

test('only who may change the configuration adds a source, and it is in the audit', async () => {
  expect(
    (await api.put('/sources/x', { body: { kind: 'prometheus', url: stage.url }, as: api.tokens.approver })).status,
  ).toBe(403)
  const { items } = (await api.get('/audit?what=source')).body as unknown as {
    items: { what: string; subject: string }[]
  }
  expect(items.map(({ what, subject }) => `${what} ${subject}`)).toContain('source.removed second')
})

describe('the last log lines of an incident', () => {
  const beganMs = Date.now()
  const streams = (lines: [number, string][]): Answer =>
    json({
      data: {
        resultType: 'streams',
        result: [{ stream: {}, values: lines.map(([atMs, text]) => [`${atMs}000000`, text]) }],
      },
    })
  const noisy: [number, string][] = Array.from({ length: 900 }, (_, at) => [
    beganMs - at * 1_000,
    at === 700 ? 'ERROR pool exhausted, password=hunter2secret' : `INFO served request ${at} in ${at % 30}ms`,
  ])
  /** Holds lines of the machine as its shipper writes it, and of nothing else. */
  const loki: Answer = (request, response, body) => {
    const url = new URL(request.url ?? '', 'http://x')
    if (url.pathname.endsWith('/labels')) return json({ data: ['hostname', 'unit'] })(request, response, body)
    const isOurs = url.searchParams.get('query') === '{hostname="web-1"}'
    return streams(isOurs ? noisy : [])(request, response, body)
  }
  const incidentAbout = async (instance: string) => {
    await api.put('/inventory', { body: { nodes: [{ id: 'web-1', ip: '10.0.0.1' }] } })
    const labels = { incident_type: 'disk_full', instance }
    return await openedIncident(api.db, { labels, fingerprint: createHash('sha256').update(instance).digest('hex') })
  }
  const contextOf = async (incidentId: string) => {
    const core: CorePort = {
      async get(path): Promise<CoreAnswer> {
        const { status, body } = await api.get(path.replace('/api/v1', ''), { as: api.tokens.agent })
        if (status < 400) return { ok: true, status, data: body }
        return { ok: false, status, problem: { title: String(body.title), detail: String(body.detail) } }
      },
      post: async () => ({ ok: false, status: 403, problem: { title: 'no', detail: 'no' } }),
    }
    const prompts = readPrompts()
    const deps = {
      db: api.db,
      prompts,
      protocol: 'native' as const,
      model: 'm',
      environment: {},
      core,
    }
    const { claim, assembleContext } = contextActivities(deps)
    const workflowExecution = { workflowId: `investigate:${incidentId}:1`, runId: 'r' }
    await new MockActivityEnvironment({ workflowExecution }).run(async () => {
      await claim({ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test' })
      await assembleContext(incidentId, 1)
    })
    const row = (await eventsOf(api.db, incidentId)).find((event) => event.kind === 'context_assembled')
    const metadata = row?.metadata as EventMetadata['context_assembled']
    return { parts: metadata.parts, context: JSON.parse(await bodyText(api.db, metadata.context.digest)) }
  }
  afterAll(async () => {
    for (const name of ['logs', 'logs-away']) await api.post(`/sources/${name}/remove`, {})
  })

  test('open its context: of each kind of line the newest, without a secret, in 1 kB', async () => {
    await add('logs', { kind: 'loki' })
    stage.answer = loki
    const { parts, context } = await contextOf(await incidentAbout('web-1:9100'))
    expect([parts.logs, context.logs]).toEqual([
      'ok',
      [
        {
          source: 'logs',
          labels: { hostname: 'web-1' },
          lines: [
            expect.stringMatching(/^\d\d:\d\d:\d\d ERROR pool exhausted, password=/),
            expect.stringMatching(/^\d\d:\d\d:\d\d INFO served request 0 in 0ms \(899 such lines\)$/),
          ],
        },
      ],
    ])
    expect(JSON.stringify(context)).not.toContain('hunter2secret')
    expect(Buffer.byteLength(JSON.stringify(context.logs))).toBeLessThan(1_000)
  })

  test('of which a source has none, or that is about nothing known, are left out', async () => {
    stage.answer = (request, response, body) =>
      json(request.url?.includes('/labels') ? { data: ['job'] } : { data: { resultType: 'streams', result: [] } })(
        request,
        response,
        body,
      )
    const { parts, context } = await contextOf(await incidentAbout('10.0.0.1:9100'))
    expect([parts.logs, 'logs' in context]).toEqual(['empty', false])
    const nowhere = await contextOf(await incidentAbout('elsewhere:9100'))
    expect('logs' in nowhere.context).toBe(false)
  })

  test('cost four seconds at most and say in one line that their source gave no answer', async () => {
    stage.answer = () => {}
    await add('logs-away', { kind: 'victorialogs', url: 'http://127.0.0.1:1' })
    const { context } = await contextOf(await incidentAbout('web-1.example.com:9100'))
    expect(context.logs).toEqual([
      { source: 'logs', notRead: expect.stringContaining('within 4 s') },
      { source: 'logs-away', notRead: expect.stringContaining('cannot be reached') },
    ])
  })
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
