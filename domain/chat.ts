import { z } from 'zod'

/**
 * A message in the form that every chat-completions server accepts. The transcript is converted to
 * messages of this form.
 */
export type ChatMessage =
  | { role: 'system' | 'user'; content: string }
  | {
      role: 'assistant'
      content: string | null
      tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
    }
  | { role: 'tool'; tool_call_id: string; content: string }

/** A call of a tool in a response. `arguments` is text as the model wrote it, usually JSON. */
type ChatToolCall = { id: string; name: string; arguments: string }

export type ChatTool = {
  type: 'function'
  function: { name: string; description: string; parameters: Record<string, unknown> }
}

/**
 * Counts of tokens of one request and response. `completionTokens` includes the tokens of
 * reasoning, which only some servers count separately.
 */
export type TokenUsage = {
  promptTokens: number
  completionTokens: number
  reasoningTokens?: number
  /**
   * True if the token counts are estimated from the bytes sent and received, because the server's
   * counts are absent or impossible.
   */
  isAssumed?: boolean
}

export type ChatAnswer = {
  /** The text of the response, without reasoning that arrived in a separate field. */
  content: string
  /**
   * The end of the reasoning if the response has no other text, because the reasoning may contain a
   * call. Never stored.
   */
  reasoning?: string
  toolCalls: ChatToolCall[]
  /** The server's reason for the end of the response: `stop`, `tool_calls`, `length`, … */
  finishReason: string
  usage: TokenUsage
  /** The model that answered, by the name that the server reports. */
  model: string
  durationMs: number
}

/** The progress of an unfinished response. */
export type Writing = {
  /**
   * The number of pieces that a server sent one by one, including reasoning. A piece is about one
   * token.
   */
  pieces: number
  /**
   * The number of tokens according to the server. Null if the server counts only at the end, or
   * never.
   */
  counted: number | null
  /** The response so far, without reasoning from a separate field. Untrusted, never stored. */
  content: string
  /** The call that the model is writing: its name and the arguments so far. */
  call: { name: string; arguments: string } | null
}

/**
 * The text that the model of a run is writing, for people who watch. Sent between processes and
 * never stored.
 */
export const liveAnswer = z.object({
  incidentId: z.string().max(100),
  attempt: z.number().int(),
  turn: z.number().int(),
  maxTurns: z.number().int(),
  model: z.string().max(200),
  /** `ended`: the response is complete, or was given up. */
  state: z.enum(['asked', 'writing', 'ended']),
  /** Seconds since the request to the model. */
  seconds: z.number().min(0),
  tokens: z.number().int().min(0),
  /** True if the server counted the response's tokens; otherwise each piece counts as one token. */
  isCounted: z.boolean(),
  /** The end of the text that the model has written so far. Untrusted. */
  tail: z.string().max(500),
})
export type LiveAnswer = z.infer<typeof liveAnswer>

/**
 * The form of requests that a model server requires, if it differs from the form that most servers
 * accept. All possible values are fixed in this file; a report of the server selects a value and
 * cannot add one.
 */
const requestShape = z.strictObject({
  /** The name of the parameter that limits the length of a response. */
  limit: z.enum(['max_tokens', 'max_completion_tokens', 'none']),
  /** The largest limit on tokens of a response that the server accepts; null if unknown. */
  mostTokens: z.number().int().positive().max(100_000_000).nullable(),
  /**
   * Factor on the token limit for a model that reasons first, if the server counts reasoning
   * against the limit.
   */
  headroom: z.number().int().min(1).max(16),
  temperature: z.enum(['sent', 'omitted']),
  /**
   * `merged`: the template of the model does not support a system message, so its text is put at
   * the beginning of the first user message.
   */
  system: z.enum(['sent', 'merged']),
  /**
   * `alternating`: the template of the model refuses two user messages in a row. `answered`: the
   * template also refuses a user message right after the result of a tool.
   */
  turns: z.enum(['free', 'alternating', 'answered']),
  /** `nine`: ids of calls have exactly nine letters and digits, as Mistral's templates require. */
  callIds: z.enum(['own', 'nine']),
  /**
   * `empty`: a response with calls is sent back with `reasoning_content: ""`, as DeepSeek requires.
   */
  reasoning: z.enum(['omitted', 'empty']),
  /**
   * `plain`: streams without `stream_options`, perhaps without token counts. `off`: no streaming.
   */
  stream: z.enum(['usage', 'plain', 'off']),
  /**
   * `single`: the template of the model allows one call in a response. Earlier responses are sent
   * with one call each, and the model is asked for one call.
   */
  calls: z.enum(['many', 'single']),
  /** `omitted`: the server does not know `parallel_tool_calls`. */
  parallel: z.enum(['sent', 'omitted']),
  /**
   * How a response in JSON is requested: `response_format` with a schema, llama.cpp's `grammar`,
   * vLLM's `guided_json`, or only the prompt.
   */
  form: z.enum(['schema', 'grammar', 'guided', 'words']),
})
export type RequestShape = z.infer<typeof requestShape>

