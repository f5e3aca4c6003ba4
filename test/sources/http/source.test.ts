import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { isCovered, readPath, readPattern, writePath } from '../../../sources/http/source.ts'
import { selectPart } from '../../../sources/http/summary.ts'
import { announced } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'

const api = useApi()

let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {}
const asked: string[] = []
const server = createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`)
  answer(request, response)
})
let url = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const give = (value: unknown, status = 200) => {
  answer = (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }
}
const giveText = (text: string | Buffer, type: string) => {
  answer = (_, response) => void response.writeHead(200, { 'content-type': type }).end(text)
}
const paths = ['/health', '/api/v1/nodes/*?limit', '/files/**']
const add = async (name: string, options: Record<string, unknown> = { paths }, more: Record<string, unknown> = {}) =>
  await api.put(`/sources/${name}`, { body: { kind: 'http', url: `${url}/base`, options, ...more } })
const read = async (args: Record<string, unknown>) =>
  await api.post('/sources/read', { body: { tool: 'http_read', arguments: args } })

const patternOf = (text: string) => {
  const pattern = readPattern(text)
  if (typeof pattern === 'string') throw new Error(pattern)
  return pattern
}
const isAllowed = (path: string, ...allowed: string[]) => {
  const parts = readPath(path)
  return typeof parts !== 'string' && allowed.some((each) => isCovered(patternOf(each), parts))
}

test.each([
  '/files/../admin',
  '/files/%2e%2e/admin',
  '/files/.%2E/admin',
  '/files/%252e%252e/admin',
  '/files/./x',
  '/files/...',
  '/files//x',
  '//evil.example/files/x',
  '/files/a%2fb',
  '/files/a%5cb',
  '/files\\..\\admin',
  '/files/%00',
  '/files/%',
  '/files/%c0%ae%c0%ae/x',
  '/files/..;/admin',
  '/files/x;v=1',
  '/files/%3b',
  '/files/x#y',
  '/files/x%23y',
  '/files/x%3fy',
  ...['http://evil.example/', 'files/x', '@evil.example/x', '/files/ x', '/files/é', '/files/*', '/files/%ef%bc%8fx'],
  '/files/%ef%bc%8e%ef%bc%8e/x',
  '/files/x?a',
  '/health?x=1',
  '/health/',
  '/Health',
  '/healthz',
  '/api/v1/nodes/',
  '/api/v1/nodes/a/b',
  '/api/v1/nodes/a?limit=1&limit=2',
  '/api/v1/nodes/a?LIMIT=1',
  '/api/v1/nodes/a?limit=%00',
  '/api/v1/nodes/a?limit=1&x=2',
  '/api/v1/nodes/a?',
  '/files/.git/config',
  '/files/a/.env',
  '/api/v1/nodes/.x',
  '',
])('a path that could mean another page, or is not on the list, is not read: %s', (path) => {
  expect(isAllowed(path, ...paths)).toBe(false)
})

test.each([
  ['/health', '/health'],
  ['/api/v1/nodes/web-1?limit=10', '/api/v1/nodes/web-1?limit=10'],
  ['/api/v1/nodes/web%2d1', '/api/v1/nodes/web-1'],
  ['/api/v1/nodes/a%20b?limit=a+b', '/api/v1/nodes/a%20b?limit=a%20b'],
  ['/files/a/b/', '/files/a/b/'],
  ['/files/%C3%A9', '/files/%C3%A9'],
])('a path of the list is sent as it was judged: %s', (path, sent) => {
  expect(isAllowed(path, ...paths)).toBe(true)
  const parts = readPath(path)
  expect(typeof parts === 'string' ? parts : writePath(parts)).toBe(sent)
})

test('requests stay below the address of the source, whatever the path is', () => {
  const piece = fc.constantFrom(
    '/',
    '..',
    '.',
    '%2e',
    '%2f',
    '%5c',
    '\\',
    '%25',
    ';',
    '@',
    ':',
    '?',
    '#',
    '&',
    '=',
    'files',
    'a',
    '%00',
    '//',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 10 }), (pieces) => {
      const path = `/files/${pieces.join('')}`
      const parts = readPath(path)
      if (typeof parts === 'string' || !isCovered(patternOf('/files/**?a&b'), parts)) return
      const { origin, pathname } = new URL(`http://pages.example/base${writePath(parts)}`)
      expect(origin).toBe('http://pages.example')
      expect(decodeURIComponent(pathname)).toMatch(/^\/base\/files\/[^\\;%]*$/)
      expect(pathname.split('/')).not.toContain('..')
    }),
    { numRuns: 2_000 },
  )
})

