type ModelErrorCode =
  | 'rate_limited'
  | 'unavailable'
  | 'timeout'
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
