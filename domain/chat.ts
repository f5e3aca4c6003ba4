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
export type TokenUsage = {
  promptTokens: number
  completionTokens: number
  reasoningTokens?: number
  /** Absent or impossible counts of a server: counted by the bytes that were sent and received. */
  isAssumed?: boolean
}

export type ChatAnswer = {
  /** Without reasoning that came in a separate field. */
  content: string
  /** The end of reasoning, where nothing else was said: a call may stand in it. Stored nowhere. */
  reasoning?: string
  toolCalls: ChatToolCall[]
  /** The server's word: `stop`, `tool_calls`, `length`, … */
  finishReason: string
  usage: TokenUsage
  /** The model that answered, by its own name. */
  model: string
  durationMs: number
}

/** How far an answer is that is being written. */
export type Writing = {
  /** Those that a server sends one by one, reasoning included: about as many tokens. */
  pieces: number
  /** Tokens as the server counts them; null where it counts at the end or never. */
  counted: number | null
  /** The text so far, without reasoning from a separate field. Untrusted, and never stored. */
  content: string
  /** The call that it writes, as a name and the arguments so far. */
  call: { name: string; arguments: string } | null
}

/**
 * Text that a run's model writes now, for those who watch. It goes from process to process and is
 * in no row.
 */
export const liveAnswer = z.object({
  incidentId: z.string().max(100),
  attempt: z.number().int(),
  turn: z.number().int(),
  maxTurns: z.number().int(),
  model: z.string().max(200),
  /** `ended`: the answer is whole, or was given up. */
  state: z.enum(['asked', 'writing', 'ended']),
  /** Since it was asked. */
  seconds: z.number().min(0),
  tokens: z.number().int().min(0),
  /** The server counted; else each piece counts as one. */
  isCounted: z.boolean(),
  /** The end of its text. Untrusted. */
  tail: z.string().max(500),
})
export type LiveAnswer = z.infer<typeof liveAnswer>

/**
 * Requests as a server of models wants them, where it differs from most. Every word is one of ours:
 * what a server says chooses among them and adds nothing.
 */
const requestShape = z.strictObject({
  /** The name of the limit of an answer. */
  limit: z.enum(['max_tokens', 'max_completion_tokens', 'none']),
  /** The largest limit the server takes. */
  mostTokens: z.number().int().positive().max(100_000_000).nullable(),
  /** Multiplies the limit for a model that reasons first, where the server counts both. */
  headroom: z.number().int().min(1).max(16),
  temperature: z.enum(['sent', 'omitted']),
  /** `merged`: the template knows no system message, so the first user message begins with it. */
  system: z.enum(['sent', 'merged']),
  /**
   * `alternating`: the template takes no two messages of the user in a row. `answered`: nor one
   * right after a tool's result.
   */
  turns: z.enum(['free', 'alternating', 'answered']),
  /** `nine`: letters and digits, nine of them, as Mistral's templates count. */
  callIds: z.enum(['own', 'nine']),
  /** `empty`: an answer with calls goes back with `reasoning_content: ""`, as DeepSeek demands. */
  reasoning: z.enum(['omitted', 'empty']),
  /** `plain`: streams without `stream_options`, perhaps uncounted. `off`: it answers whole. */
  stream: z.enum(['usage', 'plain', 'off']),
  /** `single`: the template takes one call an answer: history shows one, and no more is asked. */
  calls: z.enum(['many', 'single']),
  /** For a server that knows no `parallel_tool_calls`. */
  parallel: z.enum(['sent', 'omitted']),
  /**
   * The form of a JSON answer: `response_format` with a schema, llama.cpp's `grammar`, vLLM's
   * `guided_json`, or words alone.
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

/** A shape as a row holds it: an absent part, or one in another version's words, is plain. */
export function readShape(stored: Record<string, unknown>): RequestShape {
  const known = Object.entries(requestShape.shape).flatMap(([name, field]) => {
    const read = field.safeParse(stored[name])
    return read.success ? [[name, read.data] as const] : []
  })
  return { ...plainShape, ...Object.fromEntries(known) }
}

const can = z.enum(['yes', 'no', 'unknown'])
/** What a server can do with a model, as it says itself or as its answers and refusals showed. */
export const modelAbilities = z.object({
  tools: can,
  /** Several calls in one answer. */
  parallel: can,
  /** Holds an answer to a JSON schema. */
  schema: can,
  /** Holds an answer to a grammar. */
  grammar: can,
  /** Counts tokens. */
  usage: can,
  streaming: can,
})
export type ModelAbilities = z.infer<typeof modelAbilities>
/** Facts that were seen of some of them; facts that were not seen are left out. */
const seen = z.enum(['yes', 'no'])
const seenAbilities = z
  .strictObject({ tools: seen, parallel: seen, schema: seen, grammar: seen, usage: seen, streaming: seen })
  .partial()
export type SeenAbilities = z.infer<typeof seenAbilities>

/** What a server says of itself and of a model. */
const servedModel = z.strictObject({
  /** Tokens of question and answer together; null where it does not say. */
  windowTokens: z.number().int().positive().max(100_000_000).nullable(),
  /** Where that stands, for people. */
  source: z.string().max(200).nullable(),
  /** Another value means another model or server: lessons of the earlier one count no more. */
  identity: z.string().max(1_000),
  /** It cuts off what does not fit, and says nothing. */
  cutsSilently: z.boolean(),
  /** Not yet known for good: Ollama decides when it loads the model. */
  isProvisional: z.boolean(),
  /** What it says it can do. */
  abilities: seenAbilities,
})
export type ServedModel = z.infer<typeof servedModel>

/**
 * Facts of the server that a check of its model learned: how it wants requests, what it can do, and
 * what it says.
 */
export const learnedProfile = z.strictObject({
  shape: requestShape.partial(),
  abilities: seenAbilities,
  /** Null: it could not be asked. */
  served: servedModel.nullable(),
})
export type LearnedProfile = z.infer<typeof learnedProfile>

/** All that is known: what a server refused (the shape) counts more than what it says. */
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
    ...(shape.stream === 'plain' ? ['a stream without stream_options'] : []),
    ...(shape.stream === 'off' ? ['no stream'] : []),
    ...(shape.calls === 'single' ? ['one call an answer'] : []),
    ...(shape.form === 'grammar' ? ['a grammar for the form of an answer'] : []),
    ...(shape.form === 'guided' ? ['guided_json for the form of an answer'] : []),
    ...(shape.form === 'words' ? ['no schema of an answer'] : []),
    ...(shape.reasoning === 'empty' ? ['an empty reasoning_content in answers'] : []),
  ]
}
