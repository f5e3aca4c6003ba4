import { type Answered, type Asked, callsOf, type ModelHost, tokensOf, unknownOf } from './host.ts'

const known = [
  ...[
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
  ],
  ...['temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'reasoning_effort', 'response_format', 'stop'],
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
    ...{ id: 'chatcmpl-CQ1', object: 'chat.completion', created: 1760000000, model: `${asked.model}-2025-08-07` },
    choices: [
      {
        index: 0,
        message: {
          ...{ role: 'assistant', content: spoken.content ?? null, refusal: null, annotations: [] },
          ...(spoken.calls && { tool_calls: callsOf(spoken, (index) => `call_4Yh8sQ${index}`) }),
        },
        finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
      },
    ],
    usage: {
      ...{ prompt_tokens: tokensOf(asked), completion_tokens: 320, total_tokens: tokensOf(asked) + 320 },
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: spoken.reasoning ? 256 : 0, audio_tokens: 0 },
    },
    ...{ service_tier: 'default', system_fingerprint: null },
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

/** openrouter.ai: many models and providers, of which one may have less of a window than its model. */
export const openRouter: ModelHost = {
  dialect: { calls: 'whole', index: 'each', usage: 'with the end', comment: 'OPENROUTER PROCESSING' },
  other: (path) =>
    path === '/api/v1/models'
      ? {
          data: [
            { id: 'openai/gpt-5-mini', context_length: 400_000, top_provider: { context_length: 400_000 } },
            {
              ...{ id: 'qwen/qwen3-235b-a22b', name: 'Qwen: Qwen3 235B A22B', created: 1745875757 },
              ...{ context_length: 131_072, supported_parameters: ['max_tokens', 'temperature', 'tools', 'reasoning'] },
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
    ...{ id: 'gen-1760000000-Zk', provider: 'DeepInfra', object: 'chat.completion', created: 1760000000 },
    model: asked.model,
    choices: [
      {
        ...{ logprobs: null, index: 0, native_finish_reason: spoken.finish ?? 'stop' },
        finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
        message: {
          ...{ role: 'assistant', content: spoken.content ?? '', refusal: null, reasoning: spoken.reasoning ?? null },
          ...(spoken.reasoning && {
            reasoning_details: [{ type: 'reasoning.text', text: spoken.reasoning, format: 'unknown', index: 0 }],
          }),
          ...(spoken.calls && { tool_calls: callsOf(spoken, (index) => `chatcmpl-tool-f${index}`) }),
        },
      },
    ],
    usage: {
      ...{ prompt_tokens: tokensOf(asked), completion_tokens: 60, total_tokens: tokensOf(asked) + 60 },
      completion_tokens_details: { reasoning_tokens: spoken.reasoning ? 45 : 0 },
    },
  }),
}

/** What OpenRouter sends with status 200 when the provider fails after it began. */
export const providerFailed = {
  error: {
    ...{ message: 'Provider returned error', code: 502 },
    metadata: { raw: 'upstream connect error', provider_name: 'DeepInfra' },
  },
  user_id: 'user_2z',
}
