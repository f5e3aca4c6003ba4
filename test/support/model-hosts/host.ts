import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** How a server streams what it would also say whole: where the ones of the field differ. */
type Dialect = {
  /**
   * `pieces`: id and name first, then the arguments bit by bit. `whole`: each call in one piece.
   */
  calls: 'pieces' | 'whole'
  /** Older Ollama gives every call the index 0. */
  index: 'each' | 'zero'
  /** `asked`: a last piece without choices, where `stream_options` asks for it. */
  usage: 'asked' | 'with the end' | 'never'
  /** Signs of life before the first token. */
  comment?: string
  /** The closing `[DONE]`. */
  isClosed?: boolean
}

type Message = {
  content: string | null
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[]
} & Record<string, unknown>
type Whole = { choices: { message: Message; finish_reason: string }[]; usage?: unknown } & Record<string, unknown>

/** The events of a stream, each as the text that goes over the wire. */
function eventsOf(dialect: Dialect, whole: unknown, asked: Asked): string[] {
  const { choices, usage, ...head } = whole as Whole
  const { message, finish_reason } = choices[0]!
  const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
    ...head,
    object: 'chat.completion.chunk',
    ...more,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  })
  const wantsCounts = (asked.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true
  const reasoning = (['reasoning_content', 'reasoning'] as const).find((each) => typeof message[each] === 'string')
  const chunks: object[] = [
    chunk({ role: 'assistant', content: '' }),
    ...(reasoning ? pieces(message[reasoning] as string).map((each) => chunk({ [reasoning]: each })) : []),
    ...pieces(message.content ?? '').map((content) => chunk({ content })),
    ...callChunks(dialect, message.tool_calls ?? []).map((tool_calls) => chunk({ tool_calls })),
    chunk({}, finish_reason, dialect.usage === 'with the end' ? { usage } : {}),
    ...(dialect.usage === 'asked' && wantsCounts ? [{ ...head, choices: [], usage }] : []),
  ]
  return [
    ...(dialect.comment ? [`: ${dialect.comment}\n\n`] : []),
    ...chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`),
    ...(dialect.isClosed === false ? [] : ['data: [DONE]\n\n']),
  ]
}

function callChunks({ calls, index }: Dialect, given: NonNullable<Message['tool_calls']>): object[][] {
  return given.flatMap((call, place) => {
    const at = index === 'each' ? place : 0
    if (calls === 'whole') return [[{ index: at, ...call }]]
    const { id, type, function: called } = call
    const rest = pieces(called.arguments).map((text) => [{ index: at, function: { arguments: text } }])
    return [[{ index: at, id, type, function: { name: called.name, arguments: '' } }], ...rest]
  })
}

function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,7}/g) ?? []
}

export type Asked = {
  model: string
  messages: { role: string; content: string | null; tool_calls?: { id: string }[]; tool_call_id?: string }[]
  tools?: unknown[]
} & Record<string, unknown>

/** What the model says: words, calls and reasoning, before its server puts them into a body. */
export type Spoken = {
  content?: string
  calls?: { name: string; arguments: Record<string, unknown> }[]
  reasoning?: string
  finish?: string
}
export type Answered = { status: number; body: unknown; headers?: Record<string, string> }

/**
 * A server as others run it: what it takes, what it refuses and how, and the form of its answers.
 */
export type ModelHost = {
  /** Answers any path but the completions; null is a 404. */
  other(path: string, body: Record<string, unknown> | null): unknown
  /** What it says against a request, or null where it takes it. */
  refuse(asked: Asked, headers: IncomingHttpHeaders): Answered | null
  answer(spoken: Spoken, asked: Asked): unknown
  /** How it streams; without it `stream` is passed over and the answer comes whole. */
  dialect?: Dialect
  /** Between two pieces of a stream. */
  pauseMs?: number
}

export type RunningHost = { url: string; asked: Asked[]; paths: string[]; host: ModelHost; stop(): Promise<void> }

/**
 * Plays a host over HTTP; `speak` is the model behind it, or an answer of the server's own with
 * `status`.
 */
export async function runHost(
  host: ModelHost,
  speak: (asked: Asked, turn: number) => Spoken | Answered | Promise<Spoken | Answered>,
): Promise<RunningHost> {
  const asked: Asked[] = []
  const paths: string[] = []
  let turn = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const body = text === '' ? null : (JSON.parse(text) as Asked)
    const path = request.url ?? ''
    paths.push(`${request.method} ${path}`)
    const send = ({ status, body, headers = {} }: Answered) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    if (!path.endsWith('/chat/completions') || body === null) {
      const found = host.other(path, body)
      return send(found === null ? { status: 404, body: { detail: 'Not Found' } } : { status: 200, body: found })
    }
    asked.push(body)
    const refused = host.refuse(body, request.headers)
    if (refused) return send(refused)
    turn += 1
    const said = await speak(body, turn)
    if ('status' in said) return send(said)
    const whole = host.answer(said, body)
    if (!host.dialect || body.stream !== true) return send({ status: 200, body: whole })
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    for (const event of eventsOf(host.dialect, whole, body)) {
      response.write(event)
      if (host.pauseMs) await sleep(host.pauseMs)
    }
    response.end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    paths,
    host,
    stop: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

/** About as many tokens as a server would count. */
export function tokensOf(asked: Asked): number {
  return Math.ceil(JSON.stringify([asked.messages, asked.tools ?? []]).length / 4)
}

export function callsOf(spoken: Spoken, id: (index: number) => string) {
  return (spoken.calls ?? []).map((call, index) => ({
    id: id(index),
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }))
}

/** Every parameter that is not of these, by name. */
export function unknownOf(asked: Asked, known: readonly string[]): string[] {
  return Object.keys(asked).filter((name) => !known.includes(name))
}

const known = [
  'model',
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'stream',
  'stream_options',
  'n',
  'seed',
  'user',
  'metadata',
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'reasoning_effort',
  'response_format',
  'stop',
]

/** api.openai.com with a model that reasons: o-series and GPT-5. It tells no window. */
export const openAi: ModelHost = {
  dialect: { calls: 'pieces', index: 'each', usage: 'asked' },
  other: (path) =>
    path === '/v1/models'
      ? { object: 'list', data: [{ id: 'gpt-5-mini', object: 'model', created: 1754425928, owned_by: 'system' }] }
      : null,
  refuse(asked, headers) {
    if (!/^Bearer sk-/.test(headers.authorization ?? '')) {
      return refused(401, 'Incorrect API key provided.', null, 'invalid_api_key')
    }
    const [unknown] = unknownOf(asked, known)
    if (unknown) return refused(400, `Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter')
    if ('max_tokens' in asked) {
      const message =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
      return refused(400, message, 'max_tokens', 'unsupported_parameter')
    }
    if (asked.temperature !== undefined && asked.temperature !== 1) {
      const message = `Unsupported value: 'temperature' does not support ${asked.temperature} with this model. Only the default (1) value is supported.`
      return refused(400, message, 'temperature', 'unsupported_value')
    }
    return unanswered(asked)
  },
  answer: (spoken, asked) => ({
    id: 'chatcmpl-CQ1',
    object: 'chat.completion',
    created: 1760000000,
    model: `${asked.model}-2025-08-07`,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: spoken.content ?? null,
          refusal: null,
          annotations: [],
          ...(spoken.calls && { tool_calls: callsOf(spoken, (index) => `call_4Yh8sQ${index}`) }),
        },
        finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
      },
    ],
    usage: {
      prompt_tokens: tokensOf(asked),
      completion_tokens: 320,
      total_tokens: tokensOf(asked) + 320,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: spoken.reasoning ? 256 : 0, audio_tokens: 0 },
    },
    service_tier: 'default',
    system_fingerprint: null,
  }),
}

