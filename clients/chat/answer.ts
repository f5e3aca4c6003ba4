import OpenAI from 'openai'
import { z } from 'zod'
import type { ChatAnswer, TokenUsage } from '../../domain/chat.ts'
import type { CredentialHider } from '../../domain/hidden-credentials.ts'
import { placeOfFault } from '../../domain/schema-faults.ts'
import { HttpError, retryAfterMs } from '../http.ts'
import { isTooLong, isUnpaid, type Refusal } from './refusal.ts'
import { boundUsage, type Exchanged } from './usage.ts'

/** A refusal instead of a completion: a failing status, or an error with status 200. */
export class RefusedRequest extends Error {
  readonly refusal: Refusal
  readonly headers: Record<string, string>
  constructor(refusal: Refusal, headers: Record<string, string>) {
    super('refused')
    this.refusal = refusal
    this.headers = headers
  }
}

/** Converts a refusal without further shapes to the error that the workflow knows. */
export function refusedError({ refusal, headers }: RefusedRequest, hide: CredentialHider): ModelError {
  const said = lineOf(refusal.message, hide)
  const should = headers['x-should-retry']
  const [code, retryable] = codeOf(refusal)
  const hint = code === 'unpaid' ? ' (the account is out of credit)' : code === 'bad_request' ? hintFor(refusal) : ''
  const message = `the model server answered ${refusal.status}${said ? `: ${said}` : ''}${hint}`
  return new ModelError(code, message, {
    status: refusal.status,
    retryAfterMs: retryAfterMs(headers, Date.now()),
    retryable: should === 'true' ? true : should === 'false' ? false : retryable,
    windowTokens: code === 'context_too_long' ? refusal.windowTokens : null,
  })
}

/** Whether the server reports that it supports no tools with this model. */
export const lacksTools = ({ message }: Pick<Refusal, 'message'>): boolean =>
  /does not support tools|tool choice requires|tools param requires|support tool use|tools.*not supported/i.test(
    message,
  )

/** Returns a hint if a setting avoids a feature that the server lacks. Otherwise empty. */
const hintFor = (refusal: Pick<Refusal, 'message'>): string =>
  lacksTools(refusal) ? ' (with LLM_PROTOCOL=json Nightshift sends no tools)' : ''

/** Returns the reason why no response came at all. */
export function modelErrorOf(error: unknown): ModelError {
  const network = causeIn(error, HttpError)
  if (network) return networkError(network)
  if (error instanceof OpenAI.APIUserAbortError) {
    return new ModelError('aborted', 'the call of the model was cancelled', { retryable: false })
  }
  if (error instanceof SyntaxError) {
    return new ModelError('bad_answer', "the model server's response is not JSON", { status: 200, retryable: true })
  }
  return new ModelError('unavailable', 'the model server cannot be reached', { retryable: true })
}

function networkError(error: HttpError): ModelError {
  switch (error.code) {
    case 'timeout':
      return new ModelError('timeout', error.message, { retryable: true })
    case 'too_large':
      return new ModelError('oversized', error.message, { retryable: false })
    case 'aborted':
      return new ModelError('aborted', 'the call of the model was cancelled', { retryable: false })
    default:
      return new ModelError('unavailable', error.message, { retryable: error.retryable })
  }
}

function codeOf(refusal: Refusal): [ModelError['code'], boolean] {
  const { status, message } = refusal
  if (isUnpaid(refusal)) return ['unpaid', false]
  if (status === 401 || status === 403) return ['unauthorised', false]
  if (status === 408) return ['timeout', true]
  // Treats a single request that exceeds a limit per minute as too long: waiting does not help, so
  // the workflow shortens it.
  if (status === 429) return /request too large/i.test(message) ? ['context_too_long', false] : ['rate_limited', true]
  if (isTooLong(refusal)) return ['context_too_long', false]
  if (lacksTools(refusal)) return ['bad_request', false]
  if (status === 409 || status >= 500) return ['unavailable', true]
  return ['bad_request', false]
}

/** Formats one line of the server's text, without the key and terminal control characters. */
function lineOf(text: string, hide: CredentialHider): string {
  return hide
    .text(text)
    .slice(0, 300)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
}

