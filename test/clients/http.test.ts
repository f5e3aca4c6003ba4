import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { allows, kindOfAddress } from '../../clients/address.ts'
import { createCoreClient } from '../../clients/core.ts'
import { closeConnections, HttpError, type HttpRequest, request } from '../../clients/http.ts'
import { createPlatformClient, PlatformError } from '../../clients/platform.ts'
import { answerJson, type LocalServer, startLocalServer } from '../support/local-server.ts'

describe('http', () => {
  describe('address', () => {
    test.each([
      ['127.0.0.1', 'loopback'],
      ['127.8.9.10', 'loopback'],
      ['::1', 'loopback'],
      ['[::1]', 'loopback'],
      ['::ffff:127.0.0.1', 'loopback'],
      ['10.0.0.1', 'private'],
      ['192.168.1.1', 'private'],
      ['172.31.255.255', 'private'],
      ['100.64.0.1', 'private'],
      ['fd12::1', 'private'],
      ['::ffff:10.0.0.1', 'private'],
      ['93.184.216.34', 'public'],
      ['2606:4700::1111', 'public'],
      ['64:ff9b::5db8:d822', 'public'],
      ['0.0.0.0', 'denied'], // reaches loopback services on Linux
      ['0.1.2.3', 'denied'],
      ['::', 'denied'],
      ['169.254.169.254', 'denied'],
      ['169.254.0.1', 'denied'],
      ['fe80::1', 'denied'],
      ['fe80::1%eth0', 'denied'],
      ['fd00:ec2::254', 'denied'],
      ['fd20:ce::254', 'denied'],
      ['100.100.100.200', 'denied'],
      ['168.63.129.16', 'denied'],
      ['192.0.0.192', 'denied'],
      ['224.0.0.1', 'denied'],
      ['255.255.255.255', 'denied'],
      ['ff02::1', 'denied'],
      ['::ffff:169.254.169.254', 'denied'],
      ['::ffff:a9fe:a9fe', 'denied'],
      ['0:0:0:0:0:ffff:a9fe:a9fe', 'denied'],
      ['::ffff:0.0.0.0', 'denied'],
      ['::169.254.169.254', 'denied'],
      ['::127.0.0.1', 'denied'],
      ['::ffff:0:169.254.169.254', 'denied'],
      ['64:ff9b::a9fe:a9fe', 'denied'],
      ['64:ff9b::7f00:1', 'denied'],
      ['64:ff9b:1::a9fe:a9fe', 'denied'],
      ['2002:a9fe:a9fe::1', 'denied'],
      ['2002:7f00:1::', 'denied'],
      ['2001:0:53aa::1', 'denied'],
      ['2606:4700::5efe:a9fe:a9fe', 'denied'],
      ['metadata.google.internal', 'denied'], // a name is no address
      ['', 'denied'],
    ])('%s is %s', (address, kind) => expect(kindOfAddress(address)).toBe(kind))

    test('only "any" reaches link-local addresses, and "loopback" reaches nothing else', () => {
      expect(allows('private', '169.254.169.254')).toBe(false)
      expect(allows('any', '169.254.169.254')).toBe(true)
      expect(allows('loopback', '10.0.0.1')).toBe(false)
      expect(allows('loopback', '::ffff:127.0.0.1')).toBe(true)
      expect(allows('private', '10.0.0.1')).toBe(true)
      expect(allows('any', 'example.com')).toBe(false)
    })

    test('no address makes the guard throw, and a mapped one is judged like the one inside', () => {
      fc.assert(fc.property(fc.ipV6(), (address) => typeof kindOfAddress(address) === 'string'))
      fc.assert(fc.property(fc.ipV4(), (address) => kindOfAddress(`::ffff:${address}`) === kindOfAddress(address)))
    })
  })

  describe('http', () => {
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

    test('an answer comes whole, whatever its status', async () => {
      server.play(answerJson(418, { a: 1 }, { 'X-Name': 'v' }))
      const answer = await get(`${server.url}/tea?x=1`)
      expect(answer.status).toBe(418)
      expect(answer.headers['x-name']).toBe('v')
      expect(JSON.parse(Buffer.from(answer.body).toString())).toEqual({ a: 1 })
      expect(server.seen.at(-1)).toMatchObject({ method: 'GET', path: '/tea?x=1' })
    })

    test('a redirect is an answer and nobody follows it', async () => {
      server.play((response) => response.writeHead(302, { location: `${server.url}/elsewhere` }).end())
      const before = server.seen.length
      expect((await get(server.url)).status).toBe(302)
      expect(server.seen.length).toBe(before + 1)
    })

    test('an answer that is too large is cut off and the error names the limit', async () => {
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
    ])('%s runs into the total timeout', async (_name, play) => {
      server.play(play as never)
      const error = await fault(get(server.url, { timeoutMs: 150 }))
      expect(error).toMatchObject({ code: 'timeout', retryable: true })
    })

    test('a slow drip of bytes does not stretch the timeout', async () => {
      server.play((response) => {
        const timer = setInterval(() => response.write('x'), 20)
        response.on('close', () => clearInterval(timer))
      })
      expect(await fault(get(server.url, { timeoutMs: 300 }))).toMatchObject({ code: 'timeout' })
    })

    test('an answer cut in the middle is a fault that may be retried, never a shorter answer', async () => {
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

    test('a dead port and an unknown name are faults that may be retried', async () => {
      const dead = await startLocalServer()
      await dead.close()
      expect(await fault(get(dead.url))).toMatchObject({ code: 'connect', retryable: true })
      expect((await fault(get('http://no-such-host.invalid/', { allow: 'private' }))).retryable).toBe(true)
    })

    test('a server that does not speak HTTP is a protocol fault', async () => {
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

    test('a name that resolves outside the policy is refused by its address', async () => {
      server.play(answerJson(200, {}))
      expect((await get(`http://localhost:${server.port}`, { allow: 'loopback' })).status).toBe(200)
      expect(await fault(get('http://10.1.2.3/', { allow: 'loopback' }))).toMatchObject({ code: 'refused_address' })
    })

    test.each(['file:///etc/passwd', 'ftp://example.com/', 'nonsense', ''])('%s is no address to ask', async (url) => {
      expect(await fault(get(url))).toMatchObject({ code: 'protocol', retryable: false })
    })

    test('a header that would start another request is refused', async () => {
      const error = await fault(get(server.url, { headers: { 'x-a': 'b\r\nx-c: d' } }))
      expect(error).toMatchObject({ code: 'protocol', retryable: false })
    })

    test('no error tells the path, which may hold the secret of a webhook', async () => {
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
  })
})

describe('core', () => {
  const apiKey = 'nk_0123456789abcdef'
  let server: LocalServer
  beforeAll(async () => {
    server = await startLocalServer()
  })
  afterAll(async () => {
    await closeConnections()
    await server.close()
  })

  test('a read carries the key and gives the data', async () => {
    server.play(answerJson(200, { id: 'db-osl-1' }))
    const core = createCoreClient({ baseUrl: `${server.url}/`, apiKey })
    expect(await core.get('/api/v1/shards/db-osl-1')).toEqual({ ok: true, status: 200, data: { id: 'db-osl-1' } })
    expect(server.seen.at(-1)).toMatchObject({
      path: '/api/v1/shards/db-osl-1',
      headers: { authorization: `Bearer ${apiKey}` },
    })
  })

  test('a write carries its idempotency key and the state it was judged against', async () => {
    server.play(answerJson(202, { key: 'k' }))
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    await core.post('/api/v1/shards/a/converge', { reason: 'x' }, { idempotencyKey: 'inc.1:2', ifMatch: 'abc' })
    expect(server.seen.at(-1)).toMatchObject({
      method: 'POST',
      body: '{"reason":"x"}',
      headers: { 'idempotency-key': 'inc.1:2', 'if-match': 'abc', 'content-type': 'application/json' },
    })
  })

  test('a problem is an answer with its code, and never shows the key', async () => {
    server.play(answerJson(403, { title: 'Unjudged', detail: `token ${apiKey} wrote`, code: 'UNJUDGED' }))
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    expect(await core.get('/api/v1/x')).toMatchObject({
      ok: false,
      status: 403,
      problem: { title: 'Unjudged', detail: 'token [redacted] wrote', code: 'UNJUDGED' },
    })
  })

  test.each([502, 503, 504])('an error page of a proxy, %d, says that nobody answered', async (status) => {
    server.play((response) => response.writeHead(status).end('<h1>Bad gateway</h1>'))
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    await expect(core.get('/api/v1/x')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
  })

  test('a core API without its database is away, and what it says of a platform is an answer', async () => {
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    const problem = (code: string) => answerJson(503, { title: 'Not available now', detail: 'no', code })
    server.play(problem('DATABASE_UNAVAILABLE'))
    await expect(core.get('/api/v1/x')).rejects.toMatchObject({ code: 'unavailable' })
    server.play(problem('PLATFORM_UNREACHABLE'))
    expect(await core.get('/api/v1/x')).toMatchObject({ ok: false, status: 503 })
  })

  test.each([
    '/api/v1/shards/../approvals',
    '/api/v1/shards/%2e%2e/x',
    '/api/v1/a#b',
    'api',
    '/api/v1/a b',
    '\\\\evil/',
  ])('the path %s leads nowhere', async (path) => {
    const before = server.seen.length
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    expect(await core.get(path)).toMatchObject({ ok: false, status: 400, problem: { code: 'BAD_PATH' } })
    expect(server.seen.length).toBe(before)
  })

  test('text with a slash may be searched for', async () => {
    server.play(answerJson(200, []))
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    expect((await core.get(`/api/v1/resources?q=${encodeURIComponent('a/b ü')}`)).ok).toBe(true)
  })

  test('a dead core API is a fault that may be retried and tells no key', async () => {
    const core = createCoreClient({ baseUrl: 'http://127.0.0.1:1', apiKey })
    const error = await core.get('/api/v1/x').catch((caught) => caught)
    expect(error).toBeInstanceOf(HttpError)
    expect(error).toMatchObject({ code: 'connect', retryable: true })
    expect(`${error.message} ${error.stack}`).not.toContain(apiKey)
  })

  test('the platform starts a machine once under its key, and tells what became of it', async () => {
    const platform = createPlatformClient({ baseUrl: server.url, token: 't' })
    const effect = { key: 'k/1', status: 'done', detail: 'started', result: {} }
    server.play(answerJson(200, effect))
    expect(await platform.startVm('vm-1', 'host-2', 'k/1')).toEqual(effect)
    expect(server.seen.at(-1)).toMatchObject({
      path: '/v1/vms/vm-1/start',
      body: '{"host":"host-2"}',
      headers: { 'idempotency-key': 'k/1' },
    })
    expect(await platform.effect('k/1')).toEqual(effect)
    expect(server.seen.at(-1)!.path).toBe('/v1/effects/k%2F1')
    server.play(answerJson(404, { title: 'no' }))
    expect(await platform.effect('k/2')).toBeNull()
  })

  test('a platform that says no, or nonsense, is told apart', async () => {
    const platform = createPlatformClient({ baseUrl: server.url, token: 't' })
    server.play(answerJson(422, { detail: 'another body under this key' }))
    const no = await platform.converge('s', 'k').catch((caught) => caught)
    expect(no).toBeInstanceOf(PlatformError)
    expect(no).toMatchObject({ status: 422, retryable: false, detail: 'another body under this key' })
    server.play(answerJson(200, { shards: 'many' }))
    expect(await platform.inventory().catch((caught) => caught)).toMatchObject({ code: 'protocol', retryable: true })
  })

  test('a platform stops and restarts a VM under its key, and one that cannot is a failure that says so', async () => {
    const platform = createPlatformClient({ baseUrl: server.url, token: 't' })
    const effect = { key: 'k', status: 'done', detail: 'stopped', result: {} }
    server.play(answerJson(200, effect))
    expect(await platform.powerVm('vm-1', 'stop', 'host-2', 'k')).toEqual(effect)
    expect(server.seen.at(-1)).toMatchObject({
      ...{ path: '/v1/vms/vm-1/stop', body: '{"host":"host-2"}' },
      headers: { 'idempotency-key': 'k' },
    })
    for (const status of [404, 405, 501]) {
      server.play(answerJson(status, { detail: 'no such thing' }))
      expect(await platform.powerVm('vm-1', 'restart', 'host-2', 'k')).toMatchObject({
        status: 'failed',
        detail: `this platform cannot restart a VM: it answered ${status} to POST /v1/vms/vm-1/restart (no such thing)`,
      })
    }
  })
})
