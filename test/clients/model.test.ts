import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { ModelError } from '../../clients/chat/answer.ts'
import { closeConnections } from '../../clients/http.ts'
import { baseUrlOf, createModelClient, type ModelRequest } from '../../clients/model.ts'
import { answerJson, type LocalServer, startLocalServer } from '../support/local-server.ts'

let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterAll(async () => {
  await closeConnections()
  await server.close()
})

const asked: ModelRequest = {
  model: 'm',
  messages: [{ role: 'user', content: 'why is db-osl-1 slow?' }],
  temperature: 0.1,
  maxTokens: 100,
}

const apiKey = 'sk-very-secret'
const ask = (more: Partial<ModelRequest> = {}, options: { apiKey?: string; timeoutMs?: number } = {}) =>
  createModelClient({ baseUrl: server.url, apiKey, ...options }).complete({ ...asked, ...more })

async function fault(promise: Promise<unknown>): Promise<ModelError> {
  try {
    await promise
  } catch (error) {
    return error as ModelError
  }
  throw new Error('it answered')
}

const chat = (message: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  model: 'qwen',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }],
  usage: { prompt_tokens: 11, completion_tokens: 7 },
  ...more,
})

test('an answer with text and calls is read whole', async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'get_shard', arguments: '{"id":"db-osl-1"}' } }
  server.play(answerJson(200, chat({ content: 'let me look', tool_calls: [call] })))
  const answer = await ask({ idempotencyKey: 'inc.1:1:think' })
  expect(answer).toMatchObject({
    content: 'let me look',
    toolCalls: [{ id: 'c1', name: 'get_shard', arguments: '{"id":"db-osl-1"}' }],
    finishReason: 'stop',
    usage: { promptTokens: 11, completionTokens: 7 },
    model: 'qwen',
  })
  const seen = server.seen.at(-1)!
  expect(seen).toMatchObject({
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${apiKey}`, 'idempotency-key': 'inc.1:1:think' },
  })
  expect(JSON.parse(seen.body)).toEqual({
    model: 'm',
    messages: [{ role: 'user', content: 'why is db-osl-1 slow?' }],
    temperature: 0.1,
    max_tokens: 100,
    stream: true,
    stream_options: { include_usage: true },
  })
})

test('a conversation with calls and results is sent in the standard form', async () => {
  server.play(answerJson(200, chat({ content: 'ok' })))
  await ask({
    messages: [
      { role: 'system', content: 's' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_shard', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '{"ok":true}' },
    ],
    tools: [{ type: 'function', function: { name: 'get_shard', description: 'd', parameters: { type: 'object' } } }],
  })
  expect(JSON.parse(server.seen.at(-1)!.body)).toMatchObject({
    messages: [
      { role: 'system', content: 's' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_shard', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '{"ok":true}' },
    ],
    tools: [{ type: 'function', function: { name: 'get_shard' } }],
  })
})

test('servers that deviate from the format are understood', async () => {
  server.play(
    answerJson(200, {
      choices: [{ message: { content: null, tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] } }],
    }),
  )
  expect(await ask()).toMatchObject({
    content: '',
    toolCalls: [{ id: 'call_0', name: 'f', arguments: '{"a":1}' }],
    usage: { promptTokens: 8, completionTokens: 1, isAssumed: true },
    model: 'unknown',
  })
})

test('without a key no credential is sent', async () => {
  server.play(answerJson(200, chat({ content: 'ok' })))
  await ask({}, { apiKey: '' })
  expect(server.seen.at(-1)!.headers.authorization).toBeUndefined()
})

test.each([
  ['http://h:8000', 'http://h:8000/v1'],
  ['http://h:8000/', 'http://h:8000/v1'],
  ['http://h:8000/v1', 'http://h:8000/v1'],
  ['http://h:8000/v1/', 'http://h:8000/v1'],
  ['https://h/openai', 'https://h/openai/v1'],
  ['https://h/v1beta/openai/', 'https://h/v1beta/openai'],
  ['http://v1/', 'http://v1/v1'], // a host of that name is no version
])('%s is asked at %s', (given, expected) => expect(baseUrlOf(given)).toBe(expected))

test.each([
  [400, {}, 'bad_request', false],
  [400, { code: 'context_length_exceeded' }, 'context_too_long', false],
  [400, { message: "This model's maximum context length is 32768 tokens" }, 'context_too_long', false],
  [400, { message: 'the request exceeds the available context size' }, 'context_too_long', false],
  [401, {}, 'unauthorised', false],
  [403, {}, 'unauthorised', false],
  [404, {}, 'bad_request', false],
  [408, {}, 'timeout', true],
  [409, {}, 'unavailable', true],
  [422, {}, 'bad_request', false],
  [429, {}, 'rate_limited', true],
  [500, {}, 'unavailable', true],
  [503, {}, 'unavailable', true],
  [302, {}, 'bad_request', false],
])('an answer %i %j is %s', async (status, error, code, retryable) => {
  server.play(answerJson(status, { error: { message: 'no', ...error } }))
  expect(await fault(ask())).toMatchObject({ code, retryable, status })
})

test('a server that asks for a later retry gets it, and its decision on retries counts', async () => {
  server.play(answerJson(429, {}, { 'retry-after': '7' }))
  expect(await fault(ask())).toMatchObject({ retryAfterMs: 7_000, retryable: true })
  server.play(answerJson(429, {}, { 'retry-after': '7', 'retry-after-ms': '1500' }))
  expect(await fault(ask())).toMatchObject({ retryAfterMs: 1_500 })
  server.play(answerJson(503, {}, { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }))
  const { retryAfterMs } = await fault(ask())
  // A date, read as a span from now on.
  expect(Math.round(Number(retryAfterMs) / 3_600_000)).toBe(1)
  server.play(answerJson(429, {}, { 'x-should-retry': 'false' }))
  expect(await fault(ask())).toMatchObject({ code: 'rate_limited', retryable: false })
  server.play(answerJson(400, {}, { 'x-should-retry': 'true' }))
  expect(await fault(ask())).toMatchObject({ retryable: true })
})

test.each([
  [
    'text',
    (response: never) =>
      answerJson(200, 'not json', { 'content-type': 'text/plain' })(response, {} as never, {} as never),
  ],
  ['broken JSON', (response: never) => answerJson(200, '{"choices":[')(response, {} as never, {} as never)],
  ['no choices', (response: never) => answerJson(200, { choices: [] })(response, {} as never, {} as never)],
  ['nothing', (response: never) => answerJson(200, '')(response, {} as never, {} as never)],
])('a 200 with %s is a bad answer that may be requested again', async (_name, play) => {
  server.play(play as never)
  expect(await fault(ask())).toMatchObject({ code: 'bad_answer', retryable: true, status: 200 })
})

test('a body that is cut in the middle gives no partial text', async () => {
  server.play((response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"choices":[{"message":{"content":"half')
    setTimeout(() => response.destroy(), 20)
  })
  expect(await fault(ask())).toMatchObject({ code: 'unavailable', retryable: true, status: null })
})

test('an oversized answer is cut off', async () => {
  server.play((response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write('x'.repeat(100_000)), 1)
    response.on('close', () => clearInterval(timer))
  })
  expect(await fault(ask())).toMatchObject({ code: 'oversized', retryable: false })
})

test('a hang ends at the time limit, and a cancelled call is reported as cancelled', async () => {
  server.play(() => {})
  expect(await fault(ask({}, { timeoutMs: 100 }))).toMatchObject({ code: 'timeout', retryable: true })
  expect(await fault(ask({ signal: AbortSignal.timeout(50) }))).toMatchObject({ code: 'aborted', retryable: false })
  expect(await fault(ask({ signal: AbortSignal.abort() }))).toMatchObject({ code: 'aborted', retryable: false })
})

test('a dead server is unavailable, and a filtered answer is refused', async () => {
  const dead = createModelClient({ baseUrl: 'http://127.0.0.1:1', apiKey })
  expect(await fault(dead.complete(asked))).toMatchObject({ code: 'unavailable', retryable: true })
  server.play(answerJson(200, chat({ content: null, refusal: 'I cannot' })))
  expect(await fault(ask())).toMatchObject({ code: 'refused', retryable: false })
})

test('no error contains the key or acts on the terminal', async () => {
  server.play(answerJson(401, { error: { message: `bad key ${apiKey} \u001b[31m\u202e` } }))
  const { message } = await fault(ask())
  expect(message).not.toContain(apiKey)
  expect(message).toMatch(/^[^\p{Cc}\p{Cf}]*$/u)
})
