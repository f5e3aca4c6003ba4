import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createModelClient, type ModelRequest } from '../../../clients/model.ts'
import type { Writing } from '../../../domain/chat.ts'
import { apiKey, fault, type LocalServer, plain, startLocalServer, useHosts } from '../../support/local-server.ts'
import { openAi, openRouter } from '../../support/model-hosts/host.ts'
import { llamaCpp, ollama, vllm } from '../../support/model-hosts/local.ts'

const calls = [
  { name: 'get_shard', arguments: { id: 'db-osl-1' } },
  { name: 'read_log', arguments: { node: 'node-db-osl-1b', lines: 20 } },
]

const start = useHosts()

test.each([
  ['OpenAI', openAi, 'gpt-5-mini'],
  ['OpenRouter', openRouter, 'gpt-5-mini'],
  ['vLLM', vllm({ window: 32_768, parsesReasoning: true }), 'qwen3'],
  ['llama.cpp, whose calls have no id', llamaCpp({ window: 32_768 }), 'qwen3'],
  ['Ollama, whose calls all have the index 0', ollama({ parameter: 32_768 }), 'qwen3:8b'],
  ['a server that passes `stream` over', { ...openAi, dialect: undefined }, 'gpt-5-mini'],
] as const)('two calls of %s are put together whole', async (_name, host, model) => {
  const running = await start(host, () => ({ content: 'I look at both.', calls, reasoning: 'SECRET PLANS' }))
  const answer = await createModelClient({ baseUrl: running.url, apiKey }).complete({ ...plain, model })
  expect(answer).toMatchObject({ content: 'I look at both.', finishReason: 'tool_calls' })
  expect(answer.toolCalls.map(({ name, arguments: text }) => ({ name, arguments: JSON.parse(text) }))).toEqual(calls)
  expect(new Set(answer.toolCalls.map(({ id }) => id)).size).toBe(2)
  expect(answer.usage.promptTokens).toBeGreaterThan(0)
  expect(JSON.stringify(answer)).not.toContain('SECRET')
})

let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterAll(async () => await server.close())

type Step = string | object | number | 'cut' | 'wait'
/**
 * Plays pieces of a stream: an object is a chunk, a number a pause in ms. `wait` keeps the
 * connection open.
 */
const stream = (steps: Step[], type = 'text/event-stream') =>
  server.play(async (response) => {
    response.writeHead(200, { 'content-type': type })
    for (const step of steps) {
      if (step === 'wait') return
      if (step === 'cut') return void response.socket?.resetAndDestroy()
      if (typeof step === 'number') await sleep(step)
      else if (typeof step === 'string') response.write(step)
      else response.write(`data: ${JSON.stringify(step)}\n\n`)
    }
    response.end()
  })
const delta = (given: object, finish: string | null = null) => ({
  model: 'qwen',
  choices: [{ index: 0, delta: given, finish_reason: finish }],
})
const call = (given: object) => delta({ tool_calls: [given] })
const done = 'data: [DONE]\n\n'
const ask = (more: Partial<ModelRequest> = {}, options: object = {}) =>
  createModelClient({ baseUrl: server.url, apiKey, ...options }).complete({ ...plain, ...more })

test('an answer without the closing mark is whole once the server reported its end', async () => {
  stream([delta({ content: 'the replica ' }), delta({ content: 'lags' }), delta({}, 'stop')])
  expect(await ask()).toMatchObject({ content: 'the replica lags', finishReason: 'stop', model: 'qwen' })
})

test('a server that keeps its connection open after the end is not waited for', async () => {
  stream([delta({ content: 'ok' }, 'stop'), 'wait'])
  expect(await ask()).toMatchObject({ content: 'ok' })
})

test.each([
  ['the connection breaks', [delta({ content: 'half an ans' }), 20, 'cut' as const]],
  ['the stream ends before the answer', [delta({ content: 'half an ans' })]],
  ['a piece is cut', [delta({ content: 'half' }), 'data: {"choices":[{"delta":{"con\n\n']],
])('if %s, nothing of the answer is used and the request may be repeated', async (_name, steps) => {
  stream(steps)
  const error = await fault(ask())
  expect(error).toMatchObject({ code: 'unavailable', retryable: true })
  expect(error.message).not.toContain('half')
})

