import { plainShape, type RequestShape } from '../../domain/chat.ts'

/** A server's refusal of a request, read from any known form of an error body. */
export type Refusal = {
  status: number
  /** The text of the error, complete and as the server wrote it. */
  message: string
  /** The parameter that the server objects to, if the response names one. */
  param: string | null
  /** The server's names for the kind of error: `code` and `type`. */
  kind: string
  /** The context window of the model, if the server reports it. */
  windowTokens: number | null
}

/**
 * Reads an error body: OpenAI's `{error: {message, param, code, type}}`, which Ollama and llama.cpp
 * use too, `{error: "text"}`, vLLM's older `{object: "error", message}`, FastAPI's `{detail: [{loc,
 * msg}]}`, Mistral's lists in `message`, or plain text.
 */
export function readRefusal(status: number, body: string): Refusal {
  const parsed = jsonOf(body)
  // Takes the first entry of a list, which is the form of Gemini's body.
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  const outer = isRecord(first) ? first : {}
  const inner = isRecord(outer.error) ? outer.error : outer
  const list = [outer.detail, inner.detail, inner.message, outer.message].find((each) => Array.isArray(detailIn(each)))
  const details = detailIn(list) ?? []
  const text = [inner.message, outer.error, outer.detail, outer.message].find((each) => typeof each === 'string')
  // Adds the provider's text, which OpenRouter quotes if a provider refused.
  const quoted = isRecord(inner.metadata) && typeof inner.metadata.raw === 'string' ? `: ${inner.metadata.raw}` : ''
  const message =
    typeof text === 'string'
      ? `${text}${quoted}`
      : details.length > 0
        ? details.map(lineOfDetail).join('; ')
        : parsed === null
          ? body
          : JSON.stringify(parsed)
  return {
    status,
    message,
    param: textOf(inner.param) ?? paramOfDetails(details),
    kind: [inner.code, inner.type].filter((each) => typeof each === 'string' || typeof each === 'number').join(' '),
    windowTokens: numberOf(inner.n_ctx) ?? windowIn(message),
  }
}

/** Words about a response's token limit, which count even if a message also names the window. */
const limitWords = /max_(completion_)?tokens\W+must be (less|at most|<)|supports? at most|valid range/i

/** Words about a request that is too long. */
const lengthWords =
  /\b(too (long|large|big|many)|exceed\w*|longer than|greater than|larger than|over the|beyond|maximum)\b/i
const lengthThings = /\b(prompts?|inputs?|contexts?|tokens?|messages?|conversation|requests?)\b/i

/**
 * Whether the request did not fit into the context window. The refusal may also name the token
 * limit, which is not the cause.
 */
export function isTooLong({ status, message, kind, param }: Refusal): boolean {
  const words =
    /context[_ ](length|window|size|limit)|maximum context|exceed\S* (the )?(available )?context|too many tokens|prompt (is )?too long|input (token count|length|is too long)|token limit/i
  if (limitWords.test(message)) return false
  if (status === 413 || words.test(`${kind} ${message}`)) return true
  const isOther = param !== null || namedIn.test(message) || isUnpaid({ status, message, kind })
  return [400, 422].includes(status) && !isOther && lengthWords.test(message) && lengthThings.test(message)
}

/** Words about an account without money. `passingWords`: about a limit that ends by itself. */
const moneyWords =
  /insufficient[_ ](quota|balance|credits?|funds?)|exceeded your current quota|check your plan and billing|billing (hard )?limit|out of credits?|credit balance is too low|payment[_ ]required|account .{0,40}\b(arrears|overdue|suspended)|(free|monthly) quota .{0,30}exhausted|negative balance|top up/i
const passingWords =
  /\bresets? (in|at|on)\b|\bper (second|minute|hour|day)\b|requests? per\b|try again in|\b(rpm|tpm|rpd)\b/i

