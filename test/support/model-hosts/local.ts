import { type Answered, type Asked, callsOf, type ModelHost, tokensOf, unknownOf } from './host.ts'

type LlamaCppOptions = { window: number; isLoading?: () => boolean; hasJinja?: boolean; takesSchema?: boolean }

/**
 * `llama-server`: a slot's `n_ctx` stands in `/props`, while the list of models names what the
 * model was trained with.
 */
export const llamaCpp = (options: LlamaCppOptions): ModelHost => ({
  dialect: { calls: 'pieces', index: 'each', usage: 'with the end' },
  other(path) {
    if (path === '/v1/models') {
      const meta = {
        vocab_type: 2,
        n_vocab: 151936,
        n_ctx_train: 131072,
        n_embd: 4096,
        n_params: 8190735360,
        size: 5022,
      }
      const entry = { id: 'qwen3-8b.gguf', object: 'model', created: 1760000000, owned_by: 'llamacpp', meta }
      return { object: 'list', data: [entry] }
    }
    if (!path.startsWith('/props')) return null
    return {
      default_generation_settings: {
        id: 0,
        n_ctx: options.window,
        speculative: false,
        is_processing: false,
        params: {},
      },
      total_slots: 1,
      model_path: '/models/qwen3-8b.gguf',
      build_info: 'b6500-c4f4',
      is_sleeping: false,
    }
  },
  refuse(asked) {
    if (options.isLoading?.()) return refused(503, 'Loading model', 'unavailable_error')
    if (options.hasJinja === false && asked.tools)
      return refused(500, 'tools param requires --jinja flag', 'server_error')
    // Builds of early 2025 said this of a schema alone.
    if (options.takesSchema === false && 'response_format' in asked)
      return refused(400, 'Either "json_schema" or "grammar" can be specified, but not both', 'invalid_request_error')
    return tooLong(options, asked)
  },
  answer: (spoken, asked) => ({
    choices: [
      {
        finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
        index: 0,
        message: {
          role: 'assistant',
          content: spoken.content ?? null,
          ...(spoken.reasoning && { reasoning_content: spoken.reasoning }),
          // Some templates give calls no id.
          ...(spoken.calls && { tool_calls: callsOf(spoken, () => '') }),
        },
      },
    ],
    created: 1760000000,
    model: asked.model,
    system_fingerprint: 'b6500-c4f4',
    object: 'chat.completion',
    usage: { completion_tokens: 40, prompt_tokens: tokensOf(asked), total_tokens: tokensOf(asked) + 40 },
    timings: { prompt_n: 20, prompt_ms: 180.2, predicted_n: 40, predicted_ms: 900.1, predicted_per_second: 44.4 },
  }),
})

/**
 * What a grammar lets a model write, as an expression: rules that contain themselves are written
 * out four deep.
 */