export const plainShape: RequestShape = {
  limit: 'max_tokens',
  mostTokens: null,
  headroom: 1,
  temperature: 'sent',
  system: 'sent',
  turns: 'free',
  callIds: 'own',
  reasoning: 'omitted',
  stream: 'usage',
  calls: 'many',
  parallel: 'sent',
  form: 'schema',
}

/**
 * Reads a request shape from a stored row. A part that is absent, or that another version wrote,
 * gets its plain value.
 */
export function readShape(stored: Record<string, unknown>): RequestShape {
  const known = Object.entries(requestShape.shape).flatMap(([name, field]) => {
    const read = field.safeParse(stored[name])
    return read.success ? [[name, read.data] as const] : []
  })
  return { ...plainShape, ...Object.fromEntries(known) }
}

const can = z.enum(['yes', 'no', 'unknown'])
/**
 * Abilities of a model server with one model, from the server's report, or from its responses and
 * errors.
 */
export const modelAbilities = z.object({
  tools: can,
  /** The ability to return several calls in one response. */
  parallel: can,
  /** The ability to force a response to match a JSON schema. */
  schema: can,
  /** The ability to force a response to match a grammar. */
  grammar: can,
  /** The ability to report token counts. */
  usage: can,
  streaming: can,
})
export type ModelAbilities = z.infer<typeof modelAbilities>
/** Abilities that were observed. An ability that was not observed is left out. */
const seen = z.enum(['yes', 'no'])
const seenAbilities = z
  .strictObject({ tools: seen, parallel: seen, schema: seen, grammar: seen, usage: seen, streaming: seen })
  .partial()
export type SeenAbilities = z.infer<typeof seenAbilities>

/** The server's own report about itself and a model. */
const servedModel = z.strictObject({
  /**
   * The limit on tokens of request and response together; null if the server does not report the
   * limit.
   */
  windowTokens: z.number().int().positive().max(100_000_000).nullable(),
  /** The place where the limit was read, as a text for people. */
  source: z.string().max(200).nullable(),
  /** Identifies the model and the server. Facts about one identity are not used for another. */
  identity: z.string().max(1_000),
  /** Whether the server cuts off text beyond the limit without an error. */
  cutsSilently: z.boolean(),
  /** Whether the limit is not final: Ollama decides the limit when it loads the model. */
  isProvisional: z.boolean(),
  /** Abilities that the server itself reports. */
  abilities: seenAbilities,
})
export type ServedModel = z.infer<typeof servedModel>

/**
 * Facts about a model server that a check of the server showed: the shape of requests, abilities,
 * and what the server reports.
 */
export const learnedProfile = z.strictObject({
  shape: requestShape.partial(),
  abilities: seenAbilities,
  /** Null if the server did not answer the request for its report. */
  served: servedModel.nullable(),
})
export type LearnedProfile = z.infer<typeof learnedProfile>

/**
 * Combines all known abilities of a model server. A fact that a refused request showed (in `shape`)
 * overrides a report of the server.
 */
export function abilitiesOf(stored: Record<string, unknown>, shape: RequestShape): ModelAbilities {
  const known = Object.keys(modelAbilities.shape).map((name) => [name, can.safeParse(stored[name]).data ?? 'unknown'])
  return {
    ...(Object.fromEntries(known) as ModelAbilities),
    ...(shape.stream === 'off' && { streaming: 'no' as const }),
    ...(shape.calls === 'single' && { parallel: 'no' as const }),
    ...(shape.form !== 'schema' && { schema: shape.form === 'guided' ? ('yes' as const) : ('no' as const) }),
    ...(shape.form === 'grammar' && { grammar: 'yes' as const }),
  }
}

/** Describes in words how the request shape differs from the plain one. */
export function shapeInWords(shape: RequestShape): string[] {
  return [
    ...(shape.limit === 'max_completion_tokens' ? ['max_completion_tokens instead of max_tokens'] : []),
    ...(shape.limit === 'none' ? ['no token limit'] : []),
    ...(shape.mostTokens === null ? [] : [`at most ${shape.mostTokens} tokens in each response`]),
    ...(shape.headroom === 1 ? [] : [`${shape.headroom} times the limit, because the model reasons first`]),
    ...(shape.temperature === 'omitted' ? ['no temperature'] : []),
    ...(shape.system === 'merged' ? ['no system message'] : []),
    ...(shape.turns === 'alternating' ? ['no two user messages in a row'] : []),
    ...(shape.callIds === 'nine' ? ['call IDs of nine characters'] : []),
    ...(shape.stream === 'plain' ? ['a stream without stream_options'] : []),
    ...(shape.stream === 'off' ? ['no stream'] : []),
    ...(shape.calls === 'single' ? ['one call in each response'] : []),
    ...(shape.form === 'grammar' ? ['a grammar for the form of a response'] : []),
    ...(shape.form === 'guided' ? ['guided_json for the form of a response'] : []),
    ...(shape.form === 'words' ? ['no schema for the response'] : []),
    ...(shape.reasoning === 'empty' ? ['an empty reasoning_content in responses'] : []),
  ]
}