/** Finds an error of this kind: the error itself, or one of its causes. */
export function causeIn<T extends Error>(
  error: unknown,
  kind: abstract new (...args: never[]) => T,
  depth = 0,
): T | null {
  if (error instanceof kind) return error
  return error instanceof Error && depth < 5 ? causeIn(error.cause, kind, depth + 1) : null
}

type ModelErrorCode =
  | 'rate_limited'
  | 'unavailable'
  | 'timeout'
  | 'stalled'
  | 'refused'
  | 'unauthorised'
  /** The account has no credit left. */
  | 'unpaid'
  | 'bad_request'
  | 'context_too_long'
  | 'oversized'
  | 'bad_answer'
  | 'aborted'

/**
 * The reason why a model gave no usable response. The message contains no key, and at most one line
 * of text from the server.
 */
export class ModelError extends Error {
  override name = 'ModelError' as const
  readonly code: ModelErrorCode
  /** The HTTP status. Null if no response came. */
  readonly status: number | null
  /** The wait in milliseconds that the server requested. */
  readonly retryAfterMs: number | null
  readonly retryable: boolean
  /** The context window of the model, if a refusal for length reports it. */
  readonly windowTokens: number | null
  /** Tokens of a response that arrived and cannot be used. */
  readonly usage: TokenUsage | null
  constructor(
    code: ModelErrorCode,
    message: string,
    details: {
      status?: number | null
      retryAfterMs?: number | null
      retryable: boolean
      windowTokens?: number | null
      usage?: TokenUsage
    },
  ) {
    super(message)
    this.code = code
    this.status = details.status ?? null
    this.retryAfterMs = details.retryAfterMs ?? null
    this.retryable = details.retryable
    this.windowTokens = details.windowTokens ?? null
    this.usage = details.usage ?? null
  }
}

const part = z.looseObject({ type: z.string().optional(), text: z.unknown().optional() })
const calledFunction = z.object({
  name: z.string(),
  arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
})

/**
 * The fields of a completion that Nightshift needs. Servers write them differently: arguments as an
 * object, content as parts, no usage. Fields of reasoning only show that the model reasoned.
 */
const completion = z.object({
  model: z.string().catch('unknown'),
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish().catch(null),
        error: z.unknown().optional(),
        message: z.object({
          content: z.union([z.string(), z.array(z.union([z.string(), part]))]).nullish(),
          refusal: z.string().nullish().catch(null),
          tool_calls: z.array(z.object({ id: z.string().nullish().catch(null), function: calledFunction })).nullish(),
          function_call: calledFunction.nullish().catch(null),
          reasoning_content: z.unknown().optional(),
          reasoning: z.unknown().optional(),
          reasoning_details: z.unknown().optional(),
          thinking: z.unknown().optional(),
        }),
      }),
    )
    .min(1),
  usage: z
    .object({
      prompt_tokens: z.unknown().optional(),
      completion_tokens: z.unknown().optional(),
      reasoning_tokens: z.unknown().optional(),
      completion_tokens_details: z.object({ reasoning_tokens: z.unknown().optional() }).nullish().catch(null),
    })
    .nullish()
    .catch(null),
})

/** Words with which servers mark a response that reached its limit. */
const cutWords = new Set(['length', 'max_tokens', 'model_length', 'max_output_tokens', 'token_limit'])
/** Words for a response that the server aborted. The same request may succeed later. */
const brokenWords = new Set(['error', 'abort', 'insufficient_system_resource', 'network_error', 'cancelled'])
const filterWords = new Set(['content_filter', 'sensitive', 'safety', 'prohibited_content'])

export type ReadAnswer = ChatAnswer & {
  /** True if reasoning used up the complete token limit, so that the response is empty. */
  isSpentOnReasoning: boolean
}

/** Sizes of the request and, for a stream, of the reasoning that the assembled body leaves out. */
type SentBytes = Omit<Exchanged, 'received' | 'said'> & { reasoning: number; thought: string }

/**
 * Reads a complete body with status 200, or throws ModelError. Returns the end of the reasoning
 * only if the response is otherwise empty.
 */
