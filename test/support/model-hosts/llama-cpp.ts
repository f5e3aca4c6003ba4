import { type Answered, type Asked, callsOf, type ModelHost, tokensOf } from './host.ts'

type LlamaCppOptions = { window: number; isLoading?: () => boolean; hasJinja?: boolean }

/** `llama-server`: a slot's `n_ctx` stands in `/props`, while the list of models names what the model was trained with. */
export const llamaCpp = (options: LlamaCppOptions): ModelHost => ({
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
      ...{ total_slots: 1, model_path: '/models/qwen3-8b.gguf', build_info: 'b6500-c4f4', is_sleeping: false },
    }
  },
  refuse(asked) {
    if (options.isLoading?.()) return refused(503, 'Loading model', 'unavailable_error')
    if (options.hasJinja === false && asked.tools)
      return refused(500, 'tools param requires --jinja flag', 'server_error')
    return tooLong(options, asked)
  },
  answer: (spoken, asked) => ({
    choices: [
      {
        ...{ finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'), index: 0 },
        message: {
          ...{ role: 'assistant', content: spoken.content ?? null },
          ...(spoken.reasoning && { reasoning_content: spoken.reasoning }),
          // Some templates give calls no id.
          ...(spoken.calls && { tool_calls: callsOf(spoken, () => '') }),
        },
      },
    ],
    ...{ created: 1760000000, model: asked.model, system_fingerprint: 'b6500-c4f4', object: 'chat.completion' },
    usage: { completion_tokens: 40, prompt_tokens: tokensOf(asked), total_tokens: tokensOf(asked) + 40 },
    timings: { prompt_n: 20, prompt_ms: 180.2, predicted_n: 40, predicted_ms: 900.1, predicted_per_second: 44.4 },
  }),
})

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
