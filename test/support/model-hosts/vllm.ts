import { type Answered, type Asked, callsOf, type ModelHost, tokensOf, unknownOf } from './host.ts'

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
  other: (path) =>
    path === '/v1/models'
      ? {
          object: 'list',
          data: [
            {
              // Made up at every request.
              ...{ id: 'qwen3', object: 'model', created: Math.floor(Date.now() / 1000), owned_by: 'vllm' },
              ...{ root: 'Qwen/Qwen3-32B-AWQ', parent: null, max_model_len: options.window },
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
    return badTemplate(options, asked) ?? tooLong(options, asked)
  },
  answer: (spoken, asked) => ({
    ...{ id: 'chatcmpl-9d1f', object: 'chat.completion', created: 1760000000, model: asked.model },
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          ...(options.parsesReasoning
            ? { content: spoken.content ?? null, reasoning_content: spoken.reasoning ?? null }
            : { content: `${spoken.reasoning ? `${spoken.reasoning}</think>\n\n` : ''}${spoken.content ?? ''}` }),
          ...{ refusal: null, annotations: null, audio: null, function_call: null },
          tool_calls: callsOf(spoken, (index) => `chatcmpl-tool-7c${index}`),
        },
        ...{
          logprobs: null,
          finish_reason: spoken.finish ?? (spoken.calls ? 'tool_calls' : 'stop'),
          stop_reason: null,
        },
      },
    ],
    usage: {
      ...{ prompt_tokens: tokensOf(asked), total_tokens: tokensOf(asked) + 40, completion_tokens: 40 },
      prompt_tokens_details: null,
    },
    ...{ prompt_logprobs: null, kv_transfer_params: null },
  }),
})

function tooLong({ window }: VllmOptions, asked: Asked): Answered | null {
  const input = tokensOf(asked)
  const limit = Number(asked.max_completion_tokens ?? asked.max_tokens ?? 1)
  if (input + limit <= window) return null
  return refused(
    `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${window} tokens and your request has ${input} input tokens (${limit} > ${window} - ${input}).`,
  )
}

function badTemplate({ template }: VllmOptions, { messages }: Asked): Answered | null {
  if (template === 'gemma' && messages.some(({ role }) => role === 'system'))
    return refused('System role not supported')
  const spoken = messages.filter(({ role }) => role === 'user' || role === 'assistant')
  const isTwice = spoken.some(({ role }, index) => role === 'user' && spoken[index - 1]?.role === 'user')
  if (template && isTwice) {
    return refused(
      'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...',
    )
  }
  const ids = messages.flatMap((each) =>
    [...(each.tool_calls ?? []).map(({ id }) => id), each.tool_call_id ?? []].flat(),
  )
  if (template === 'mistral' && ids.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id))) {
    return refused('Tool call IDs should be alphanumeric strings with length 9!')
  }
  return null
}

function refused(message: string): Answered {
  return { status: 400, body: { error: { message, type: 'BadRequestError', param: null, code: 400 } } }
}