export function allowedBy(grammar: string): RegExp {
  const rules = new Map(
    grammar
      .trim()
      .split('\n')
      .map((line) => line.split(/ ::= (.*)/s) as [string, string]),
  )
  const expand = (name: string, inside: readonly string[]): string => {
    const body = rules.get(name)
    if (body === undefined) throw new Error(`the grammar has no rule ${name}`)
    if (inside.filter((each) => each === name).length > 3) return '(?!)'
    const tokens = body.match(/"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-z0-9-]+|[()|*?+]/g) ?? []
    const parts = tokens.map((token) => {
      if (token.startsWith('"')) return (JSON.parse(token) as string).replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
      return /^[[()|*?+]/.test(token) ? token.replace(/^\($/, '(?:') : expand(token, [...inside, name])
    })
    return `(?:${parts.join('')})`
  }
  return new RegExp(`^${expand('root', [])}$`)
}

function tooLong({ window }: LlamaCppOptions, asked: Asked): Answered | null {
  const count = tokensOf(asked)
  if (count <= window) return null
  const message = `request (${count} tokens) exceeds the available context size (${window} tokens), try increasing it`
  return {
    status: 400,
    body: { error: { code: 400, message, type: 'exceed_context_size_error', n_prompt_tokens: count, n_ctx: window } },
  }
}

function refused(status: number, message: string, type: string): Answered {
  return { status, body: { error: { code: status, message, type } } }
}

type OllamaOptions = {
  /** `PARAMETER num_ctx` of the model, and what it is loaded with once it is. */
  parameter?: number
  loaded?: () => number | null
  /** `OLLAMA_CONTEXT_LENGTH` of the server. */
  environment?: number
  takesTools?: boolean
}

/**
 * Ollama reads what it knows of a body, passes over the rest, and cuts off the oldest messages that
 * do not fit.
 */
export const ollama = (options: OllamaOptions): ModelHost => {
  let isLoaded = false
  const window = () => options.loaded?.() ?? options.parameter ?? options.environment ?? 4096
  return {
    dialect: { calls: 'whole', index: 'zero', usage: 'asked' },
    other(path, body) {
      if (path === '/v1/models') {
        return { object: 'list', data: [{ id: 'qwen3:8b', object: 'model', created: 1760000000, owned_by: 'library' }] }
      }
      if (path === '/api/version') return { version: '0.12.6' }
      if (path === '/api/ps') {
        const length = options.loaded?.() ?? (isLoaded ? window() : null)
        const model = {
          name: 'qwen3:8b',
          model: 'qwen3:8b',
          size: 6654289920,
          digest: '500a1f06',
          context_length: length,
        }
        return { models: length === null ? [] : [model] }
      }
      if (path === '/api/generate' && body?.model === 'qwen3:8b') {
        isLoaded = true
        return { model: 'qwen3:8b', created_at: '2026-05-01T10:00:00Z', response: '', done: true, done_reason: 'load' }
      }
      if (path !== '/api/show' || body?.model !== 'qwen3:8b') return null
      return {
        parameters: `stop                           "<|im_end|>"${options.parameter ? `\nnum_ctx                        ${options.parameter}` : ''}`,
        model_info: {
          'general.architecture': 'qwen3',
          'general.parameter_count': 8190735360,
          'qwen3.context_length': 40960,
        },
        capabilities: ['completion', 'tools', 'thinking'],
        modified_at: '2026-05-01T10:00:00Z',
      }
    },
    refuse(asked) {
      if (asked.model !== 'qwen3:8b') {
        const message = `model "${asked.model}" not found, try pulling it first`
        return { status: 404, body: { error: { message, type: 'api_error', param: null, code: null } } }
      }
      if (options.takesTools === false && asked.tools) {
        const message = 'registry.ollama.ai/library/qwen3:8b does not support tools'
        return { status: 400, body: { error: { message, type: 'api_error', param: null, code: null } } }
      }
      isLoaded = true
      cutOff(asked, window())
      return null
    },
    answer: (spoken, asked) => ({
      id: 'chatcmpl-842',
      object: 'chat.completion',
      created: 1760000000,
      model: asked.model,
      system_fingerprint: 'fp_ollama',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: spoken.content ?? '',
            ...(spoken.reasoning && { reasoning: spoken.reasoning }),
            ...(spoken.calls && { tool_calls: callsOf(spoken, (index) => `call_kx2${index}`) }),
          },
          finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
        },
      ],
      usage: {
        prompt_tokens: Math.min(tokensOf(asked), window()),
        completion_tokens: 40,
        total_tokens: Math.min(tokensOf(asked), window()) + 40,
      },
    }),
  }
}

/** In place, so that a test sees what the model saw. */
function cutOff(asked: Asked, window: number): void {
  const first = asked.messages[0]?.role === 'system' ? 1 : 0
  while (tokensOf(asked) > window && asked.messages.length > first + 1) asked.messages.splice(first, 1)
}