/** Whether the server needs a payment before it responds again. */
export function isUnpaid({ status, message, kind }: Pick<Refusal, 'status' | 'message' | 'kind'>): boolean {
  if (status === 402) return true
  return [400, 403, 429].includes(status) && moneyWords.test(`${kind} ${message}`) && !passingWords.test(message)
}

const refusing =
  /unsupported|fail|not (yet )?(support|implement)|disabled|unknown|unrecognized|unexpected|extra|not (permitted|allowed|valid)|deprecated|invalid|only|must|cannot|too large|at most|less than/i

/**
 * Returns the shape for the next request after this refusal. Null if no other shape would help.
 * `askedTokens` is the token limit of the refused request.
 */
export function correctedShape(shape: RequestShape, refusal: Refusal, askedTokens: number): RequestShape | null {
  if (![400, 404, 422, 500].includes(refusal.status) || isTooLong(refusal)) return null
  const { message } = refusal
  // Includes status 500, with which llama.cpp reports an error of the chat template.
  if (/system role (is )?not supported|does not support 'system'|system messages? (is|are) not/i.test(message)) {
    return shape.system === 'merged' ? null : { ...shape, system: 'merged', turns: 'alternating' }
  }
  if (/roles must alternate/i.test(message)) {
    return shape.turns === 'free' ? { ...shape, turns: 'alternating' } : mergedToo(shape)
  }
  if (/unexpected role '?"?user'?"? after role '?"?tool/i.test(message)) {
    return shape.turns === 'answered' ? null : { ...shape, turns: 'answered' }
  }
  if (/system message must be (at the beginning|first)/i.test(message)) return mergedToo(shape)
  if (/tool call ids?\b.*(length|9)/i.test(message)) {
    return shape.callIds === 'nine' ? null : { ...shape, callIds: 'nine' }
  }
  if (/reasoning_content/.test(message) && /missing|required|must/i.test(message)) {
    return shape.reasoning === 'empty' ? null : { ...shape, reasoning: 'empty' }
  }
  if (/only supports? single tool.?calls?/i.test(message)) {
    return shape.calls === 'single' ? null : { ...shape, calls: 'single' }
  }
  if (refusal.status === 404 || refusal.status === 500) return null
  // Sends a grammar if llama.cpp could not make one from the schema.
  if (shape.form === 'schema' && /json[_ ]schema conversion|failed to parse grammar/i.test(message))
    return { ...shape, form: 'grammar' }
  const named = namedParameter(refusal)
  if (named === null) return null
  if (named !== 'max_tokens' && named !== 'max_completion_tokens') return without(shape, named)
  const max = largestBelow(message, askedTokens)
  if (max !== null && /too large|at most|less than|range|maximum|<=/i.test(message))
    return { ...shape, mostTokens: max }
  return otherLimit(shape, named)
}

/**
 * Returns the shape without the refused parameter, or with a substitute for it. Null if the request
 * did not have the parameter.
 */
function without(
  shape: RequestShape,
  refused: Exclude<Parameter, 'max_tokens' | 'max_completion_tokens'>,
): RequestShape | null {
  switch (refused) {
    case 'temperature':
      return shape.temperature === 'omitted' ? null : { ...shape, temperature: 'omitted' }
    case 'stream_options':
      return shape.stream === 'usage' ? { ...shape, stream: 'plain' } : null
    case 'stream':
      return shape.stream === 'off' ? null : { ...shape, stream: 'off' }
    case 'parallel_tool_calls':
      return shape.parallel === 'omitted' ? null : { ...shape, parallel: 'omitted' }
    case 'guided_json':
      return shape.form === 'guided' ? { ...shape, form: 'words' } : null
    case 'response_format':
    case 'json_schema':
      return shape.form === 'schema' ? { ...shape, form: 'grammar' } : null
    // Covers schemas too, because llama.cpp then names the grammar that it made from the schema.
    case 'grammar':
      if (shape.form === 'schema') return { ...shape, form: 'grammar' }
      return shape.form === 'grammar' ? { ...shape, form: 'guided' } : null
  }
}

