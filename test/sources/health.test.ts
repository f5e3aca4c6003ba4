import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals'
import pino from 'pino'
import { useApi } from '../support/api.ts'

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
  said
    .filter(({ msg }) => /^a source (does not answer|answers again)/.test(msg))
    .map(({ msg, source }) => `${source}: ${msg}`)

test('the status shows the state of each source, and the log reports once that it is away and once that it is back', async () => {
  await api.put('/sources/main', { body: { kind: 'prometheus', url } })
  expect(await partOfMain()).toEqual({
    name: 'main (prometheus)',
    status: 'unknown',
    detail: expect.stringMatching(/^No query was sent/),
    remedy: null,
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
      /^main answered 500; it last answered at .* UTC\. Investigations continue without it\.$/,
    ),
    remedy: '"nightshift sources test main" shows more',
  })
  // One failure is no outage.
  expect(news()).toEqual([])
  for (let at = 0; at < 7; at += 1) await read()
  expect(await read()).toBe('RESTING')
  expect(await partOfMain()).toMatchObject({
    detail: expect.stringMatching(/sends the source no query until \d\d:\d\d:\d\d UTC/),
  })
  expect(news()).toEqual(['main: a source does not answer: Nightshift tries it again after 30 s'])

  const later = Date.now() + 31_000
  jest.spyOn(Date, 'now').mockImplementation(() => later)
  expect(await read()).toBe('BAD_ANSWER')
  const muchLater = later + 31_000
  jest.spyOn(Date, 'now').mockImplementation(() => muchLater)
  isWell = true
  expect(await read()).toBeUndefined()
  expect(await read()).toBeUndefined()
  expect(news()).toEqual([
    'main: a source does not answer: Nightshift tries it again after 30 s',
    'main: a source answers again',
  ])
  expect(await partOfMain()).toMatchObject({ status: 'ok' })
})