test('a wildcard of many parts is compared quickly', () => {
  expect(isAllowed(`/${'a'.repeat(900)}`, '/a*a*b')).toBe(false)
  expect(isAllowed('/node-7-state', '/node-*-state')).toBe(true)
  expect(isAllowed('/node-state', '/node-*-state')).toBe(false)
})

test('a part of JSON is selected by its path', () => {
  const value = { items: [{ name: 'a', state: 'up' }, { name: 'b' }], 'a.b/c': { 1: 7 }, no: null }
  expect(selectPart(value, 'items[0].name')).toMatchObject({ value: 'a', missing: null })
  expect(selectPart(value, '$.items.1.name')).toMatchObject({ value: 'b' })
  expect(selectPart(value, 'items[*].state')).toMatchObject({ value: ['up'] })
  expect(selectPart(value, 'items[].name')).toMatchObject({ value: ['a', 'b'] })
  expect(selectPart(value, '["a.b/c"]')).toMatchObject({ value: { 1: 7 } })
  expect(selectPart(value, 'items[0].zone')).toEqual({
    value: null,
    missing: { at: '.items[0]', names: ['name', 'state'] },
  })
  expect(selectPart(value, 'constructor.name')?.missing).toMatchObject({ at: 'the answer' })
  expect(selectPart(value, '$')?.value).toBe(value)
  for (const wrong of ['items[', 'items[0]name', '..', 'a b', 'items[?(@.x)]'])
    expect(selectPart(value, wrong)).toBeNull()
})

test('a page is read below the address of the source, and an unlisted page never reaches it', async () => {
  expect((await add('pages')).status).toBe(200)
  give({ status: 'DOWN', checks: [{ name: 'db', state: 'refused' }] }, 503)
  const found = await read({ path: '/health' })
  expect(found.body).toMatchObject({
    isEmpty: false,
    about: [],
    summary: { path: '/health', status: 503, value: { status: 'DOWN', checks: [{ name: 'db', state: 'refused' }] } },
  })
  expect(asked).toEqual(['GET /base/health'])
  for (const path of ['/admin', '/files/../admin', '/files/%2e%2e/admin', '/health?x=1']) {
    const refused = await read({ path })
    expect([refused.status, refused.body.code]).toEqual([422, 'UNBOUNDED_QUERY'])
  }
  expect((await read({ path: '/admin' })).body.detail).toBe(
    '/admin is not among the paths of this source: /health, /api/v1/nodes/*?limit, /files/**',
  )
  expect(asked).toHaveLength(1)
  expect((await read({ path: '/health', select: 'checks[*].state' })).body.summary).toMatchObject({
    value: ['refused'],
  })
  expect((await read({ path: '/health', select: 'checks[*].zone' })).body).toMatchObject({
    isEmpty: true,
    summary: { notFound: { at: '.checks[*]', names: ['name', 'state'] } },
  })
  expect((await read({ path: '/health', select: 'checks[' })).body).toMatchObject({ code: 'REJECTED' })
})

test('a long answer is shown in at most 2 kB, with the size of the rest', async () => {
  give({ items: Array.from({ length: 5_000 }, (_, id) => ({ id, name: `node-${id}`, text: '\u0001é'.repeat(50) })) })
  const { body } = await read({ path: '/health' })
  const summary = body.summary as unknown as { value: { items: unknown[] } }
  expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
  expect(summary.value.items.at(-1)).toMatch(/^… 49\d\d more$/)
  giveText('ok one\nerror: disk full\nok two\n'.repeat(2_000), 'text/plain; charset=utf-8')
  const lines = await read({ path: '/health', select: 'error' })
  expect(lines.body.summary).toMatchObject({ lines: 6_000, matching: 2_000, notShown: expect.any(Number) })
  expect(Buffer.byteLength(JSON.stringify(lines.body.summary))).toBeLessThanOrEqual(2_000)
})

