import type { ChatMessage, ChatTool, RequestShape } from '../../domain/chat.ts'

/** Builds a request body for a chat-completions server, with the grammar for a response in text. */

/**
 * Converts a JSON schema to a grammar in GBNF, which llama.cpp and the servers built on it accept
 * as `grammar` (https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md).
 */
type Schema = Record<string, unknown>

/**
 * The basic rules of a grammar. White space between tokens is limited, because a small model could
 * write white space up to its token limit.
 */
const primitives: Readonly<Record<string, string>> = {
  ws: '[ \\n]? " "? " "? " "? " "?',
  hex: '[0-9a-fA-F]',
  string: '"\\"" ( [^"\\\\\\x00-\\x1F] | "\\\\" ( ["\\\\/bfnrt] | "u" hex hex hex hex ) )* "\\""',
  integer: '"-"? ( "0" | [1-9] [0-9]* )',
  number: 'integer ( "." [0-9]+ )? ( [eE] [-+]? [0-9]+ )?',
  boolean: '"true" | "false"',
  null: '"null"',
  value: 'object | array | string | number | boolean | null',
  array: '"[" ws ( value ( ws "," ws value )* )? ws "]"',
  object: '"{" ws ( string ws ":" ws value ( ws "," ws string ws ":" ws value )* )? ws "}"',
}

/**
 * Makes the grammar of a schema: objects with properties in the written order (required ones
 * first), lists, `anyOf`, `enum` and plain types. Ignores other keywords, so the grammar may allow
 * more.
 */
export function toGrammar(schema: Schema): string {
  const rules = new Map<string, string>()
  const root = ruleOf(schema, 'answer', rules)
  const written = [['root', `ws ${root} ws`], ...rules, ...Object.entries(primitives)]
  return `${written.map(([name, body]) => `${name} ::= ${body}`).join('\n')}\n`
}

/** Returns the name of the rule for a schema, and adds the rule unless it is a primitive. */
function ruleOf(schema: Schema, name: string, rules: Map<string, string>): string {
  const { anyOf, enum: words, type, properties, items } = schema
  const add = (body: string) => {
    rules.set(name, body)
    return name
  }
  if (Array.isArray(anyOf))
    return add(anyOf.map((each, at) => ruleOf(each as Schema, `${name}-${at + 1}`, rules)).join(' | '))
  if (Array.isArray(words)) return add(words.map((word) => quote(JSON.stringify(word))).join(' | '))
  if (type === 'array' && isSchema(items)) {
    const item = ruleOf(items, `${name}-item`, rules)
    return add(`"[" ws ( ${item} ( ws "," ws ${item} )* )? ws "]"`)
  }
  if (type === 'object' && isSchema(properties)) return add(objectBody(schema, properties, name, rules))
  return typeof type === 'string' && type in primitives ? type : 'value'
}

function objectBody(schema: Schema, properties: Schema, name: string, rules: Map<string, string>): string {
  const required = Array.isArray(schema.required) ? schema.required : []
  const pairOf = (key: string) => {
    const rule = ruleOf(properties[key] as Schema, `${name}-${key.replace(/[^a-zA-Z0-9]/g, '-')}`, rules)
    return `${quote(JSON.stringify(key))} ws ":" ws ${rule}`
  }
  const keys = Object.keys(properties)
  const must = keys.filter((key) => required.includes(key)).map(pairOf)
  const may = keys.filter((key) => !required.includes(key)).map(pairOf)
  if (must.length === 0) return may.length === 0 ? 'object' : `"{" ws ( ${may.join(' | ')} )? ws "}"`
  const more = may.map((pair) => ` ( ws "," ws ${pair} )?`).join('')
  return `"{" ws ${must.join(' ws "," ws ')}${more} ws "}"`
}

const isSchema = (value: unknown): value is Schema =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Quotes a text as a literal of a grammar. */
const quote = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`

type Asked = {
  model: string
  messages: ChatMessage[]
  tools?: ChatTool[]
  temperature: number
  maxTokens: number
  /** The schema that a response in text must follow. */
  form?: Record<string, unknown>
  /** True if the server supports only one call per response. */
  isOneCall?: boolean
}

/**
 * Returns the token limit of a request: the requested limit with room for reasoning, but at most
 * the server's maximum and `maxWithReasoning`.
 */
export function answerTokens(
  shape: RequestShape,
  maxTokens: number,
  maxWithReasoning = Number.POSITIVE_INFINITY,
): number {
  const wished = Math.max(maxTokens, Math.min(maxTokens * shape.headroom, maxWithReasoning))
  return Math.min(wished, shape.mostTokens ?? wished)
}

/** Builds the body of a request in the shape that the server accepts. */
export function requestBody(
  shape: RequestShape,
  asked: Asked & { maxWithReasoning?: number },
): Record<string, unknown> {
  const limit = answerTokens(shape, asked.maxTokens, asked.maxWithReasoning)
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
  if (shape.turns !== 'free') messages = joined(messages)
  if (shape.calls === 'single') messages = oneCallEach(messages)
  // Runs after the calls are split: otherwise a result would stand between the calls.
  if (shape.turns === 'answered') messages = withAnswers(messages)
  if (shape.callIds === 'nine') messages = withShortIds(messages)
  if (shape.reasoning === 'empty') {
    messages = messages.map((each) => (each.role === 'assistant' ? { ...each, reasoning_content: '' } : each))
  }
  return messages
}

function asUser(message: ChatMessage): ChatMessage {
  return message.role === 'system' ? { ...message, role: 'user' } : message
}

/** Joins consecutive user messages. Assistant messages and results stay as they are. */
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

/** Inserts an assistant message between a tool's result and the next user message. */
function withAnswers(messages: readonly Sent[]): Sent[] {
  return messages.flatMap((message, at): Sent[] =>
    message.role === 'user' && messages[at - 1]?.role === 'tool'
      ? [{ role: 'assistant', content: 'I read the results.' }, message]
      : [message],
  )
}

/**
 * Splits an assistant message with several calls into one message per call, each followed by its
 * result.
 */
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

/** Replaces each id by its place among all ids, equally for a call and its result. */
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
