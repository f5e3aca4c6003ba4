import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createCoreClient } from '../../clients/core.ts'
import { closeConnections, HttpError } from '../../clients/http.ts'
import { createPlatformClient, PlatformError } from '../../clients/platform.ts'
import { answerJson, type LocalServer, startLocalServer } from '../support/local-server.ts'

const apiKey = 'nk_0123456789abcdef'
let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterAll(async () => {
  await closeConnections()
  await server.close()
})

test('a read sends the key and returns the data', async () => {
  server.play(answerJson(200, { id: 'db-osl-1' }))
  const core = createCoreClient({ baseUrl: `${server.url}/`, apiKey })
  expect(await core.get('/api/v1/shards/db-osl-1')).toEqual({ ok: true, status: 200, data: { id: 'db-osl-1' } })
  expect(server.seen.at(-1)).toMatchObject({
    path: '/api/v1/shards/db-osl-1',
    headers: { authorization: `Bearer ${apiKey}` },
  })
})

test('a write sends its idempotency key and the state it was judged against', async () => {
  server.play(answerJson(202, { key: 'k' }))
  const core = createCoreClient({ baseUrl: server.url, apiKey })
  await core.post('/api/v1/shards/a/converge', { reason: 'x' }, { idempotencyKey: 'inc.1:2', ifMatch: 'abc' })
  expect(server.seen.at(-1)).toMatchObject({
    method: 'POST',
    body: '{"reason":"x"}',
    headers: { 'idempotency-key': 'inc.1:2', 'if-match': 'abc', 'content-type': 'application/json' },
  })
})

test('a problem is an answer with its code, and never contains the key', async () => {
  server.play(answerJson(403, { title: 'Unjudged', detail: `token ${apiKey} wrote`, code: 'UNJUDGED' }))
  const core = createCoreClient({ baseUrl: server.url, apiKey })
  expect(await core.get('/api/v1/x')).toMatchObject({
    ok: false,
    status: 403,
    problem: { title: 'Unjudged', detail: 'token [credential] wrote', code: 'UNJUDGED' },
  })
})

test.each([502, 503, 504])('an error page of a proxy, %d, means that the API did not answer', async (status) => {
  server.play((response) => response.writeHead(status).end('<h1>Bad gateway</h1>'))
  const core = createCoreClient({ baseUrl: server.url, apiKey })
  await expect(core.get('/api/v1/x')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
})

test('a core API without its database is away, and its report about a platform is an answer', async () => {
  const core = createCoreClient({ baseUrl: server.url, apiKey })
  const problem = (code: string) => answerJson(503, { title: 'Not available now', detail: 'no', code })
  server.play(problem('DATABASE_UNAVAILABLE'))
  await expect(core.get('/api/v1/x')).rejects.toMatchObject({ code: 'unavailable' })
  server.play(problem('PLATFORM_UNREACHABLE'))
  expect(await core.get('/api/v1/x')).toMatchObject({ ok: false, status: 503 })
})

test.each(['/api/v1/shards/../approvals', '/api/v1/shards/%2e%2e/x', '/api/v1/a#b', 'api', '/api/v1/a b', '\\\\evil/'])(
  'the path %s is refused without a request',
  async (path) => {
    const before = server.seen.length
    const core = createCoreClient({ baseUrl: server.url, apiKey })
    expect(await core.get(path)).toMatchObject({ ok: false, status: 400, problem: { code: 'BAD_PATH' } })
    expect(server.seen.length).toBe(before)
  },
)

test('text with a slash can be searched for', async () => {
  server.play(answerJson(200, []))
  const core = createCoreClient({ baseUrl: server.url, apiKey })
  expect((await core.get(`/api/v1/resources?q=${encodeURIComponent('a/b ü')}`)).ok).toBe(true)
})

test('a dead core API is a retryable error without a key', async () => {
  const core = createCoreClient({ baseUrl: 'http://127.0.0.1:1', apiKey })
  const error = await core.get('/api/v1/x').catch((caught) => caught)
  expect(error).toBeInstanceOf(HttpError)
  expect(error).toMatchObject({ code: 'connect', retryable: true })
  expect(`${error.message} ${error.stack}`).not.toContain(apiKey)
})

test('the platform starts a machine once under its key, and reports the outcome', async () => {
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

test('a refusal and an invalid answer of the platform are different errors', async () => {
  const platform = createPlatformClient({ baseUrl: server.url, token: 't' })
  server.play(answerJson(422, { detail: 'another body under this key' }))
  const no = await platform.converge('s', 'k').catch((caught) => caught)
  expect(no).toBeInstanceOf(PlatformError)
  expect(no).toMatchObject({ status: 422, retryable: false, detail: 'another body under this key' })
  server.play(answerJson(200, { shards: 'many' }))
  expect(await platform.inventory().catch((caught) => caught)).toMatchObject({ code: 'protocol', retryable: true })
})

test('a platform stops and restarts a VM under its key, and a platform that cannot is a failure with this reason', async () => {
  const platform = createPlatformClient({ baseUrl: server.url, token: 't' })
  const effect = { key: 'k', status: 'done', detail: 'stopped', result: {} }
  server.play(answerJson(200, effect))
  expect(await platform.powerVm('vm-1', 'stop', 'host-2', 'k')).toEqual(effect)
  expect(server.seen.at(-1)).toMatchObject({
    path: '/v1/vms/vm-1/stop',
    body: '{"host":"host-2"}',
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