/** Every call must be followed by its result. */
function unanswered({ messages }: Asked): Answered | null {
  const answered = new Set(messages.flatMap(({ tool_call_id }) => tool_call_id ?? []))
  const open = messages.flatMap(({ tool_calls = [] }) => tool_calls).find(({ id }) => !answered.has(id))
  if (!open) return null
  const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.id}`
  return refused(400, message, 'messages', null)
}

function refused(status: number, message: string, param: string | null, code: string | null): Answered {
  return { status, body: { error: { message, type: 'invalid_request_error', param, code } } }
}

/**
 * openrouter.ai: many models and providers, of which one may have less of a window than its model.
 */
export const openRouter: ModelHost = {
  dialect: { calls: 'whole', index: 'each', usage: 'with the end', comment: 'OPENROUTER PROCESSING' },
  other: (path) =>
    path === '/api/v1/models'
      ? {
          data: [
            { id: 'openai/gpt-5-mini', context_length: 400_000, top_provider: { context_length: 400_000 } },
            {
              id: 'qwen/qwen3-235b-a22b',
              name: 'Qwen: Qwen3 235B A22B',
              created: 1745875757,
              context_length: 131_072,
              supported_parameters: ['max_tokens', 'temperature', 'tools', 'reasoning'],
              top_provider: { context_length: 40_960, max_completion_tokens: 40_960, is_moderated: false },
            },
          ],
        }
      : null,
  refuse: (_asked, headers) =>
    headers.authorization
      ? null
      : { status: 401, body: { error: { message: 'No auth credentials found', code: 401 } } },
  answer: (spoken, asked) => ({
    id: 'gen-1760000000-Zk',
    provider: 'DeepInfra',
    object: 'chat.completion',
    created: 1760000000,
    model: asked.model,
    choices: [
      {
        logprobs: null,
        index: 0,
        native_finish_reason: spoken.finish ?? 'stop',
        finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
        message: {
          role: 'assistant',
          content: spoken.content ?? '',
          refusal: null,
          reasoning: spoken.reasoning ?? null,
          ...(spoken.reasoning && {
            reasoning_details: [{ type: 'reasoning.text', text: spoken.reasoning, format: 'unknown', index: 0 }],
          }),
          ...(spoken.calls && { tool_calls: callsOf(spoken, (index) => `chatcmpl-tool-f${index}`) }),
        },
      },
    ],
    usage: {
      prompt_tokens: tokensOf(asked),
      completion_tokens: 60,
      total_tokens: tokensOf(asked) + 60,
      completion_tokens_details: { reasoning_tokens: spoken.reasoning ? 45 : 0 },
    },
  }),
}

/** What OpenRouter sends with status 200 when the provider fails after it began. */
export const providerFailed = {
  error: {
    message: 'Provider returned error',
    code: 502,
    metadata: { raw: 'upstream connect error', provider_name: 'DeepInfra' },
  },
  user_id: 'user_2z',
}
