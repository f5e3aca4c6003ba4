import { z } from 'zod'

/** A message as every chat-completions server takes it: what the transcript is folded into. */
export type ChatMessage =
  | { role: 'system' | 'user'; content: string }
  | {
      role: 'assistant'
      content: string | null
      tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
    }
  | { role: 'tool'; tool_call_id: string; content: string }

/** A call in an answer. `arguments` is text as the model wrote it: JSON if all went well. */
type ChatToolCall = { id: string; name: string; arguments: string }

export type ChatTool = {
  type: 'function'
  function: { name: string; description: string; parameters: Record<string, unknown> }
}

/** `completionTokens` holds those of reasoning too; how many these were only some servers count. */
export type TokenUsage = { promptTokens: number; completionTokens: number; reasoningTokens?: number }

export type ChatAnswer = {
  /** Without reasoning that came in a separate field. */
  content: string
  toolCalls: ChatToolCall[]
  /** The server's word: `stop`, `tool_calls`, `length`, … */
  finishReason: string
  /** Zero where the server counts nothing. */
  usage: TokenUsage
  /** The model that answered, by its own name. */
  model: string
  durationMs: number
}

/**
 * How a server of models wants its requests where it differs from what most take. Every word is one of ours: what a server says
 * chooses among them and adds nothing.
 */
export const requestShape = z.object({
  /** The name of the limit of an answer. */
  limit: z.enum(['max_tokens', 'max_completion_tokens', 'none']).catch('max_tokens'),
  /** The largest limit the server takes. */
  mostTokens: z.number().int().positive().nullable().catch(null),
  /** The limit times this, for a model that reasons before it answers and whose server counts both. */
  headroom: z.number().int().min(1).max(16).catch(1),
  temperature: z.enum(['sent', 'omitted']).catch('sent'),
  /** `merged`: the template knows no system message, so its text leads the first message of the user. */
  system: z.enum(['sent', 'merged']).catch('sent'),
  /** `alternating`: the template takes no two messages of the user in a row. */
  turns: z.enum(['free', 'alternating']).catch('free'),
  /** `nine`: letters and digits, nine of them, as Mistral's templates count. */
  callIds: z.enum(['own', 'nine']).catch('own'),
  /** `empty`: an answer with calls goes back with an empty `reasoning_content`, which DeepSeek insists on. */
  reasoning: z.enum(['omitted', 'empty']).catch('omitted'),
})
export type RequestShape = z.infer<typeof requestShape>

export const plainShape: RequestShape = requestShape.parse({})

/** The shape in words, for people: what differs from the plain one. */
export function shapeInWords(shape: RequestShape): string[] {
  return [
    ...(shape.limit === 'max_completion_tokens' ? ['max_completion_tokens instead of max_tokens'] : []),
    ...(shape.limit === 'none' ? ['no limit of tokens'] : []),
    ...(shape.mostTokens === null ? [] : [`at most ${shape.mostTokens} tokens an answer`]),
    ...(shape.headroom === 1 ? [] : [`${shape.headroom} times the limit, for it reasons first`]),
    ...(shape.temperature === 'omitted' ? ['no temperature'] : []),
    ...(shape.system === 'merged' ? ['no system message'] : []),
    ...(shape.turns === 'alternating' ? ['no two messages of the user in a row'] : []),
    ...(shape.callIds === 'nine' ? ['call ids of nine characters'] : []),
    ...(shape.reasoning === 'empty' ? ['an empty reasoning_content in answers'] : []),
  ]
}
