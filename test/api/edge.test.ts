import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type ServerType, serve } from '@hono/node-server'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { useApi } from '../support/api.ts'
import { openedIncident } from '../support/database.ts'

const api = useApi(() => ({ webDir: aBuiltPage() }))
let server: ServerType
let port: number

beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server = serve({ fetch: api.api.app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve())
  })
  port = (server.address() as AddressInfo).port
})
afterAll(() => void server.close())

function aBuiltPage(): string {
  const dir = mkdtempSync(join(tmpdir(), 'nightshift-pages-'))
  mkdirSync(join(dir, 'assets'))
  writeFileSync(join(dir, 'index.html'), '<!doctype html>')
  writeFileSync(join(dir, 'assets', 'page-1.js'), '0')
  return dir
}

type Sent = { headers?: Record<string, string>; body?: string | Buffer; as?: string | null }
type Heard = { status: number; headers: IncomingHttpHeaders; problem: Record<string, unknown> }

/** Over a socket, with the path exactly as it is written: `fetch` would tidy it up. */
async function send(method: string, path: string, { headers = {}, body, as }: Sent = {}): Promise<Heard> {
  const token = as === undefined ? api.tokens.admin : as
  return await new Promise((resolve, reject) => {
    const asking = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers },
      },
      (answer) => {
        const type = answer.headers['content-type'] ?? ''
        const heard = { status: answer.statusCode ?? 0, headers: answer.headers }
        if (type.startsWith('text/event-stream')) {
          resolve({ ...heard, problem: {} })
          asking.destroy()
          return
        }
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ ...heard, problem: /problem\+json/.test(type) && text ? JSON.parse(text) : {} })
        })
      },
    )
    asking.on('error', reject)
    asking.end(body)
  })
}

async function raw(text: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.end(Buffer.from(text, 'latin1'))
  await new Promise((resolve) => socket.on('close', resolve).on('error', resolve))
  return Number(/^HTTP\/1\.1 (\d+)/.exec(Buffer.concat(chunks).toString())?.[1])
}

const json = { 'content-type': 'application/json' }
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

test('an existing path answers 405 to every other method and lists the methods that it has', async () => {
  const declared = new Map<string, Set<string>>()
  for (const { method, path } of api.api.app.routes) {
    if (method === 'ALL') continue
    const own = declared.get(path) ?? new Set()
    declared.set(path, own.add(method))
    if (method === 'GET') own.add('HEAD')
  }
  const names = [
    '/livez',
    '/metrics',
    '/docs',
    '/auth/session',
    '/mesh/manifests',
    '/slack/interactions',
    '/incidents/:id',
  ]
  expect([...declared.keys()]).toEqual(
    expect.arrayContaining([...names, '/api/v1/ingest/:dialect', '/assets/page-1.js']),
  )
  for (const [path, own] of declared) {
    for (const method of methods.filter((each) => !own.has(each))) {
      const answer = await send(method, path.replace(/:\w+/g, 'none'))
      const said = [method, path, answer.status, answer.headers.allow]
      expect(said).toEqual([method, path, 405, [...own].sort().join(', ')])
      if (method !== 'HEAD') expect(answer.problem).toMatchObject({ code: 'METHOD_NOT_ALLOWED', status: 405 })
    }
  }
})

test('without a token, no answer reveals the methods of a path', async () => {
  const answer = await send('DELETE', '/api/v1/incidents', { as: null })
  expect([answer.status, answer.headers.allow]).toEqual([401, undefined])
})