test('of a long line a run reads the part around the words that it searches for', async () => {
  const id = await claimedIncident(api.db)
  giveText(`${'a '.repeat(900)}disk full ${'b '.repeat(900)}`, 'text/plain')
  const body = { tool: 'http_read', arguments: { path: '/health' } }
  const key = await announced(api.db, id, body.tool, body.arguments, null, 'read')
  const { body: reading } = await api.post('/sources/read', { body, key, as: api.tokens.agent })
  const { body: found } = await api.get(`/incidents/${id}/bodies/${reading.digest}/lines?match=disk full`)
  expect((found.lines as unknown as string[])[0]).toMatch(/^…[a ]+disk full[b ]+… \(3610 characters\)$/)
})

test('a run names a whole answer by the first 12 characters of its digest, among its own answers', async () => {
  const [id, other] = [await claimedIncident(api.db), await claimedIncident(api.db)]
  giveText(`the pool is full\n${'a line\n'.repeat(900)}`, 'text/plain')
  const body = { tool: 'http_read', arguments: { path: '/health' } }
  const key = await announced(api.db, id, body.tool, body.arguments, null, 'read')
  const { body: reading } = await api.post('/sources/read', { body, key, as: api.tokens.agent })
  const start = String(reading.digest).slice(0, 12)
  const lines = (incident: string, digest: string) => api.get(`/incidents/${incident}/bodies/${digest}/lines?limit=1`)
  expect((await lines(id, start)).body.lines).toEqual(['the pool is full'])
  expect((await lines(other, start)).status).toBe(404)
  expect((await lines(id, start.slice(0, 11))).status).toBe(422)
})

const bad: [string, () => void, string][] = [
  ['another type', () => giveText(Buffer.from([0, 1, 2]), 'image/png'), 'BAD_ANSWER'],
  ['JSON that breaks off', () => giveText('{"a":', 'application/json'), 'BAD_ANSWER'],
  [
    'JSON nested a thousand deep',
    () => giveText('['.repeat(1_000) + ']'.repeat(1_000), 'application/json'),
    'BAD_ANSWER',
  ],
  ['ten megabytes', () => giveText('x'.repeat(10_000_000), 'text/plain'), 'TOO_LARGE'],
  [
    'a redirect',
    () => {
      answer = (_, response) => void response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
    },
    'REDIRECT',
  ],
  ['a gateway that finds no server', () => give({}, 502), 'BAD_ANSWER'],
  [
    'nothing in time',
    () => {
      answer = () => {}
    },
    'TIMEOUT',
  ],
]
test.each(bad)('a page that answers %s gives a reason and nothing else', async (_, given, code) => {
  await add('pages', { paths }, { timeoutSeconds: code === 'TIMEOUT' ? 1 : 60 })
  given()
  expect((await read({ path: '/health' })).body.code).toBe(code)
})

test('a source of pages takes its paths from a command line, and is asked the first that names one page', async () => {
  give({ ok: true })
  const made = await add('pages', { paths: '/nodes/*, /state?x, /health' })
  expect(made.body.options).toEqual({ paths: ['/nodes/*', '/state?x', '/health'] })
  expect((await api.post('/sources/pages/test')).body).toMatchObject({
    ok: true,
    detail: 'the server answers at /state; 3 paths may be read',
  })
  expect(asked.at(-1)).toBe('GET /base/state')
})

test.each([
  [{}, /must name the paths that may be read/],
  [{ paths: [] }, /must name the paths that may be read/],
  [{ paths: ['health'] }, /health: a path must begin with/],
  [{ paths: ['/a/../b'] }, /dot segments/],
  [{ paths: ['/**/x'] }, /\*\* must be a segment of its own, at the end/],
  [{ paths: ['/a*b*c*d'] }, /at most 2 \*/],
  [{ paths: ['/x?a=1'] }, /is not a name in a query string/],
  [{ paths: ['/x'], more: 1 }, /more/],
])('invalid paths are refused with their error: %j', async (options, reason) => {
  const refused = await add('wrong', options)
  expect(refused.status).toBe(422)
  expect(JSON.stringify(refused.body)).toMatch(reason)
})

test('an address with a query would add a path to it, and is refused', async () => {
  const refused = await add('wrong', { paths }, { url: `${url}/?page=` })
  expect([refused.status, refused.body.detail]).toEqual([422, expect.stringContaining('a query or a fragment')])
})
