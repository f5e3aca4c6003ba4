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