export function readAnswer(body: unknown, durationMs: number, sent: SentBytes): ReadAnswer {
  const parsed = completion.safeParse(body)
  if (!parsed.success) {
    const place = placeOfFault(parsed.error)
    throw new ModelError('bad_answer', `the model server's response is not a chat completion, at ${place}`, {
      status: 200,
      retryable: true,
    })
  }
  const choice = parsed.data.choices[0]!
  const word = (choice.finish_reason ?? 'unknown').toLowerCase()
  const { refusal, tool_calls, function_call } = choice.message
  if (refusal || filterWords.has(word)) {
    throw new ModelError('refused', 'the model or its filter refused to answer', { status: 200, retryable: false })
  }
  if (brokenWords.has(word)) {
    const said = errorText(choice.error)
    const message = `the model server aborted its response (${word})${said ? `: ${said}` : ''}`
    throw new ModelError('unavailable', message, { status: 200, retryable: true })
  }
  const content = textOf(choice.message.content)
  const calls = tool_calls ?? (function_call ? [{ id: null, function: function_call }] : [])
  const usage = usageIn(parsed.data, sent)
  const finishReason = cutWords.has(word) ? 'length' : word
  const { reasoning_content, reasoning, reasoning_details, thinking } = choice.message
  const reasons =
    [reasoning_content, reasoning, reasoning_details, thinking].some(isSomething) || (usage.reasoningTokens ?? 0) > 0
  const thought = sent.thought || [reasoning_content, reasoning, thinking].find((each) => typeof each === 'string')
  const isSilent = content.trim() === '' && calls.length === 0
  return {
    content,
    ...(isSilent && typeof thought === 'string' && thought !== '' && { reasoning: thought }),
    toolCalls: calls.map((call, index) => ({
      id: call.id || `call_${index}`,
      name: call.function.name,
      arguments: asText(call.function.arguments),
    })),
    finishReason,
    usage,
    model: parsed.data.model,
    durationMs,
    isSpentOnReasoning:
      finishReason === 'length' &&
      calls.length === 0 &&
      (isUnendedThought(content) || (content.trim() === '' && reasons)),
  }
}

function usageIn({ choices, usage }: z.infer<typeof completion>, sent: SentBytes): TokenUsage {
  const { content, refusal, tool_calls, function_call, ...fields } = choices[0]!.message
  const calls = [...(tool_calls ?? []).map((call) => call.function), ...(function_call ? [function_call] : [])]
  const texts = calls.flatMap(({ name, arguments: given }) => [name, asText(given)])
  const said = Buffer.byteLength([textOf(content), ...texts].join(''))
  const stated = {
    prompt: usage?.prompt_tokens,
    completion: usage?.completion_tokens,
    reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? usage?.reasoning_tokens,
  }
  const reasoning = Object.values(fields).filter(isSomething)
  const received = said + Buffer.byteLength(reasoning.map(asText).join('')) + sent.reasoning
  return boundUsage(stated, { ...sent, received, said })
}

/**
 * Reads the error in a body with status 200, which OpenRouter sends if a provider fails after its
 * response began. Null for a body without an error.
 */
export function errorInBody(body: unknown): { status: number; text: string } | null {
  if (body === null || typeof body !== 'object') return null
  const { error, object, choices, code } = body as Record<string, unknown>
  if (Array.isArray(choices) && choices.length > 0) return null
  const isError = object === 'error' || (error !== null && error !== undefined)
  if (!isError) return null
  const status = Number((error as { code?: unknown } | null | undefined)?.code ?? code)
  return { status: status >= 400 && status <= 599 ? status : 502, text: JSON.stringify(body) }
}

/**
 * Returns the text of a response. Takes only parts with text, and leaves out parts of type
 * `thinking` and `reasoning`.
 */
function textOf(content: z.infer<typeof completion>['choices'][number]['message']['content']): string {
  if (typeof content === 'string') return content
  return (content ?? [])
    .map((each) => {
      if (typeof each === 'string') return each
      const isText = each.type === undefined || each.type === 'text' || each.type === 'output_text'
      return isText && typeof each.text === 'string' ? each.text : ''
    })
    .join('')
}

const asText = (given: unknown): string => (typeof given === 'string' ? given : JSON.stringify(given ?? null))

function isUnendedThought(content: string): boolean {
  return /^\s*(<think(ing)?>|\[THINK\])/i.test(content) && !/<\/think(ing)?>|\[\/THINK\]/i.test(content)
}

function isSomething(value: unknown): boolean {
  return (typeof value === 'string' && value.trim() !== '') || (Array.isArray(value) && value.length > 0)
}

function errorText(error: unknown): string {
  const message = (error as { message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message.slice(0, 200) : ''
}
