import { expect, test } from '@jest/globals'
import { createModelClient } from '../../../clients/model.ts'
import { apiKey, fault, later, plain, said, useHosts } from '../../support/local-server.ts'
import { openAi, openRouter } from '../../support/model-hosts/host.ts'
import { vllm } from '../../support/model-hosts/local.ts'

const start = useHosts()

test('reasoning models of OpenAI get the right request after two refusals, and from then on', async () => {
  const host = await start(openAi, () => said)
  const client = createModelClient({ baseUrl: host.url, apiKey })
  const answer = await client.complete(plain)
  expect(answer).toMatchObject({ content: said.content, usage: { completionTokens: 320, reasoningTokens: 256 } })
  expect(host.asked).toHaveLength(3)
  expect(host.asked.at(-1)).toEqual({
    model: 'gpt-5-mini',
    messages: plain.messages,
    max_completion_tokens: 1_024,
    stream: true,
    stream_options: { include_usage: true },
  })
  await client.complete(plain)
  expect(host.asked).toHaveLength(4)
})

test('an older vLLM that refuses the newer name gets the older name', async () => {
  const host = await start(vllm({ window: 32_768, isOld: true }), () => said)
  const kept: unknown[] = []
  const shape = { limit: 'max_completion_tokens' } as never
  const memory = {
    recall: async () => shape,
    keep: async (_model: string, learned: unknown) => void kept.push(learned),
  }
  const answer = await createModelClient({ baseUrl: host.url, apiKey, memory }).complete(plain)
  expect(answer.finishReason).toBe('stop')
  expect(host.asked.map((each) => ['max_tokens' in each, 'max_completion_tokens' in each])).toEqual([
    [false, true],
    [true, false],
  ])
  expect(kept).toEqual([{ limit: 'max_tokens' }])
})

test.each(['mistral', 'gemma'] as const)(
  'a template of %s that raises an error gets what it needs',
  async (template) => {
    const host = await start(vllm({ window: 32_768, template }), () => said)
    const client = createModelClient({ baseUrl: host.url, apiKey })
    expect((await client.complete({ ...later, model: 'qwen3' })).finishReason).toBe('stop')
    const sent = host.asked.length
    await client.complete({ ...later, model: 'qwen3' })
    expect(host.asked).toHaveLength(sent + 1)
    expect(JSON.stringify(host.asked.at(-1))).toContain('you look after databases')
    expect(JSON.stringify(host.asked.at(-1))).toContain('the leader found this')
  },
)

const mistral = (detail: unknown) => ({ object: 'error', message: { detail }, type: 'invalid_request_error' })
const extra = (name: string) => ({
  type: 'extra_forbidden',
  loc: ['body', name],
  msg: 'Extra inputs are not permitted',
})
test.each([
  ['422 of a strict gateway', 422, { detail: [extra('temperature')] }, { temperature: undefined }],
  ["Mistral's own 422", 422, mistral([extra('max_tokens')]), { max_tokens: undefined, max_completion_tokens: 1_024 }],
  [
    'a limit beyond what the model may say',
    400,
    { error: { message: 'Invalid max_tokens value, the valid range of max_tokens is [1, 512]', param: null } },
    { max_tokens: 512 },
  ],
  [
    'a temperature that is deprecated',
    400,
    { error: { message: '`temperature` is deprecated for this model.', type: 'invalid_request_error' } },
    { temperature: undefined },
  ],
  [
    'a provider that OpenRouter quotes',
    400,
    {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: { raw: '{"error":{"message":"Unsupported parameter: \'max_tokens\'"}}' },
      },
    },
    { max_tokens: undefined, max_completion_tokens: 1_024 },
  ],
  [
    'a list of one error',
    400,
    [
      {
        error: { code: 400, message: 'Unknown name "temperature": Cannot find field.', status: 'INVALID_ARGUMENT' },
      },
    ],
    { temperature: undefined },
  ],
  [
    'a limit that is said beside the window',
    400,
    {
      error: {
        message:
          '`max_tokens` must be less than or equal to `512`, the maximum value for `max_tokens` is less than the `context_window` for this model',
      },
    },
    { max_tokens: 512 },
  ],
  ['an error that is text', 400, { error: 'unknown field "temperature"' }, { temperature: undefined }],
  ['no JSON at all', 400, "unexpected parameter 'temperature'", { temperature: undefined }],
])('%s is learned from', async (_what, status, body, sent) => {
  const host = await start(openRouter, (_asked, turn) => (turn === 1 ? { status, body } : said))
  await createModelClient({ baseUrl: host.url, apiKey }).complete(plain)
  expect(host.asked.at(-1)).toMatchObject(Object.fromEntries(Object.entries(sent).filter(([, value]) => value)))
  for (const [name, value] of Object.entries(sent)) expect(host.asked.at(-1)?.[name]).toBe(value)
})

