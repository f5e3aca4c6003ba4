import { expect, test } from '@jest/globals'
import { createModelClient, type ModelRequest } from '../../../clients/model.ts'
import { apiKey, fault, plain, said, useHosts } from '../../support/local-server.ts'
import { openRouter, providerFailed } from '../../support/model-hosts/host.ts'
import { llamaCpp, ollama, vllm } from '../../support/model-hosts/local.ts'

const start = useHosts()

test('a model that uses its limit for reasoning gets a larger limit, within its window', async () => {
  const spent = { content: '', reasoning: 'hm', finish: 'length' }
  const host = await start(vllm({ window: 32_768, parsesReasoning: true }), (asked) =>
    Number(asked.max_tokens) < 4_000 ? spent : said,
  )
  const client = createModelClient({ baseUrl: host.url, apiKey })
  const answer = await client.complete({ ...plain, maxWithReasoning: 8_192 })
  expect(host.asked.map((each) => each.max_tokens)).toEqual([1_024, 4_096])
  // What the first one cost is counted.
  expect(answer).toMatchObject({ content: said.content, usage: { completionTokens: 80 } })
  const cramped = await createModelClient({ baseUrl: host.url, apiKey }).complete({ ...plain, maxWithReasoning: 1_024 })
  expect(cramped.finishReason).toBe('length')
})

test.each([
  ['vLLM with a reasoning parser', vllm({ window: 32_768, parsesReasoning: true })],
  ['llama.cpp', llamaCpp({ window: 32_768 })],
  ['Ollama', ollama({ parameter: 32_768 })],
  ['OpenRouter', openRouter],
])('reasoning that %s puts into a field is in no part of the answer', async (_name, played) => {
  const host = await start(played, () => said)
  const answer = await createModelClient({ baseUrl: host.url, apiKey }).complete({ ...plain, model: 'qwen3:8b' })
  expect(answer.content).toBe(said.content)
  expect(JSON.stringify(answer)).not.toContain('SECRET PLANS')
})

const parts = [
  { type: 'thinking', thinking: [{ type: 'text', text: 'SECRET PLANS' }] },
  { type: 'reasoning', text: 'SECRET PLANS' },
  { type: 'text', text: 'the replica ' },
  { type: 'output_text', text: 'lags' },
]
const choice = (message: unknown, finish: unknown = 'stop') => ({
  choices: [{ index: 0, finish_reason: finish, message }],
})
const call = { name: 'f', arguments: { a: 1 } }
test.each([
  ['content in parts', choice({ content: parts }), { content: 'the replica lags', toolCalls: [] }],
  [
    'arguments that are an object',
    choice({ content: null, tool_calls: [{ function: call }] }),
    { toolCalls: [{ name: 'f', arguments: '{"a":1}' }] },
  ],
  [
    'arguments that are missing',
    choice({ tool_calls: [{ id: '', function: { name: 'f' } }] }),
    { toolCalls: [{ id: 'call_0', arguments: 'null' }] },
  ],
  [
    'the call of before tools',
    choice({ content: null, function_call: { name: 'f', arguments: '{}' } }, 'function_call'),
    { toolCalls: [{ name: 'f', arguments: '{}' }] },
  ],
  [
    'ids that are numbers',
    choice({ tool_calls: [{ id: 7, function: { name: 'f', arguments: '{}' } }] }),
    { toolCalls: [{ id: 'call_0' }] },
  ],
  [
    'calls that are null',
    choice({ content: 'x', tool_calls: null, function_call: null }),
    { content: 'x', toolCalls: [] },
  ],
  ['a word of Mistral for the limit', choice({ content: 'x' }, 'model_length'), { finishReason: 'length' }],
  ['a reason that is no word', choice({ content: 'x' }, null), { finishReason: 'unknown' }],
  [
    'usage of text',
    { ...choice({ content: 'x' }), usage: { prompt_tokens: 'many' } },
    { usage: { promptTokens: 15, completionTokens: 1, isAssumed: true } },
  ],
])('%s is understood', async (_what, body, expected) => {
  const host = await start(openRouter, () => ({ status: 200, body }))
  const answer = await createModelClient({ baseUrl: host.url, apiKey }).complete(plain)
  expect(answer).toMatchObject(expected)
  expect(JSON.stringify(answer)).not.toContain('SECRET PLANS')
})

test.each([
  [
    'a request beyond the limit of a minute',
    429,
    {
      error: {
        message: 'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.',
        code: 'rate_limit_exceeded',
      },
    },
    'context_too_long',
    false,
  ],
  ['an error with status 200', 200, providerFailed, 'unavailable', true],
  ['one that limits rates', 200, { error: { message: 'Rate limit exceeded', code: 429 } }, 'rate_limited', true],
  ['one without a number', 200, { error: { message: 'no' } }, 'unavailable', true],
  ['an answer that was given up', 200, choice({ content: '' }, 'error'), 'unavailable', true],
  [
    'missing credits',
    402,
    {
      error: {
        message:
          'This request requires more credits, or fewer max_tokens. You requested up to 1024 tokens, but can only afford 300.',
        code: 402,
      },
    },
    'unpaid',
    false,
  ],
])('%s is an error of its kind', async (_what, status, body, code, retryable) => {
  const host = await start(openRouter, () => ({ status, body }))
  expect(await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(plain))).toMatchObject({
    code,
    retryable,
  })
  expect(host.asked).toHaveLength(1)
})

test('a loading model can be asked again, and the error of a model without tools names the setting that helps', async () => {
  const loading = await start(llamaCpp({ window: 8_192, isLoading: () => true }), () => said)
  const error = await fault(createModelClient({ baseUrl: loading.url, apiKey }).complete(plain))
  expect(error).toMatchObject({ code: 'unavailable', status: 503, retryable: true })
  expect(error.message).toContain('Loading model')
  const tools: ModelRequest['tools'] = [{ type: 'function', function: { name: 'f', description: 'd', parameters: {} } }]
  for (const [played, model] of [
    [llamaCpp({ window: 8_192, hasJinja: false }), 'qwen3'],
    [ollama({ takesTools: false }), 'qwen3:8b'],
  ] as const) {
    const host = await start(played, () => said)
    const refused = await fault(createModelClient({ baseUrl: host.url, apiKey }).complete({ ...plain, model, tools }))
    expect(refused).toMatchObject({ code: 'bad_request', retryable: false })
    expect(refused.message).toContain('LLM_PROTOCOL=json')
  }
})

test.each([
  ['vLLM', vllm({ window: 2_048 })],
  ['llama.cpp', llamaCpp({ window: 2_048 })],
])('a prompt that is too long for %s reports the possible length, and lowers no limit', async (_name, played) => {
  const host = await start(played, () => said)
  const long: ModelRequest = { ...plain, messages: [{ role: 'user', content: 'x'.repeat(12_000) }] }
  const error = await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(long))
  expect(error).toMatchObject({ code: 'context_too_long', windowTokens: 2_048 })
  expect(host.asked).toHaveLength(1)
})
