import { callsOf, type ModelHost, tokensOf } from './host.ts'

/** openrouter.ai: many models and providers, of which one may have less of a window than its model. */
export const openRouter: ModelHost = {
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
