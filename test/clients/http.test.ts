import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { closeConnections, type HttpError, type HttpRequest, request } from '../../clients/http.ts'
import { answerJson, type LocalServer, startLocalServer } from '../support/local-server.ts'

let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterEach(() => closeConnections())
afterAll(() => server.close())

const get = (url: string, more: Partial<HttpRequest> = {}) =>
  request({ method: 'GET', url, timeoutMs: 5_000, maxBytes: 1_000_000, allow: 'loopback', ...more })

async function fault(promise: Promise<unknown>): Promise<HttpError> {
  try {
    await promise
  } catch (error) {
    return error as HttpError
  }
  throw new Error('it answered')
}

test('an answer is returned whole, whatever its status', async () => {
  server.play(answerJson(418, { a: 1 }, { 'X-Name': 'v' }))
  const answer = await get(`${server.url}/tea?x=1`)
  expect(answer.status).toBe(418)
  expect(answer.headers['x-name']).toBe('v')
  expect(JSON.parse(Buffer.from(answer.body).toString())).toEqual({ a: 1 })
  expect(server.seen.at(-1)).toMatchObject({ method: 'GET', path: '/tea?x=1' })
})

test('a redirect is an answer and is not followed', async () => {
  server.play((response) => response.writeHead(302, { location: `${server.url}/elsewhere` }).end())
  const before = server.seen.length
  expect((await get(server.url)).status).toBe(302)
  expect(server.seen.length).toBe(before + 1)
})

test('a too large answer is cut off and the error names the limit', async () => {
  server.play((response) => {
    // Endless: only the limit ends it.
    const timer = setInterval(() => response.write(Buffer.alloc(64_000)), 1)
    response.on('close', () => clearInterval(timer))
  })
  const error = await fault(get(server.url, { maxBytes: 500_000 }))
  expect(error).toMatchObject({ code: 'too_large', retryable: false })
  expect(error.message).toContain('500000 bytes')
})

test.each([
  ['a server that never answers', (_: unknown) => {}],
  ['a server that stops in the middle', (response: { write(text: string): void }) => response.write('{"a":')],
])('%s exceeds the total time limit', async (_name, play) => {
  server.play(play as never)
  const error = await fault(get(server.url, { timeoutMs: 150 }))
  expect(error).toMatchObject({ code: 'timeout', retryable: true })
})

test('a slow drip of bytes does not extend the time limit', async () => {
  server.play((response) => {
    const timer = setInterval(() => response.write('x'), 20)
    response.on('close', () => clearInterval(timer))
  })
  expect(await fault(get(server.url, { timeoutMs: 300 }))).toMatchObject({ code: 'timeout' })
})

test('an answer that is cut in the middle is a retryable error, never a shorter answer', async () => {
  server.play((response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"a":1}')
    setTimeout(() => response.destroy(), 20)
  })
  expect(await fault(get(server.url))).toMatchObject({ code: 'protocol', retryable: true })
})

test('a caller can cancel before and during a request', async () => {
  expect(await fault(get(server.url, { signal: AbortSignal.abort() }))).toMatchObject({ code: 'aborted' })
  server.play(() => {})
  const error = await fault(get(server.url, { signal: AbortSignal.timeout(50) }))
  expect(error).toMatchObject({ code: 'aborted', retryable: false })
})

test('a dead port and an unknown name are retryable errors', async () => {
  const dead = await startLocalServer()
  await dead.close()
  expect(await fault(get(dead.url))).toMatchObject({ code: 'connect', retryable: true })
  expect((await fault(get('http://no-such-host.invalid/', { allow: 'private' }))).retryable).toBe(true)
})

test('a server that does not speak HTTP is a protocol error', async () => {
  const raw = createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n'))
  await new Promise<void>((done) => raw.listen(0, '127.0.0.1', done))
  const { port } = raw.address() as { port: number }
  expect(await fault(get(`http://127.0.0.1:${port}`))).toMatchObject({ code: 'protocol', retryable: true })
  raw.close()
})

test.each([
  'http://169.254.169.254/latest/meta-data/',
  'http://[::ffff:169.254.169.254]/',
  'http://[fd00:ec2::254]/',
  'http://2852039166/', // 169.254.169.254 as one number
  'http://0xa9.0xfe.0xa9.0xfe/',
  'http://0.0.0.0/',
])('%s is refused before anything is sent', async (url) => {
  expect(await fault(get(url, { allow: 'private' }))).toMatchObject({ code: 'refused_address', retryable: false })
})

test('a name is judged by its address, and a forbidden address is refused', async () => {
  server.play(answerJson(200, {}))
  expect((await get(`http://localhost:${server.port}`, { allow: 'loopback' })).status).toBe(200)
  expect(await fault(get('http://10.1.2.3/', { allow: 'loopback' }))).toMatchObject({ code: 'refused_address' })
})

test.each(['file:///etc/passwd', 'ftp://example.com/', 'nonsense', ''])('%s is not a valid address', async (url) => {
  expect(await fault(get(url))).toMatchObject({ code: 'protocol', retryable: false })
})

test('a header that would start another request is refused', async () => {
  const error = await fault(get(server.url, { headers: { 'x-a': 'b\r\nx-c: d' } }))
  expect(error).toMatchObject({ code: 'protocol', retryable: false })
})

test('no error contains the path, which may hold the secret of a webhook', async () => {
  server.play(() => {})
  for (const url of [
    `${server.url}/services/SECRET?k=SECRET`,
    'http://127.0.0.1:1/SECRET',
    'http://169.254.169.254/SECRET',
  ]) {
    expect((await fault(get(url, { timeoutMs: 50 }))).message).not.toContain('SECRET')
  }
})

test('connections are kept and reused until they are closed', async () => {
  const ports = new Set<number>()
  server.play((response, _seen, incoming) => {
    ports.add(incoming.socket.remotePort!)
    response.end('ok')
  })
  for (let i = 0; i < 8; i++) await get(server.url)
  expect(ports.size).toBeLessThan(4)
  const before = new Set(ports)
  await closeConnections()
  ports.clear()
  await get(server.url)
  expect(before.has([...ports][0]!)).toBe(false)
})
