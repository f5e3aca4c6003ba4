import type { ChatMessage, ChatTool, RequestShape } from '../../domain/chat.ts'
import { toGrammar } from './grammar.ts'

type Asked = {
  model: string
  messages: ChatMessage[]
  tools?: ChatTool[]
  temperature: number
  maxTokens: number
  /** The schema that an answer in text has to keep. */
  form?: Record<string, unknown>
  /** The server can do no more than one call an answer. */
  isOneCall?: boolean
}

/** The limit that goes out: what was asked, with room for reasoning, no more than the server takes or `mostTokens` allows. */
export function answerTokens(shape: RequestShape, maxTokens: number, mostTokens = Number.POSITIVE_INFINITY): number {
  const wished = Math.max(maxTokens, Math.min(maxTokens * shape.headroom, mostTokens))
  return Math.min(wished, shape.mostTokens ?? wished)
}

/** The body of a request in the shape that its server takes. */
export function requestBody(shape: RequestShape, asked: Asked & { mostTokens?: number }): Record<string, unknown> {
  const limit = answerTokens(shape, asked.maxTokens, asked.mostTokens)
  return {
    model: asked.model,
    messages: shapedMessages(shape, asked.messages),
    ...(shape.temperature === 'sent' && { temperature: asked.temperature }),
    ...(shape.limit !== 'none' && { [shape.limit]: limit }),
    ...(shape.stream !== 'off' && { stream: true }),
    ...(shape.stream === 'usage' && { stream_options: { include_usage: true } }),
    ...(asked.tools && asked.tools.length > 0 ? offered(shape, asked.tools, asked.isOneCall === true) : {}),
    ...(asked.form && formed(shape, asked.form)),
  }
}

function offered(shape: RequestShape, tools: ChatTool[], isOneCall: boolean): Record<string, unknown> {
  const isSingle = isOneCall || shape.calls === 'single'
  return { tools, ...(isSingle && shape.parallel === 'sent' && { parallel_tool_calls: false }) }
}

function formed({ form }: RequestShape, schema: Record<string, unknown>): Record<string, unknown> {
  if (form === 'words') return {}
  if (form === 'grammar') return { grammar: toGrammar(schema) }
  if (form === 'guided') return { guided_json: schema }
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }
}

type Sent = ChatMessage | (Extract<ChatMessage, { role: 'assistant' }> & { reasoning_content: string })

function shapedMessages(shape: RequestShape, given: ChatMessage[]): Sent[] {
  let messages: Sent[] = shape.system === 'merged' ? given.map(asUser) : given
  if (shape.turns === 'alternating') messages = joined(messages)
  if (shape.calls === 'single') messages = oneCallEach(messages)
  if (shape.callIds === 'nine') messages = withShortIds(messages)
  if (shape.reasoning === 'empty') {
    messages = messages.map((each) => (each.role === 'assistant' ? { ...each, reasoning_content: '' } : each))
  }
  return messages
}

function asUser(message: ChatMessage): ChatMessage {
  return message.role === 'system' ? { ...message, role: 'user' } : message
}

/** Neighbours of the user become one message; answers and results stay as they are. */
function joined(messages: readonly Sent[]): Sent[] {
  const result: Sent[] = []
  for (const message of messages) {
    const last = result.at(-1)
    if (message.role === 'user' && last?.role === 'user') {
      result[result.length - 1] = { ...last, content: `${last.content}\n\n${message.content}` }
    } else result.push(message)
  }
  return result
}

/** An answer with several calls becomes one answer for each, followed by that call's result. */
function oneCallEach(messages: readonly Sent[]): Sent[] {
  const results = new Map(
    messages.flatMap((each) => (each.role === 'tool' ? [[each.tool_call_id, each] as const] : [])),
  )
  const moved = new Set<string>()
  return messages.flatMap((message): Sent[] => {
    if (message.role === 'tool') return moved.has(message.tool_call_id) ? [] : [message]
    if (message.role !== 'assistant' || (message.tool_calls?.length ?? 0) < 2) return [message]
    return (message.tool_calls ?? []).flatMap((call, index): Sent[] => {
      const result = results.get(call.id)
      if (result) moved.add(call.id)
      const said = { ...message, content: index === 0 ? message.content : null, tool_calls: [call] }
      return result ? [said, result] : [said]
    })
  })
}

/** Each id by its place among all ids, so that a call and its result keep the same one. */
function withShortIds(messages: readonly Sent[]): Sent[] {
  const places = new Map<string, number>()
  const short = (id: string) => {
    const place = places.get(id) ?? places.size
    places.set(id, place)
    return `c${String(place).padStart(8, '0')}`
  }
  return messages.map((message) => {
    if (message.role === 'tool') return { ...message, tool_call_id: short(message.tool_call_id) }
    if (message.role !== 'assistant' || !message.tool_calls) return message
    return { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, id: short(call.id) })) }
  })
}