/**
 * Moves the system message into a user message. A template that still rejects the order of messages
 * cannot accept a system message.
 */
function mergedToo(shape: RequestShape): RequestShape | null {
  return shape.system === 'merged' ? null : { ...shape, system: 'merged' }
}

function otherLimit(shape: RequestShape, refused: 'max_tokens' | 'max_completion_tokens'): RequestShape | null {
  if (shape.limit !== refused) return null
  // Tries the limit's other name. After both names were refused, `withoutLimit` sends no limit.
  return { ...shape, limit: refused === plainShape.limit ? 'max_completion_tokens' : 'max_tokens' }
}

/** Returns the shape without a token limit, for a server that refused both names of the limit. */
export function withoutLimit(shape: RequestShape): RequestShape {
  return { ...shape, limit: 'none' }
}

const parameters = [
  ...(['max_completion_tokens', 'max_tokens', 'temperature', 'stream_options', 'stream'] as const),
  ...(['parallel_tool_calls', 'response_format', 'json_schema', 'guided_json', 'grammar'] as const),
]
type Parameter = (typeof parameters)[number]
const namedIn = new RegExp(`\\b(${parameters.join('|')})\\b`)

/**
 * Finds the refused parameter that can be changed: in the field of the error, or else the first
 * parameter that the message names.
 */
function namedParameter({ param, message, kind }: Refusal): Parameter | null {
  const field = parameters.find(
    (each) => param === each || param?.endsWith(`.${each}`) || param?.startsWith(`${each}.`),
  )
  if (field) return field
  if (param !== null || !refusing.test(`${kind} ${message}`)) return null
  return (namedIn.exec(message)?.[1] as Parameter | undefined) ?? null
}

function largestBelow(message: string, below: number): number | null {
  const numbers = [...message.matchAll(/\d+/g)]
    .map(([text]) => Number(text))
    .filter((each) => each >= 16 && each < below)
  return numbers.length > 0 ? Math.max(...numbers) : null
}

/**
 * Forms of a message that contain the size of the context window. "exceeded max context length by
 * 908 tokens" does not contain it.
 */
const windowForms: readonly RegExp[] = [
  // "maximum context length is 8192 tokens", "context length (8192)", "context window of this model
  // is only 4096", "token limit: 8192"
  /(?:context (?:length|window|size)|token limit)(?: of (?:this|the) model)?(?: is| of|:|=)?(?: only)? ?\(?(\d{3,9})\b(?! *(?:tokens? )?(?:over|more|above|too))/i,
  // "210000 tokens > 200000 maximum"
  /> (\d{3,9}) maximum\b/i,
  // "exceed context limit: 9100 + 1024 > 8192"
  /context limit: [\d +]{1,40}> (\d{3,9})\b/i,
  /tokens allowed \((\d{3,9})\)/i,
  /with (\d{3,9}) maximum context/i,
]

function windowIn(message: string): number | null {
  const found = windowForms.reduce<RegExpExecArray | null>((known, form) => known ?? form.exec(message), null)
  return found ? Number(found[1]) : null
}

type Detail = { loc?: unknown; msg?: unknown }

function detailIn(value: unknown): Detail[] | null {
  if (isRecord(value)) return detailIn(value.detail)
  return Array.isArray(value) ? value.filter(isRecord) : null
}

function lineOfDetail({ loc, msg }: Detail): string {
  return `${Array.isArray(loc) ? loc.join('.') : ''}: ${String(msg ?? '')}`
}

function paramOfDetails(details: Detail[]): string | null {
  const last = details.flatMap(({ loc }) => (Array.isArray(loc) ? [String(loc.at(-1))] : []))
  return last.find((each) => (parameters as readonly string[]).includes(each)) ?? null
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}