test('NUL in a path or query, and an address with invalid percent-encoding, are refused on every route', async () => {
  const document = (await (await api.api.app.request('/openapi.json')).json()) as { paths: Record<string, object> }
  const paths = Object.entries(document.paths).flatMap(([path, each]) =>
    Object.keys(each).map((method) => [method, path]),
  )
  for (const [method = '', path = ''] of [...paths, ['get', '/incidents/{id}'], ['get', '/approvals/{id}/plain']]) {
    for (const [bad, code] of [
      ['a%00b', 'NUL_CHARACTER'],
      ['%E0%A4', 'BAD_ENCODING'],
      ['%zz', 'BAD_ENCODING'],
    ]) {
      const inQuery = await send(method.toUpperCase(), `${path.replace(/\{\w+\}/g, 'none')}?q=${bad}`)
      expect([method, path, inQuery.status, inQuery.problem.code]).toEqual([method, path, 400, code])
      if (!path.includes('{')) continue
      const inPath = await send(method.toUpperCase(), path.replace(/\{\w+\}/g, bad as string))
      expect([method, path, inPath.status, inPath.problem.code]).toEqual([method, path, 400, code])
    }
  }
})

test('a body with NUL, half a surrogate pair, too much depth or too large a number is refused with the name of the field', async () => {
  const id = await openedIncident(api.db)
  const path = `/api/v1/incidents/${id}/escalate`
  const deep = `{"reason":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const bodies: [string, string | null][] = [
    ['{"reason":"the disk \\u0000 is full"}', 'reason'],
    ['{"reason":"the disk \\ud800 is full"}', 'reason'],
    ['{"reason":{"in":["a",{"depth":"\\u0000"}]}}', 'reason.in.1.depth'],
    ['{"rea\\u0000son":"the disk is full"}', null],
    ['{"reason":1e999}', 'reason'],
    [deep, 'reason.0.0.0.0.0.0.0'],
  ]
  for (const [body, field] of bodies) {
    const { status, problem } = await send('POST', path, { headers: json, body })
    expect([body.slice(0, 60), status, problem.code]).toEqual([body.slice(0, 60), 422, 'INVALID'])
    expect(problem.errors).toEqual([{ in: 'body', field, message: expect.any(String) }])
  }
  const latin = await send('POST', path, { headers: json, body: Buffer.from('{"reason":"gr\xf8nn disk"}', 'latin1') })
  expect([latin.status, latin.problem.detail]).toEqual([400, expect.stringContaining('byte 14 is not UTF-8')])
  for (const door of ['/auth/session', '/mesh/enrolments', '/mesh/manifests', '/api/v1/placement/proposals']) {
    const { status } = await send('POST', door, { headers: json, body: '{"token":"a\\u0000","intent":"\\ud800"}' })
    expect([door, status]).toEqual([door, 422])
  }
})

test('an alert with NUL in a label is accepted without the NUL, because the alert is worth more than the label', async () => {
  const body = JSON.stringify({ summary: 'disk \0 full', labels: { 'na\0me': 'x\0y\ud800' }, dedup: 'nul-1\0' })
  const answer = await send('POST', '/api/v1/ingest/generic', { headers: json, body })
  expect(answer.status).toBe(202)
})

test('a body of another type, another character set or with compression is refused with 415 by every operation that takes a body', async () => {
  const doors = [
    ['POST', '/api/v1/agent'],
    ['PUT', '/api/v1/config/agent.max_turns'],
    ['POST', '/api/v1/ingest/alertmanager'],
    ['POST', '/auth/session'],
  ] as const
  for (const [method, path] of doors) {
    const refused = async (headers: Record<string, string>, body: string | Buffer = '{}') => {
      const { status, problem, headers: heard } = await send(method, path, { headers, body })
      return [path, status, problem.code, heard['accept-encoding']]
    }
    const type = [path, 415, 'UNSUPPORTED_MEDIA_TYPE', undefined]
    expect(await refused({ 'content-type': 'application/json; charset=latin1' })).toEqual(type)
    expect(await refused({ 'content-type': 'application/json; charset="utf-16"' })).toEqual(type)
    expect(await refused({ 'content-type': 'text/plain' })).toEqual(type)
    expect(await refused({})).toEqual(type)
    const coding = [path, 415, 'UNSUPPORTED_CONTENT_ENCODING', 'identity']
    for (const name of ['gzip', 'br', 'x-unheard-of']) {
      expect(await refused({ ...json, 'content-encoding': name }, gzipSync('{}'))).toEqual(coding)
    }
    const { status } = await send(method, path, {
      headers: { 'content-type': 'Application/JSON; charset="UTF-8"', 'content-encoding': 'identity' },
      body: '{}',
    })
    expect([path, status]).not.toEqual([path, 415])
  }
})

test('numbers, times, cursors and headers out of range are refused, and none of them gets 500', async () => {
  const huge = '9007199254740991'
  const paths = [
    `/api/v1/config/agent.max_turns/revisions?cursor=${huge}`,
    '/api/v1/audit?since=9999-12-31T23:59:59-23:59',
    '/api/v1/audit?cursor=2026-99-99T99:99:99.000000Z~1~1',
    '/api/v1/incidents?limit=1e9',
    `/api/v1/incidents?limit=${huge}0`,
    '/api/v1/usage?days=NaN',
    '/api/v1/incidents?status=open&status=resolved',
    `/api/v1/stream?incident=${'x'.repeat(101)}`,
  ]
  for (const path of paths) {
    const { status, problem } = await send('GET', path)
    expect([path, status, problem.code]).toEqual([path, 422, expect.any(String)])
  }
  const bad: [string, string, Record<string, string>][] = [
    ['PUT', '/api/v1/config/agent.max_turns', { 'if-match': '"9999999999"' }],
    ['PUT', '/api/v1/config/agent.max_turns', { 'if-match': '"one"' }],
    ['GET', '/api/v1/stream', { 'last-event-id': '18446744073709551616-1' }],
    ['GET', '/api/v1/stream', { 'last-event-id': 'x' }],
    ['POST', '/api/v1/agent', { 'idempotency-key': 'k'.repeat(256) }],
    ['POST', '/api/v1/agent', { 'idempotency-key': 'a b' }],
  ]
  for (const [method, path, headers] of bad) {
    const body = { PUT: '{"value":"12"}', POST: '{"question":"why is it slow?"}' }[method]
    const { status } = await send(method, path, { headers: { ...json, ...headers }, body })
    expect([headers, status]).toEqual([headers, 422])
  }
})

test('malformed HTTP is refused and never gets 500', async () => {
  const end = 'Connection: close\r\n\r\n'
  const sent: [string, number][] = [
    [`GET //livez HTTP/1.1\r\nHost: x\r\n${end}`, 404],
    [`GET /api//v1/incidents HTTP/1.1\r\nHost: x\r\n${end}`, 401],
    [`GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n${end}`, 404],
    [`GET /livez HTTP/1.1\r\nHost: a b\r\n${end}`, 400],
    [`GET /livez HTTP/1.1\r\nHost: x/../y\r\n${end}`, 400],
    [`GET /livez HTTP/1.1\r\n${end}`, 400],
    [`GET /livez HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(100_000)}\r\n${end}`, 431],
    [`GET /livez HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n${end}`, 400],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n${end}`, 431],
    [`OPTIONS * HTTP/1.1\r\nHost: x\r\n${end}`, 400],
    [`GET http://elsewhere/livez HTTP/1.1\r\nHost: x\r\n${end}`, 200],
    [`POST /api/v1/agent HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n${end}`, 400],
    [`BREW /livez HTTP/1.1\r\nHost: x\r\n${end}`, 400],
  ]
  for (const [text, status] of sent) {
    const shown = text.slice(0, 60)
    const answer = await raw(text)
    expect([shown, answer]).toEqual([shown, status])
  }
})

test('HEAD of the event stream answers at once and keeps no listener', async () => {
  for (let asked = 0; asked < 510; asked += 1) expect((await send('HEAD', '/api/v1/stream')).status).toBe(200)
  const headers = { authorization: `Bearer ${api.tokens.viewer}` }
  const listening = await api.api.app.request('/api/v1/stream', { headers })
  expect(listening.status).toBe(200)
  await listening.body?.cancel()
})
