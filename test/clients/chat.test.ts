import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { toGrammar } from '../../clients/chat/body.ts'
import { readServedModel } from '../../clients/chat/window.ts'
import { baseUrlOf, createModelClient, type ModelRequest } from '../../clients/model.ts'
import type { Writing } from '../../domain/chat.ts'
import { answerForm } from '../../model/protocol.ts'
import { openAi, openRouter, providerFailed } from '../support/model-hosts/host.ts'
import { allowedBy, llamaCpp, ollama, vllm } from '../support/model-hosts/local.ts'
import { apiKey, fault, type LocalServer, later, plain, said, startLocalServer, useHosts } from './local-server.ts'

describe('answers', () => {
  describe('answers', () => {
    const start = useHosts()

    test('a model that spends its limit on reasoning gets a larger one, within what its window allows', async () => {
      const spent = { content: '', reasoning: 'hm', finish: 'length' }
      const host = await start(vllm({ window: 32_768, parsesReasoning: true }), (asked) =>
        Number(asked.max_tokens) < 4_000 ? spent : said,
      )
      const client = createModelClient({ baseUrl: host.url, apiKey })
      const answer = await client.complete({ ...plain, mostTokens: 8_192 })
      expect(host.asked.map((each) => each.max_tokens)).toEqual([1_024, 4_096])
      // What the first one cost is counted.
      expect(answer).toMatchObject({ content: said.content, usage: { completionTokens: 80 } })
      const cramped = await createModelClient({ baseUrl: host.url, apiKey }).complete({ ...plain, mostTokens: 1_024 })
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
        { usage: { promptTokens: 0, completionTokens: 0 } },
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
        'bad_request',
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

    test('a model that is still loading is waited for, and one that takes no tools says which setting helps', async () => {
      const loading = await start(llamaCpp({ window: 8_192, isLoading: () => true }), () => said)
      const error = await fault(createModelClient({ baseUrl: loading.url, apiKey }).complete(plain))
      expect(error).toMatchObject({ code: 'unavailable', status: 503, retryable: true })
      expect(error.message).toContain('Loading model')
      const tools: ModelRequest['tools'] = [
        { type: 'function', function: { name: 'f', description: 'd', parameters: {} } },
      ]
      for (const [played, model] of [
        [llamaCpp({ window: 8_192, hasJinja: false }), 'qwen3'],
        [ollama({ takesTools: false }), 'qwen3:8b'],
      ] as const) {
        const host = await start(played, () => said)
        const refused = await fault(
          createModelClient({ baseUrl: host.url, apiKey }).complete({ ...plain, model, tools }),
        )
        expect(refused).toMatchObject({ code: 'bad_request', retryable: false })
        expect(refused.message).toContain('LLM_PROTOCOL=json')
      }
    })

    test.each([
      ['vLLM', vllm({ window: 2_048 })],
      ['llama.cpp', llamaCpp({ window: 2_048 })],
    ])(
      'a prompt that is too long for %s says how long it may be, and no limit is given up for it',
      async (_name, played) => {
        const host = await start(played, () => said)
        const long: ModelRequest = { ...plain, messages: [{ role: 'user', content: 'x'.repeat(12_000) }] }
        const error = await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(long))
        expect(error).toMatchObject({ code: 'context_too_long', windowTokens: 2_048 })
        expect(host.asked).toHaveLength(1)
      },
    )
  })

  describe('learned', () => {
    const start = useHosts()

    test("OpenAI's models that reason are asked as they want, after two refusals and never again", async () => {
      const host = await start(openAi, () => said)
      const client = createModelClient({ baseUrl: host.url, apiKey })
      const answer = await client.complete(plain)
      expect(answer).toMatchObject({ content: said.content, usage: { completionTokens: 320, reasoningTokens: 256 } })
      expect(host.asked).toHaveLength(3)
      expect(host.asked.at(-1)).toEqual({
        ...{ model: 'gpt-5-mini', messages: plain.messages, max_completion_tokens: 1_024 },
        ...{ stream: true, stream_options: { include_usage: true } },
      })
      await client.complete(plain)
      expect(host.asked).toHaveLength(4)
    })

    test('an older vLLM that refuses the newer name gets the older one', async () => {
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
      'a template of %s that raises is given what it wants',
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
      [
        "Mistral's own 422",
        422,
        mistral([extra('max_tokens')]),
        { max_tokens: undefined, max_completion_tokens: 1_024 },
      ],
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

    test('DeepSeek gets the empty reasoning that it misses, and none of what was thought', async () => {
      const message = 'Missing `reasoning_content` field in the assistant message at message index 3.'
      const body = { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' } }
      const host = await start(openRouter, (_asked, turn) => (turn === 1 ? { status: 400, body } : said))
      await createModelClient({ baseUrl: host.url, apiKey }).complete(later)
      expect(host.asked.at(-1)?.messages[3]).toMatchObject({ role: 'assistant', reasoning_content: '' })
    })

    test("a refusal that names nothing we know is an error with the server's words, after one request", async () => {
      const body = { error: { message: "Unknown parameter: 'messages[0].flavour'.", param: 'messages[0].flavour' } }
      const host = await start(openRouter, () => ({ status: 400, body }))
      const error = await fault(createModelClient({ baseUrl: host.url, apiKey }).complete(plain))
      expect(error).toMatchObject({ code: 'bad_request', retryable: false })
      expect(error.message).toContain("Unknown parameter: 'messages[0].flavour'.")
      expect(host.asked).toHaveLength(1)
    })

    test('a server that refuses whatever it gets is asked a few times and no more, and nothing is learned', async () => {
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
  })

  describe('windows', () => {
    const start = useHosts()

    test.each([
      ['vLLM', vllm({ window: 16_384 }), '', 'qwen3', 16_384, 'max_model_len of /v1/models'],
      ['llama.cpp', llamaCpp({ window: 8_192 }), '', 'any', 8_192, 'n_ctx of /props'],
      ['OpenRouter', openRouter, '/api', 'qwen/qwen3-235b-a22b', 40_960, 'context_length of /v1/models'],
      ['OpenAI', openAi, '', 'gpt-5-mini', null, null],
      ['Ollama with a parameter', ollama({ parameter: 16_384 }), '', 'qwen3:8b', 16_384, 'num_ctx of /api/show'],
      ['Ollama without one', ollama({}), '', 'qwen3:8b', 4_096, 'context_length of /api/ps'],
      ['Ollama with a setting', ollama({ environment: 32_768 }), '', 'qwen3:8b', 32_768, 'context_length of /api/ps'],
    ])('the window of %s is read where it stands', async (_name, played, path, model, tokens, source) => {
      const host = await start(played, () => said)
      const found = await readServedModel({ baseUrl: baseUrlOf(`${host.url}${path}/v1`), apiKey, model })
      expect(found).toMatchObject({ windowTokens: tokens, source })
      const again = await readServedModel({ baseUrl: baseUrlOf(`${host.url}${path}/v1`), apiKey, model })
      expect(again?.identity).toBe(found?.identity)
    })

    test('a model that Ollama has loaded has the window it was loaded with', async () => {
      let loaded: number | null = null
      const host = await start(ollama({ parameter: 32_768, loaded: () => loaded }), () => said)
      const where = { baseUrl: baseUrlOf(host.url), apiKey: '', model: 'qwen3:8b' }
      const before = await readServedModel(where)
      loaded = 8_192
      const after = await readServedModel(where)
      expect(before).toMatchObject({ windowTokens: 32_768, isProvisional: true, cutsSilently: true })
      expect(after).toMatchObject({ windowTokens: 8_192, isProvisional: false, source: 'context_length of /api/ps' })
      expect(after?.identity).toBe(before?.identity)
    })

    test('a server that is away says nothing about its window', async () => {
      expect(await readServedModel({ baseUrl: 'http://127.0.0.1:1/v1', apiKey: '', model: 'm' })).toBeNull()
    })
  })
})

describe('streams', () => {
  const calls = [
    { name: 'get_shard', arguments: { id: 'db-osl-1' } },
    { name: 'read_log', arguments: { node: 'node-db-osl-1b', lines: 20 } },
  ]

  describe('dialects', () => {
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
      expect(answer.toolCalls.map(({ name, arguments: text }) => ({ name, arguments: JSON.parse(text) }))).toEqual(
        calls,
      )
      expect(new Set(answer.toolCalls.map(({ id }) => id)).size).toBe(2)
      expect(answer.usage.promptTokens).toBeGreaterThan(0)
      expect(JSON.stringify(answer)).not.toContain('SECRET')
    })
  })

  describe('an answer in text', () => {
    const start = useHosts()
    const called = '{"tool_call":{"name":"get_shard","parameters":{"id":"db-osl-1","since":[1,2.5,null]}}}'
    const ended =
      '{"final_answer":{"summary":"It is \\"up\\".","confidence":"high","claims":[{"kind":"is","text":"up","quotes":[]}]}}'
    const ways = (asked: readonly Record<string, unknown>[]) =>
      asked.map((each) => ['response_format', 'grammar', 'guided_json'].filter((field) => field in each).join())

    test('is held to a grammar by a server that applies one and takes no schema, from the second request on', async () => {
      const words = ['I would look at the shard first.', '{"tool_call":{"name":7}}', called]
      const host = llamaCpp({ window: 32_768, takesSchema: false })
      const running = await start(host, ({ grammar }) => ({
        content: words.find((each) => typeof grammar !== 'string' || allowedBy(grammar).test(each)) ?? '',
      }))
      const client = createModelClient({ baseUrl: running.url, apiKey })
      const ask = async () => (await client.complete({ ...plain, model: 'qwen3', form: answerForm })).content
      expect([await ask(), await ask()]).toEqual([called, called])
      expect(ways(running.asked)).toEqual(['response_format', 'grammar', 'grammar'])
    })

    test('is held by guided_json, or by words alone, where a server refuses what it does not know', async () => {
      const running = await start(vllm({ window: 32_768, isOld: true }), () => ({ content: called }))
      const client = createModelClient({ baseUrl: running.url, apiKey })
      expect(await client.complete({ ...plain, model: 'qwen3', form: answerForm })).toMatchObject({ content: called })
      const asked = ways(running.asked)
      expect(asked.filter((way, at) => way !== asked[at - 1])).toEqual([
        'response_format',
        'grammar',
        'guided_json',
        '',
      ])
    })

    test('by the grammar is one call or one ending as the protocol has them, and nothing else', () => {
      const allowed = allowedBy(toGrammar(answerForm))
      expect([called, ended, ` ${called}\n`].map((text) => allowed.test(text))).toEqual([true, true, true])
      const others = [
        ...[
          '',
          'ok',
          '{}',
          '{"tool_call":{"name":"a"}}',
          `${called}${called}`,
          `{"tool_call":{"name":"a","parameters":{}},"b":1}`,
        ],
        ...[ended.replace('high', 'sure'), ended.replace('"is"', '"maybe"'), called.replace('1,2.5', '01')],
      ]
      expect(others.filter((text) => allowed.test(text))).toEqual([])
    })
  })

  describe('what servers send', () => {
    let server: LocalServer
    beforeAll(async () => {
      server = await startLocalServer()
    })
    afterAll(async () => await server.close())

    type Step = string | object | number | 'cut' | 'wait'
    /** Plays pieces of a stream: an object is a chunk, a number a pause in ms. `wait` keeps the connection open. */
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

    test('an answer without the closing mark is whole once the server said how it ended', async () => {
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
    ])('where %s, nothing of the answer is used and it may be asked again', async (_name, steps) => {
      stream(steps)
      const error = await fault(ask())
      expect(error).toMatchObject({ code: 'unavailable', retryable: true })
      expect(error.message).not.toContain('half')
    })

    test.each([
      [
        'as OpenRouter says it',
        { error: { code: 502, message: 'Provider returned error' }, choices: [] },
        'unavailable',
      ],
      ['as vLLM says it', { object: 'error', message: 'engine died', code: 500 }, 'unavailable'],
      ['as llama.cpp says it', 'error: {"code":500,"message":"slot lost","type":"server_error"}\n\n', 'unavailable'],
      [
        'with the end of a choice',
        { choices: [{ delta: {}, finish_reason: 'error', error: { message: 'x' } }] },
        'unavailable',
      ],
      ['a limit', { error: { code: 429, message: 'slow down' } }, 'rate_limited'],
    ])('an error in the middle of a stream is one: %s', async (_name, said, code) => {
      stream([delta({ content: 'half' }), said, done])
      expect(await fault(ask())).toMatchObject({ code, retryable: true })
    })

    test('a stream that stalls ends after the set time, and signs of life are none of the answer', async () => {
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

    test('a stream without end is cut off at the size of an answer', async () => {
      server.play((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const piece = `data: ${JSON.stringify(delta({ content: 'x'.repeat(10_000) }))}\n\n`
        const timer = setInterval(() => response.write(piece), 1)
        response.on('close', () => clearInterval(timer))
      })
      expect(await fault(ask({}, { maxAnswerBytes: 100_000 }))).toMatchObject({ code: 'oversized', retryable: false })
    })

    test('a stream that its server calls JSON is read', async () => {
      stream([delta({ content: 'ok' }, 'stop'), done], 'application/json')
      expect(await ask()).toMatchObject({ content: 'ok' })
    })

    test('calls without index, with ids in every piece, and with arguments as an object are told apart', async () => {
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

    test('what is written is told as it grows, without reasoning', async () => {
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

    test('a template that takes single calls alone gets the history so, and is asked for one at a time', async () => {
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
  })
})
