import { type Asked, callsOf, type ModelHost, tokensOf } from './host.ts'

type OllamaOptions = {
  /** `PARAMETER num_ctx` of the model, and what it is loaded with once it is. */
  parameter?: number
  loaded?: () => number | null
  /** `OLLAMA_CONTEXT_LENGTH` of the server. */
  environment?: number
  takesTools?: boolean
}

/** Ollama reads what it knows of a body, passes over the rest, and cuts off the oldest messages that do not fit. */
export const ollama = (options: OllamaOptions): ModelHost => {
  let isLoaded = false
  const window = () => options.loaded?.() ?? options.parameter ?? options.environment ?? 4096
  return {
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
        ...{ capabilities: ['completion', 'tools', 'thinking'], modified_at: '2026-05-01T10:00:00Z' },
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
      ...{ id: 'chatcmpl-842', object: 'chat.completion', created: 1760000000, model: asked.model },
      system_fingerprint: 'fp_ollama',
      choices: [
        {
          index: 0,
          message: {
            ...{ role: 'assistant', content: spoken.content ?? '' },
            ...(spoken.reasoning && { reasoning: spoken.reasoning }),
            ...(spoken.calls && { tool_calls: callsOf(spoken, (index) => `call_kx2${index}`) }),
          },
          finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
        },
      ],
      usage: {
        prompt_tokens: Math.min(tokensOf(asked), window()),
        ...{ completion_tokens: 40, total_tokens: Math.min(tokensOf(asked), window()) + 40 },
      },
    }),
  }
}

/** In place, so that a test sees what the model saw. */
function cutOff(asked: Asked, window: number): void {
  const first = asked.messages[0]?.role === 'system' ? 1 : 0
  while (tokensOf(asked) > window && asked.messages.length > first + 1) asked.messages.splice(first, 1)
}
