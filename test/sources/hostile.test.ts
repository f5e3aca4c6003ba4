import { writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { fitSummary } from '../../sources/kind.ts'
import { useApi } from '../support/api.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Answer, json, matrix, useSourceServer, vector } from '../support/source-server.ts'

/** Servers that misbehave: a reason, a summary within its bound, and nothing else. */

const directory = temporaryDirectory().path
const api = useApi(() => ({ sourcesDirectory: directory }))
const { stage, add, read } = useSourceServer(api)

const bad: [string, Answer, string, RegExp][] = [
  [
    'ten megabytes',
    (_, response) => response.setHeader('content-type', 'application/json').end(`"${'x'.repeat(10_000_000)}"`),
    'TOO_LARGE',
    /aggregate/,
  ],
  [
    'garbage',
    (_, response) => response.setHeader('content-type', 'application/json').end('{"status":'),
    'BAD_ANSWER',
    /invalid JSON/,
  ],
  [
    'another content type',
    (_, response) => response.setHeader('content-type', 'text/html').end('<html>'),
    'BAD_ANSWER',
    /text\/html instead of JSON/,
  ],
  [
    'a redirect',
    (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    'REDIRECT',
    /redirect/,
  ],
  [
    '401 without a credential',
    (_, response) => response.writeHead(401).end(),
    'UNAUTHORIZED',
    /no credential is set: .* --credential REF/,
  ],
  ['another API', json({ hello: 'world' }), 'BAD_ANSWER', /not fit the Prometheus API/],
  [
    'series of another shape',
    json({ status: 'success', data: { resultType: 'matrix', result: [{ metric: 7 }] } }),
    'BAD_ANSWER',
    /does not fit|do not fit|cannot be read/,
  ],
  ['a fault', (_, response) => response.writeHead(500).end(), 'BAD_ANSWER', /answered 500/],
  [
    'half an answer',
    (_, response) => {
      response.writeHead(200, { 'content-length': '100', 'content-type': 'application/json' })
      response.write('{')
      response.destroy()
    },
    'BAD_ANSWER',
    /not complete/,
  ],
  ['silence', () => {}, 'TIMEOUT', /within 1 s: ask for less, or allow more time \(--timeout\)/],
  [
    'a byte now and then',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const dripping = setInterval(() => response.write(' '), 50)
      response.on('close', () => clearInterval(dripping))
    },
    'TIMEOUT',
    /within 1 s: ask for less/,
  ],
  [
    'a refusal with the status of a success',
    json({ status: 'error', errorType: 'bad_data', error: 'too many samples' }),
    'REJECTED',
    /too many samples/,
  ],
  [
    'so many faults of shape that they overflow their own list',
    matrix([{ metric: {}, values: Array.from({ length: 250_000 }, () => [0]) }]),
    'BAD_ANSWER',
    /does not fit|do not fit|cannot be read/,
  ],
]
test.each(bad)('a source that answers %s gives a reason and nothing else', async (_, given, code, reason) => {
  await add('bad', { timeoutSeconds: code === 'TIMEOUT' ? 1 : 60 })
  stage.answer = given
  const refused = await read({ source: 'bad', promql: 'up', window: 'now' })
  expect([refused.status, refused.body.code]).toEqual([424, code])
  expect(refused.body.detail).toMatch(reason)
})

const bytesOf = (body: unknown) => Buffer.byteLength(JSON.stringify((body as { summary: unknown }).summary))

test('of forty thousand items a summary is built a few times, not once for each omitted item', () => {
  let built = 0
  const items = Array.from({ length: 40_000 }, (_, at) => `m_${at}`)
  const summary = fitSummary(items, (kept, omitted) => {
    built += 1
    return { kept, omitted }
  })
  expect(summary.omitted).toBeGreaterThan(39_000)
  // One by one it took a minute, in which the API answered nobody.
  expect(built).toBeLessThan(20)
})

test('forty thousand metrics, or a name that is longer than a summary, are reported in 2 kB', async () => {
  await add('main', { timeoutSeconds: 60 })
  stage.answer = vector(
    Array.from({ length: 40_000 }, (_, at) => ({ metric: { __name__: `m_${at}` }, value: [1, '1'] })),
  )
  const many = await read({ source: 'main', labels: { instance: 'a' } }, 'describe_metrics')
  expect(many.body.summary).toMatchObject({ metricsFound: 40_000, notShown: expect.any(Number) })
  expect(bytesOf(many.body)).toBeLessThanOrEqual(2_000)

  stage.answer = vector([{ metric: { a: 'b'.repeat(2_000_000), ['k'.repeat(9_000)]: '1' }, value: [1, '7'] }])
  const long = await read({ source: 'main', promql: 'up', window: 'now' })
  expect(bytesOf(long.body)).toBeLessThanOrEqual(2_000)
  expect(long.body.summary).toMatchObject({ seriesFound: 1, values: [{ value: 7 }] })
})

test('points are in the order of time, without those that have no number or no time', async () => {
  await add('main')
  const values = [
    [300, '1'],
    [200, '2'],
    [1e300, '5'],
    [-1e300, '7'],
    [250, ''],
    [260, 'NaN'],
    [270, '+Inf'],
  ]
  stage.answer = matrix([{ metric: { a: 'b' }, values }])
  const { body } = await read({ source: 'main', promql: 'up' })
  expect(body.summary).toMatchObject({ series: [{ last: 1, min: 1, max: 2 }] })
})

test('a server that answers more points than requested gives a reason', async () => {
  await add('main')
  stage.answer = matrix([{ metric: {}, values: Array.from({ length: 5_000 }, (_, at) => [at, '1']) }])
  expect((await read({ source: 'main', promql: 'up' })).body).toMatchObject({
    code: 'BAD_ANSWER',
    detail: expect.stringContaining('more than the'),
  })
})

test('a server that repeats the credential of a request shows it to nobody', async () => {
  const file = join(directory, 'token')
  for (const secret of ['sesame-open-the-door', 'reader:sesame-door']) {
    writeFileSync(file, secret)
    await add('main', { credential: `file:${file}` })
    const header = (request: IncomingMessage) => request.headers.authorization as string
    stage.answer = (request, response) =>
      void response.writeHead(400).end(`no such header: ${header(request)} ${secret}`)
    const refused = await read({ source: 'main', promql: 'up', window: 'now' })
    expect(refused.body).toMatchObject({ code: 'REJECTED', detail: expect.stringContaining('[credential]') })
    stage.answer = (request, response) =>
      vector([{ metric: { is: header(request), of: secret }, value: [1, '1'] }])(request, response, '')
    const told = await read({ source: 'main', promql: 'up', window: 'now' })
    for (const { body } of [refused, told]) expect(JSON.stringify(body)).not.toMatch(/sesame|cmVhZGVy/)
  }
})

const go = (secret: string) =>
  JSON.stringify(secret)
    .slice(1, -1)
    .replace(/[&<>]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`)

test.each([
  [
    'the reason of an error',
    'REJECTED',
    (secret: string): Answer =>
      (_, response) =>
        void response.writeHead(400, { 'content-type': 'application/json' }).end(`{"error":"no ${go(secret)}"}`),
  ],
  [
    'a type of content',
    'BAD_ANSWER',
    (secret: string): Answer =>
      (_, response) =>
        void response.writeHead(200, { 'content-type': `text/${encodeURIComponent(secret)}` }).end('x'),
  ],
  [
    'a warning, a label and its name',
    200,
    (secret: string): Answer =>
      (_, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(
            `{"status":"success","warnings":["${go(secret)}"],"data":{"resultType":"vector","result":[{"metric":{"leak":"${go(secret)}","${go(secret)}":"${Buffer.from(`Bearer ${secret}`).toString('base64url')}"},"value":[1,"1"]}]}}`,
          ),
  ],
])('a credential is hidden in %s, in any form of the server', async (_, code, answering) => {
  const secret = 'p&ss<w>rd-"ABC'
  writeFileSync(join(directory, 'odd'), `${secret}\n`)
  await add('main', { credential: `file:${directory}/odd` })
  stage.answer = answering(secret)
  const told = await read({ source: 'main', promql: 'up', window: 'now' })
  expect(told.body.code ?? told.status).toBe(code)
  const shown = JSON.stringify([told.body, (await api.get('/sources')).body, (await api.get('/status')).body])
  expect(shown).not.toMatch(/ABC|QkM|FCQ|w\\u003e|w>/)
})