test("DeepSeek gets the empty reasoning that it requires, and none of the model's reasoning", async () => {
  const message = 'Missing `reasoning_content` field in the assistant message at message index 3.'
  const body = { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' } }
  const host = await start(openRouter, (_asked, turn) => (turn === 1 ? { status: 400, body } : said))
  await createModelClient({ baseUrl: host.url, apiKey }).complete(later)
  expect(host.asked.at(-1)?.messages[3]).toMatchObject({ role: 'assistant', reasoning_content: '' })
})

const tooLong = (message: string, code: string | null = null) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
test.each([
  [
    'vLLM',
    400,
    tooLong("This model's maximum context length is 8192 tokens. However, you requested 9100 tokens."),
    8_192,
  ],
  ['Kimi', 400, tooLong('Invalid request: Your request exceeded model token limit: 8192 (requested: 9100)'), 8_192],
  ['Z.ai', 400, { error: { code: '1261', message: 'Prompt too long' } }, null],
  ['a gateway', 400, tooLong("Input length (9100) exceeds model's maximum context length (8192)."), 8_192],
  ['oMLX', 400, tooLong('Prompt too long: 9100 tokens exceeds max context window of 8192 tokens'), 8_192],
  [
    'Anthropic',
    400,
    tooLong(
      'input length and `max_tokens` exceed context limit: 9100 + 1024 > 8192, decrease input length or `max_tokens` and try again',
    ),
    8_192,
  ],
  ['Anthropic, the prompt alone', 400, tooLong('prompt is too long: 210000 tokens > 200000 maximum'), 200_000],
  [
    'LM Studio',
    400,
    tooLong(
      'The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input',
    ),
    null,
  ],
  // A past range is no window.
  ['Ollama', 400, tooLong('prompt too long; exceeded max context length by 908 tokens (ref: 1b2c)'), null],
  ['words that nobody listed', 400, tooLong('The conversation is larger than we accept.'), null],
  ['a proxy', 413, 'Request Entity Too Large', null],
])(
  '%s reports a prompt that is too long, and a window is learned only if one is named',
  async (_who, status, body, window) => {
    const host = await start(openRouter, () => ({ status, body }))
    expect(await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(plain))).toMatchObject({
      code: 'context_too_long',
      windowTokens: window,
    })
  },
)

test.each([
  [
    'OpenAI',
    429,
    {
      error: {
        message: 'You exceeded your current quota, please check your plan and billing details.',
        type: 'insufficient_quota',
        code: 'insufficient_quota',
      },
    },
    'unpaid',
  ],
  ['DeepSeek', 402, { error: { message: 'Insufficient Balance', type: 'unknown_error' } }, 'unpaid'],
  [
    'OpenRouter',
    402,
    { error: { message: 'This request requires more credits, or fewer max_tokens.', code: 402 } },
    'unpaid',
  ],
  ['Anthropic', 400, tooLong('Your credit balance is too low to access the API.'), 'unpaid'],
  [
    'a limit a minute',
    429,
    { error: { message: 'Rate limit reached: 3 requests per minute. Check your plan and billing details.' } },
    'rate_limited',
  ],
  [
    'a quota that comes back',
    429,
    { error: { message: 'Your free quota is exhausted, it resets in 40 s' } },
    'rate_limited',
  ],
] as const)('%s: %i tells an empty account from a limit that ends by itself', async (_who, status, body, code) => {
  const host = await start(openRouter, () => ({ status, body }))
  expect(await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(plain))).toMatchObject({ code })
})

test.each([
  ["Unexpected role 'user' after role 'tool'", ['assistant', 'user']],
  ['System message must be at the beginning.', ['user']],
])('a template that says %s gets the order that it accepts', async (message, after) => {
  const told = {
    ...later,
    messages: [...later.messages, { role: 'user' as const, content: 'a person says: look at the rack' }],
  }
  const host = await start(openRouter, (_asked, turn) =>
    turn === 1 ? { status: 400, body: tooLong(message, '3230') } : said,
  )
  await createModelClient({ baseUrl: host.url, apiKey }).complete(told)
  const roles = host.asked.at(-1)!.messages.map(({ role }) => role)
  expect(roles.slice(-after.length)).toEqual(after)
  expect(JSON.stringify(host.asked.at(-1))).toContain('look at the rack')
  // Once learned, it is asked so at once.
  expect(host.asked).toHaveLength(2)
})

test("a refusal without a known cause is an error with the server's words, after one request", async () => {
  const body = { error: { message: "Unknown parameter: 'messages[0].flavour'.", param: 'messages[0].flavour' } }
  const host = await start(openRouter, () => ({ status: 400, body }))
  const error = await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(plain))
  expect(error).toMatchObject({ code: 'bad_request', retryable: false })
  expect(error.message).toContain("Unknown parameter: 'messages[0].flavour'.")
  expect(host.asked).toHaveLength(1)
})

test('a server that refuses every request is asked only a few times, and nothing is learned', async () => {
  const kept: unknown[] = []
  const memory = { recall: async () => ({ limit: 'max_tokens' }) as never, keep: async () => void kept.push(1) }
  const host = await start(openRouter, (asked) => {
    const param =
      'temperature' in asked ? 'temperature' : 'max_tokens' in asked ? 'max_tokens' : 'max_completion_tokens'
    return { status: 400, body: { error: { message: `'${param}' is not supported`, param } } }
  })
  expect(await fault(createModelClient({ baseUrl: host.url, apiKey, memory }).complete(plain))).toMatchObject({
    code: 'bad_request',
  })
  expect(host.asked.length).toBeLessThanOrEqual(6)
  expect(kept).toEqual([])
})