export type VllmOptions = {
  window: number
  /** Before 0.6 every parameter that it did not know was refused, in a form of its own. */
  isOld?: boolean
  /** The template's own demands. */
  template?: 'mistral' | 'gemma'
  /** Without `--reasoning-parser` the reasoning stays in the text, without its opening mark. */
  parsesReasoning?: boolean
}

const known = [
  'model',
  'messages',
  'tools',
  'tool_choice',
  'temperature',
  'top_p',
  'max_tokens',
  'stream',
  'seed',
  'stop',
  'n',
]

export const vllm = (options: VllmOptions): ModelHost => ({
  dialect: { calls: 'pieces', index: 'each', usage: 'asked', ...(options.isOld && { isClosed: false }) },
  other: (path) =>
    path === '/v1/models'
      ? {
          object: 'list',
          data: [
            {
              // Made up at every request.
              id: 'qwen3',
              object: 'model',
              created: Math.floor(Date.now() / 1000),
              owned_by: 'vllm',
              root: 'Qwen/Qwen3-32B-AWQ',
              parent: null,
              max_model_len: options.window,
              permission: [{ id: `modelperm-${Math.random()}`, object: 'model_permission', allow_sampling: true }],
            },
          ],
        }
      : null,
  refuse(asked) {
    const [unknown] = unknownOf(asked, known)
    if (options.isOld && unknown) {
      const message = `[{'type': 'extra_forbidden', 'loc': ('body', '${unknown}'), 'msg': 'Extra inputs are not permitted', 'input': 800}]`
      return { status: 400, body: { object: 'error', message, type: 'BadRequestError', param: null, code: 400 } }
    }
    return badTemplate(options, asked) ?? vllmTooLong(options, asked)
  },
  answer: (spoken, asked) => ({
    id: 'chatcmpl-9d1f',
    object: 'chat.completion',
    created: 1760000000,
    model: asked.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          ...(options.parsesReasoning
            ? { content: spoken.content ?? null, reasoning_content: spoken.reasoning ?? null }
            : { content: `${spoken.reasoning ? `${spoken.reasoning}</think>\n\n` : ''}${spoken.content ?? ''}` }),
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          tool_calls: callsOf(spoken, (index) => `chatcmpl-tool-7c${index}`),
        },
        logprobs: null,
        finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
        stop_reason: null,
      },
    ],
    usage: {
      prompt_tokens: tokensOf(asked),
      total_tokens: tokensOf(asked) + 40,
      completion_tokens: 40,
      prompt_tokens_details: null,
    },
    prompt_logprobs: null,
    kv_transfer_params: null,
  }),
})

function vllmTooLong({ window }: VllmOptions, asked: Asked): Answered | null {
  const input = tokensOf(asked)
  const limit = Number(asked.max_completion_tokens ?? asked.max_tokens ?? 1)
  if (input + limit <= window) return null
  return vllmRefused(
    `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${window} tokens and your request has ${input} input tokens (${limit} > ${window} - ${input}).`,
  )
}

function badTemplate({ template }: VllmOptions, { messages }: Asked): Answered | null {
  if (template === 'gemma' && messages.some(({ role }) => role === 'system'))
    return vllmRefused('System role not supported')
  const spoken = messages.filter(({ role }) => role === 'user' || role === 'assistant')
  const isTwice = spoken.some(({ role }, index) => role === 'user' && spoken[index - 1]?.role === 'user')
  if (template && isTwice) {
    return vllmRefused(
      'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...',
    )
  }
  const ids = messages.flatMap((each) =>
    [...(each.tool_calls ?? []).map(({ id }) => id), each.tool_call_id ?? []].flat(),
  )
  if (template === 'mistral' && ids.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id))) {
    return vllmRefused('Tool call IDs should be alphanumeric strings with length 9!')
  }
  return null
}

function vllmRefused(message: string): Answered {
  return { status: 400, body: { error: { message, type: 'BadRequestError', param: null, code: 400 } } }
}
