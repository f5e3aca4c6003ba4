import { createHash } from 'node:crypto'
import type { Conversation } from './conversation.ts'
import type { Decision } from './facts.ts'
import type { Mood } from './moods.ts'

export const modelName = 'runbook-rules'
/** Wherever an answer is kept, this is kept with it. */
export const systemFingerprint = 'rule-table, not a language model'

export type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }
export type Message = { role: 'assistant'; content: string | null; tool_calls?: ToolCall[] }
export type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }
export type Completion = {
  id: string
  object: 'chat.completion'
  created: number
  model: string
  system_fingerprint: string
  choices: [{ index: 0; message: Message; logprobs: null; finish_reason: 'stop' | 'tool_calls' }]
  usage: Usage
}

/** A decision as the message of its protocol, with the two moods that only concern its form. */
export function messageOf(decision: Decision, { protocol, steps }: Conversation, mood: Mood | null): Message {
  const content = protocol === 'json' ? jsonContent(decision, mood) : nativeContent(decision, mood)
  if (protocol === 'json' || !('calls' in decision)) return { role: 'assistant', content }
  const turn = (steps.at(-1)?.turn ?? 0) + 1
  const tool_calls = decision.calls.map(({ tool, args }, i): ToolCall => {
    const json = JSON.stringify(args)
    // Ids need only be unique in a conversation.
    const id = `call_${createHash('sha256').update(`${turn}:${i}:${tool}:${json}`).digest('hex').slice(0, 24)}`
    return {
      id,
      type: 'function',
      function: { name: tool, arguments: mood === 'malformed_json' ? json.slice(0, -2) : json },
    }
  })
  return { role: 'assistant', content, tool_calls }
}

export function completionOf(message: Message, model: string, requestText: string): Completion {
  const prompt_tokens = tokens(requestText.length)
  const completion_tokens = tokens((message.content?.length ?? 0) + JSON.stringify(message.tool_calls ?? '').length)
  return {
    id: `chatcmpl-${createHash('sha256').update(requestText).digest('hex').slice(0, 24)}`,
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: systemFingerprint,
    choices: [{ index: 0, message, logprobs: null, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  }
}

/** The same answer as stream events, texts and arguments in pieces, without the closing `[DONE]`. */
export function chunksOf(completion: Completion, includeUsage: boolean): object[] {
  const { choices, usage, object: _, ...head } = completion
  const [{ message, finish_reason }] = choices
  const chunk = (delta: object, finish: string | null = null) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(includeUsage && { usage: null }),
  })
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(message.content ?? '').map((content) => chunk({ content })),
    ...(message.tool_calls ?? []).flatMap(({ id, type, function: { name, arguments: text } }, index) => [
      chunk({ tool_calls: [{ index, id, type, function: { name, arguments: '' } }] }),
      ...pieces(text).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    chunk({}, finish_reason),
    ...(includeUsage ? [{ ...head, object: 'chat.completion.chunk', choices: [], usage }] : []),
  ]
}

function nativeContent(decision: Decision, mood: Mood | null): string {
  if (mood === 'both_blocks') return `${decision.say} ${JSON.stringify({ final_answer: claim })}`
  return decision.say
}

function jsonContent(decision: Decision, mood: Mood | null): string {
  const block =
    'calls' in decision
      ? { tool_call: { name: decision.calls[0]!.tool, parameters: decision.calls[0]!.args } }
      : { final_answer: decision.answer }
  // A model that misbehaves so does not keep the protocol either.
  if (mood && withoutProtocol.includes(mood)) return decision.say
  if (mood === 'both_blocks') return `${JSON.stringify(block)}\n${JSON.stringify({ final_answer: claim })}`
  return mood === 'malformed_json' ? JSON.stringify(block).slice(0, -2) : JSON.stringify(block)
}

const withoutProtocol: Mood[] = ['prose', 'nothing', 'oversized']
const claim = { summary: 'The incident is resolved.', confidence: 'high' }

function tokens(chars: number): number {
  return Math.ceil(chars / 4)
}

/** About sixteen pieces, so that a reader has to put them together and a huge answer has few events. */
function pieces(text: string): string[] {
  const size = Math.max(12, Math.ceil(text.length / 16))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
}
