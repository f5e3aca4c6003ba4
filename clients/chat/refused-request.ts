import OpenAI from 'openai'
import { HttpError, retryAfterMs } from '../http.ts'
import { isTooLong, type Refusal } from './refusal.ts'

/** What came instead of an answer: any status but success, or an error with status 200. */
export class RefusedRequest extends Error {
  readonly refusal: Refusal
  readonly headers: Record<string, string>
  constructor(refusal: Refusal, headers: Record<string, string>) {
    super('refused')
    this.refusal = refusal
    this.headers = headers
  }
}

/** A refusal that stands, as the error that the workflow knows. */
export function refusedError({ refusal, headers }: RefusedRequest, apiKey: string): ModelError {
  const said = lineOf(refusal.message, apiKey)
  const should = headers['x-should-retry']
  const [code, retryable] = codeOf(refusal)
  const hint = code === 'bad_request' ? hintFor(refusal) : ''
  const message = `the model server answered ${refusal.status}${said ? `: ${said}` : ''}${hint}`
  return new ModelError(code, message, {
    status: refusal.status,
    retryAfterMs: retryAfterMs(headers, Date.now()),
    retryable: should === 'true' ? true : should === 'false' ? false : retryable,
    windowTokens: code === 'context_too_long' ? refusal.windowTokens : null,
  })
}

/** Does it say that the server takes no tools with this model? */
export const lacksTools = ({ message }: Pick<Refusal, 'message'>): boolean =>
  /does not support tools|tool choice requires|tools param requires|support tool use|tools.*not supported/i.test(
    message,
  )

/** Where the server cannot do what we need and a setting helps. */
const hintFor = (refusal: Pick<Refusal, 'message'>): string =>
  lacksTools(refusal) ? ' (LLM_PROTOCOL=json asks without tools)' : ''

/** Why no answer came at all. */
export function modelErrorOf(error: unknown): ModelError {
  const network = causeIn(error, HttpError)
  if (network) return networkError(network)
  if (error instanceof OpenAI.APIUserAbortError) {
    return new ModelError('aborted', 'the call of the model was cancelled', { retryable: false })
  }
  if (error instanceof SyntaxError) {
    return new ModelError('bad_answer', "the model server's answer is not JSON", { status: 200, retryable: true })
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
  if (status === 401 || status === 403) return ['unauthorised', false]
  if (status === 408) return ['timeout', true]
  // A limit a minute that the one request is beyond: waiting does not help, a shorter one does.
  if (status === 429) return /request too large/i.test(message) ? ['context_too_long', false] : ['rate_limited', true]
  if (isTooLong(refusal)) return ['context_too_long', false]
  if (lacksTools(refusal)) return ['bad_request', false]
  if (status === 409 || status >= 500) return ['unavailable', true]
  return ['bad_request', false]
}

/** One line of what the server said, without the key and without anything that moves a terminal. */
function lineOf(text: string, apiKey: string): string {
  const safe = apiKey.length >= 4 ? text.replaceAll(apiKey, '[redacted]') : text
  return safe
    .slice(0, 300)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
}

/** The error of this kind among the causes of another. */
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
  | 'bad_request'
  | 'context_too_long'
  | 'oversized'
  | 'bad_answer'
  | 'aborted'

/** Why a model gave no answer that can be used. The message holds no key and at most a line of the server's own words. */
export class ModelError extends Error {
  override name = 'ModelError' as const
  readonly code: ModelErrorCode
  /** Null when no answer came. */
  readonly status: number | null
  /** When the server asked to be left alone for a while. */
  readonly retryAfterMs: number | null
  readonly retryable: boolean
  /** The window of the model, where a refusal for length says it. */
  readonly windowTokens: number | null
  constructor(
    code: ModelErrorCode,
    message: string,
    details: { status?: number | null; retryAfterMs?: number | null; retryable: boolean; windowTokens?: number | null },
  ) {
    super(message)
    this.code = code
    this.status = details.status ?? null
    this.retryAfterMs = details.retryAfterMs ?? null
    this.retryable = details.retryable
    this.windowTokens = details.windowTokens ?? null
  }
}
