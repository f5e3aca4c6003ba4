import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals'
import pino from 'pino'
import { syncTargets } from '../../api/sync-targets.ts'
import { leaseKeys } from '../../db/inventory/registry.ts'
import { findAlertResources, neighboursOf } from '../../db/inventory/resources.ts'
import { targetsToDeclared } from '../../domain/source.ts'
import { fitSummary } from '../../sources/kind.ts'
import { useApi } from '../api/api.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Answer, json, matrix, useSourceServer, vector } from './server.ts'

describe('health', () => {
  describe('health', () => {
    const said: { level: number; msg: string; source?: string; because?: string }[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => void said.push(JSON.parse(line)) })
    const api = useApi(() => ({ log }))

    let isWell = true
    const server = createServer((_, response) => {
      if (!isWell) return response.writeHead(500).end()
      response.setHeader('content-type', 'application/json')
      return response.end('{"status":"success","data":{"resultType":"vector","result":[]}}')
    })
    let url = ''
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    afterEach(() => void jest.restoreAllMocks())
    afterAll(() => {
      server.closeAllConnections()
      server.close()
    })

    const read = async () =>
      (await api.post('/sources/read', { body: { tool: 'query_metrics', arguments: { promql: 'up', window: 'now' } } }))
        .body.code as string | undefined
    const partOfMain = async () => ((await api.get('/status')).body.sources as unknown as unknown[])[0]
    const news = () =>
      said.filter(({ msg }) => msg.startsWith('a source is')).map(({ msg, source }) => `${source}: ${msg}`)

    test('the status says of each source how it does, and the log says once that it is away and once that it is back', async () => {
      await api.put('/sources/main', { body: { kind: 'prometheus', url } })
      expect(await partOfMain()).toEqual({
        ...{ name: 'main (prometheus)', status: 'unknown', detail: expect.stringMatching(/^Nobody asked it/) },
      })
      await read()
      expect(await partOfMain()).toMatchObject({
        status: 'ok',
        detail: expect.stringMatching(/^It answered at .* UTC\.$/),
      })

      isWell = false
      expect(await read()).toBe('BAD_ANSWER')
      expect(await partOfMain()).toMatchObject({
        status: 'failed',
        detail: expect.stringMatching(
          /^main answered 500; it last answered at .* UTC\. Investigations do without it\.$/,
        ),
      })
      // One failure is no outage.
      expect(news()).toEqual([])
      for (let at = 0; at < 7; at += 1) await read()
      expect(await read()).toBe('RESTING')
      expect(await partOfMain()).toMatchObject({ detail: expect.stringMatching(/left alone until \d\d:\d\d:\d\d UTC/) })
      expect(news()).toEqual(['main: a source is away: it is tried again after 30 s'])

      const later = Date.now() + 31_000
      jest.spyOn(Date, 'now').mockImplementation(() => later)
      expect(await read()).toBe('BAD_ANSWER')
      const muchLater = later + 31_000
      jest.spyOn(Date, 'now').mockImplementation(() => muchLater)
      isWell = true
      expect(await read()).toBeUndefined()
      expect(await read()).toBeUndefined()
      expect(news()).toEqual(['main: a source is away: it is tried again after 30 s', 'main: a source is back'])
      expect(await partOfMain()).toMatchObject({ status: 'ok' })
    })
  })

  describe('targets', () => {
    const api = useApi()

    let answer: (response: ServerResponse) => void = () => {}
    const server = createServer((_, response) => answer(response))
    let url = ''
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      await api.put('/inventory', { body: { nodes: [{ id: 'web-1', hostname: 'web-1.example.com', ip: '10.0.0.1' }] } })
      await api.put('/sources/main', { body: { kind: 'prometheus', url } })
    })
    afterAll(() => {
      server.closeAllConnections()
      server.close()
    })

    const list = (...targets: Record<string, string>[]) => {
      const activeTargets = targets.map((labels) => ({ labels, health: 'up', lastScrape: new Date().toISOString() }))
      answer = (response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ status: 'success', data: { activeTargets, droppedTargets: [] } }))
      }
    }
    const fail = (status: number) => {
      answer = (response) => void response.writeHead(status).end()
    }
    const sync = () => syncTargets(api.api.deps)
    const known = async () => {
      const { body } = await api.get('/inventory/resources?kind=target')
      return (body.items as unknown as { id: string }[]).map(({ id }) => id)
    }

    test('what a source scrapes is in the registry, an alert finds it, and it is a name of the machine it is on', async () => {
      list(
        { instance: '10.0.0.1:9100', job: 'node', env: 'prod' },
        { instance: '10.0.0.1:9100', job: 'cadvisor' },
        { instance: 'web-1.example.com:9187', job: 'postgres' },
        { instance: '10.9.9.9:9100', job: 'node' },
        { instance: 'https://shop.example.com/health?token=sesame', job: 'blackbox' },
        { instance: 'localhost:9090', job: 'prometheus' },
      )
      await sync()
      expect(await known()).toEqual([
        ...['10.0.0.1:9100', '10.9.9.9:9100', 'localhost:9090'],
        ...[expect.stringMatching(/^shop\.example\.com-health-[0-9a-f]{8}$/), 'web-1.example.com:9187'],
      ])
      const shown = await api.get('/inventory/resources/target/10.0.0.1:9100')
      expect(shown.body).toMatchObject({
        sources: ['prometheus:main'],
        said: [{ attributes: { job: 'cadvisor, node' } }],
        relations: [{ kind: 'same_as', to: 'node:web-1', hasAuthority: false }],
        sameAs: [],
      })
      const about = async (instance: string) => {
        const [found] = await findAlertResources(api.db, [{ instance, job: 'node' }], [])
        return found?.resource
      }
      expect(await about('10.9.9.9:9100')).toEqual({ kind: 'target', id: '10.9.9.9:9100' })
      expect(await about('10.0.0.1:9100')).toEqual({ kind: 'node', id: 'web-1' })
    })

    test('a target takes the lease of its machine, and widens no vicinity', async () => {
      const target = (id: string) => ({ kind: 'target' as const, id })
      expect(
        await leaseKeys(api.db, [
          target('10.0.0.1:9100'),
          target('web-1.example.com:9187'),
          { kind: 'node', id: 'web-1' },
        ]),
      ).toEqual(['node:web-1'])
      expect(await leaseKeys(api.db, [target('localhost:9090')])).toEqual(['target:localhost:9090'])
      expect(await neighboursOf(api.db, target('10.0.0.1:9100'))).toEqual([])
      // Its own group, and nothing besides.
      expect(await neighboursOf(api.db, { kind: 'node', id: 'web-1' })).toEqual([{ kind: 'shard', id: 'hosts' }])
    })

    test('a source that is away, has no list, or lists nothing yet leaves its rows; one that lists fewer takes the others back', async () => {
      const before = await known()
      const breakOff = () => {
        answer = (response) => response.destroy()
      }
      const fails = [() => fail(500), () => fail(404), () => list(), breakOff]
      for (const failing of fails) {
        failing()
        await sync()
        expect(await known()).toEqual(before)
      }
      // That a server of this family has no targets is no failure of it.
      fail(404)
      await sync()
      expect((await api.get('/status')).body.sources).toMatchObject([{ status: 'ok' }])
      list({ instance: 'b:1' }, { instance: 'a:1' }, { job: 'without an instance' }, { instance: '///' })
      await sync()
      expect(await known()).toEqual(['a:1', 'b:1'])
    })

    test('more targets than are taken are refused as a whole, and the list before stays', async () => {
      const before = await known()
      list(...Array.from({ length: 100_001 }, (_, at) => ({ instance: `h-${at}:1` })))
      await sync()
      expect(await known()).toEqual(before)
    })

    test('a source that moves or is removed takes its targets along', async () => {
      list({ instance: 'a:1' })
      await sync()
      await api.put('/sources/main', { body: { kind: 'prometheus', url: `${url}/other` } })
      expect(await known()).toEqual([])
      await sync()
      expect(await known()).toEqual(['a:1'])
      await api.post('/sources/main/remove')
      expect(await known()).toEqual([])
      await sync()
      expect(await known()).toEqual([])
    })

    test('the same targets in another order are the same list, and two addresses are never one target', () => {
      const labels: Record<string, string>[] = [
        { instance: 'https://x.example/a', job: 'p' },
        { instance: 'https://x.example-a', job: 'p' },
        { instance: 'x:1', job: 'b', zone: '2' },
        { instance: 'x:1', job: 'a', zone: '1' },
      ]
      const declare = (all: typeof labels) =>
        targetsToDeclared(
          all.map((each) => ({ labels: each })),
          () => null,
        )
      const declared = declare(labels)
      expect(declare(labels.toReversed())).toEqual(declared)
      expect(new Set(declared.resources.map(({ id }) => id)).size).toBe(3)
    })
  })
})