test.each([
  ['as OpenRouter says it', { error: { code: 502, message: 'Provider returned error' }, choices: [] }, 'unavailable'],
  ['as vLLM says it', { object: 'error', message: 'engine died', code: 500 }, 'unavailable'],
  ['as llama.cpp says it', 'error: {"code":500,"message":"slot lost","type":"server_error"}\n\n', 'unavailable'],
  [
    'with the end of a choice',
    { choices: [{ delta: {}, finish_reason: 'error', error: { message: 'x' } }] },
    'unavailable',
  ],
  ['a limit', { error: { code: 429, message: 'slow down' } }, 'rate_limited'],
])('an error in the middle of a stream is an error: %s', async (_name, said, code) => {
  stream([delta({ content: 'half' }), said, done])
  expect(await fault(ask())).toMatchObject({ code, retryable: true })
})

test('a stalled stream ends after the set time, and keep-alive comments are not part of the answer', async () => {
  server.play((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify(delta({ content: 'the rep' }))}\n\n`)
    const signs = setInterval(() => response.write(': ping\n\n'), 50)
    response.on('close', () => clearInterval(signs))
  })
  // The signs go on until the client leaves: one that took them for an answer would never.
  expect(await fault(ask({}, { stallMs: 300 }))).toMatchObject({ code: 'stalled', retryable: true })
})

test('the first token may take longer than a stall', async () => {
  stream([': processing\n\n', 500, delta({ content: 'ok' }, 'stop'), done])
  expect(await ask({}, { stallMs: 200 })).toMatchObject({ content: 'ok' })
})

test('a model that reasons for long has not stalled', async () => {
  const thoughts = Array.from({ length: 8 }, (): Step[] => [delta({ reasoning_content: 'hm' }), 300]).flat()
  stream([...thoughts, delta({ content: 'ok' }, 'stop'), done])
  expect(await ask({}, { stallMs: 2_000 })).toMatchObject({ content: 'ok' })
})

test('an endless stream is cut off at the maximum size of an answer', async () => {
  server.play((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const piece = `data: ${JSON.stringify(delta({ content: 'x'.repeat(10_000) }))}\n\n`
    const timer = setInterval(() => response.write(piece), 1)
    response.on('close', () => clearInterval(timer))
  })
  expect(await fault(ask({}, { maxAnswerBytes: 100_000 }))).toMatchObject({ code: 'oversized', retryable: false })
})

test('a stream that its server labels JSON is read', async () => {
  stream([delta({ content: 'ok' }, 'stop'), done], 'application/json')
  expect(await ask()).toMatchObject({ content: 'ok' })
})

test('calls without an index, with ids in every piece, and with arguments as an object are told apart', async () => {
  stream([
    call({ id: 'a', function: { name: 'get_shard', arguments: '{"id":' } }),
    call({ id: 'a', function: { name: 'get_shard', arguments: '"db-osl-1"}' } }),
    call({ id: 'b', function: { name: 'read_log', arguments: { lines: 20 } } }),
    delta({}, 'tool_calls'),
  ])
  expect((await ask()).toolCalls).toEqual([
    { id: 'a', name: 'get_shard', arguments: '{"id":"db-osl-1"}' },
    { id: 'b', name: 'read_log', arguments: '{"lines":20}' },
  ])
})

const a = '{"id":"node-a"}'
const b = '{"id":"node-b"}'
const piece = (index: number | null, id: string | null, name: string | null, given: string | null) =>
  call({
    ...(index !== null && { index }),
    ...(id !== null && { id }),
    function: { ...(name !== null && { name }), ...(given !== null && { arguments: given }) },
  })

test.each([
  // Gemini behind OpenAI's protocol: https://github.com/NousResearch/hermes-agent/issues/57939
  ['one index and one id', [piece(0, 'x', 'get_node', a), piece(0, 'x', 'get_node', b)]],
  // Adapters that make the id of the name.
  ['two indexes and one id', [piece(0, 'call-get_node', 'get_node', a), piece(1, 'call-get_node', 'get_node', b)]],
  [
    'two indexes and one id, in pieces',
    [
      piece(0, 'x', 'get_node', '{"id":'),
      piece(0, null, null, '"node-a"}'),
      piece(1, 'x', 'get_node', ''),
      piece(1, null, null, b),
    ],
  ],
  ['no index and no id', [piece(null, null, 'get_node', a), piece(null, null, 'get_node', b)]],
  ['one index, the arguments alone for the second', [piece(0, 'x', 'get_node', a), piece(0, 'x', 'get_node', b)]],
] as const)('two calls with %s are two calls', async (_what, pieces) => {
  stream([...pieces, delta({}, 'tool_calls'), done])
  const { toolCalls } = await ask()
  expect(toolCalls.map(({ name, arguments: given }) => [name, JSON.parse(given)])).toEqual([
    ['get_node', { id: 'node-a' }],
    ['get_node', { id: 'node-b' }],
  ])
})

test.each([
  [
    'neither index nor id, and the name in each piece',
    [piece(null, null, 'get_node', '{"id":'), piece(null, null, 'get_node', '"node-a"}')],
  ],
  ['its name in pieces', [piece(0, 'x', 'get_', ''), piece(0, null, 'node', null), piece(0, null, null, a)]],
  ['its name again at the end', [piece(0, 'x', 'get_node', a), piece(0, 'x', 'get_node', '')]],
] as const)('a call with %s is one call', async (_what, pieces) => {
  stream([...pieces, delta({}, 'tool_calls'), done])
  expect((await ask()).toolCalls).toMatchObject([{ name: 'get_node', arguments: a }])
})

test('if only reasoning arrived, its last words are shown, and otherwise none of it', async () => {
  stream([
    delta({ reasoning_content: 'I look. ' }),
    delta({ reasoning_content: '<tool_call>' }),
    delta({}, 'stop'),
    done,
  ])
  expect(await ask()).toMatchObject({ content: '', reasoning: 'I look. <tool_call>' })
  stream([delta({ reasoning_content: 'SECRET' }), delta({ content: 'Done.' }), delta({}, 'stop'), done])
  expect(JSON.stringify(await ask())).not.toContain('SECRET')
})

test('the text of an answer is reported as it grows, without reasoning', async () => {
  const seen: Writing[] = []
  stream([
    delta({ reasoning_content: 'SECRET PLANS' }),
    delta({ content: 'I look' }),
    call({ index: 0, id: 'a', function: { name: 'get_shard', arguments: '{"id":' } }),
    'wait',
  ])
  const cut = fault(ask({ onWriting: (writing) => seen.push(writing) }, { stallMs: 200 }))
  await cut.catch(() => undefined)
  expect(seen.at(-1)).toMatchObject({
    pieces: 3,
    content: 'I look',
    call: { name: 'get_shard', arguments: '{"id":' },
  })
  expect(JSON.stringify(seen)).not.toContain('SECRET')
})

test.each([
  ['stream_options', ['usage', 'plain'], (sent: Record<string, unknown>) => 'stream_options' in sent],
  ['stream', ['usage', 'off'], (sent: Record<string, unknown>) => 'stream' in sent],
  ['response_format', ['schema', 'grammar'], (sent: Record<string, unknown>) => 'response_format' in sent],
])('a server that refuses %s is asked without it from then on', async (name, _words, holds) => {
  const bodies: Record<string, unknown>[] = []
  server.play((response, { body }) => {
    const sent = JSON.parse(body) as Record<string, unknown>
    bodies.push(sent)
    response.writeHead(holds(sent) ? 400 : 200, { 'content-type': 'application/json' })
    const refusal = { error: { message: `Unsupported parameter: '${name}'`, param: name, code: 'unsupported' } }
    response.end(JSON.stringify(holds(sent) ? refusal : { choices: [{ message: { content: 'ok' } }] }))
  })
  const client = createModelClient({ baseUrl: server.url, apiKey })
  const form = { type: 'object' }
  expect(await client.complete({ ...plain, form })).toMatchObject({ content: 'ok' })
  await client.complete({ ...plain, form })
  expect(bodies.map(holds)).toEqual([true, false, false])
})

test('a template that takes only single calls gets the history in this form, and is asked for one call at a time', async () => {
  const bodies: Record<string, unknown>[] = []
  server.play((response, { body }) => {
    const sent = JSON.parse(body) as { messages: { tool_calls?: unknown[] }[] }
    bodies.push(sent)
    const isRefused = sent.messages.some((each) => (each.tool_calls?.length ?? 0) > 1)
    response.writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' })
    const error = { message: 'This model only supports single tool-calls at once!' }
    response.end(JSON.stringify(isRefused ? { error } : { choices: [{ message: { content: 'ok' } }] }))
  })
  const one = (id: string) => ({ id, type: 'function' as const, function: { name: 'get_shard', arguments: '{}' } })
  const messages: ModelRequest['messages'] = [
    { role: 'user', content: 'look' },
    { role: 'assistant', content: 'both', tool_calls: [one('a'), one('b')] },
    { role: 'tool', tool_call_id: 'a', content: 'A' },
    { role: 'tool', tool_call_id: 'b', content: 'B' },
  ]
  const tools = [{ type: 'function' as const, function: { name: 'get_shard', description: 'd', parameters: {} } }]
  await ask({ messages, tools })
  expect(bodies.at(-1)).toMatchObject({
    messages: [
      { role: 'user' },
      { content: 'both', tool_calls: [{ id: 'a' }] },
      { tool_call_id: 'a' },
      { content: null, tool_calls: [{ id: 'b' }] },
      { tool_call_id: 'b' },
    ],
    parallel_tool_calls: false,
  })
})