describe('hostile', () => {
  /** Servers that misbehave: a reason, a summary within its bound, and nothing else. */

  const api = useApi()
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
      /does not parse/,
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
      /redirects/,
    ],
    ['an expired token', (_, response) => response.writeHead(401).end(), 'UNAUTHORIZED', /renew/],
    ['another API', json({ hello: 'world' }), 'BAD_ANSWER', /not of the Prometheus API/],
    [
      'series of another shape',
      json({ status: 'success', data: { resultType: 'matrix', result: [{ metric: 7 }] } }),
      'BAD_ANSWER',
      /shape/,
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
      /broke off/,
    ],
    ['silence', () => {}, 'TIMEOUT', /within 1 s/],
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
      /shape/,
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

  test('of forty thousand items a summary is built a few times, not once for each that is left out', () => {
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

  test('forty thousand metrics, or a name that is longer than a summary, are told in 2 kB', async () => {
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

  test('points come in the order of time, without those that have no number or no time', async () => {
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

  test('a server that answers more points than were asked for gives a reason', async () => {
    await add('main')
    stage.answer = matrix([{ metric: {}, values: Array.from({ length: 5_000 }, (_, at) => [at, '1']) }])
    expect((await read({ source: 'main', promql: 'up' })).body).toMatchObject({
      code: 'BAD_ANSWER',
      detail: expect.stringContaining('more than the'),
    })
  })

  test('a server that repeats the credential of a request gives it to nobody', async () => {
    const file = join(temporaryDirectory().path, 'token')
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
})
