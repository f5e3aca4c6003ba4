import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { isTransient } from '../db/connect.ts'
import { StaleRunError } from '../db/log/append.ts'

/**
 * Thrown where waiting may help; `code` is closed, and `retryAfterMs` is what the other side asked
 * for.
 */
export class RetryLater extends Error {
  override name = 'RetryLater' as const
  readonly code: string
  readonly retryAfterMs: number | null
  constructor(code: string, retryAfterMs: number | null = null) {
    super(code)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** Thrown where no retry can help. */
export class NonRetryable extends Error {
  override name = 'NonRetryable' as const
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/**
 * The only way an error leaves an activity: a closed code. Messages, causes and stacks stay in the
 * process's log, since workflow history is kept long, shown to many, and may quote an alert or
 * secret.
 */
function toFailure(error: unknown): Error {
  if (error instanceof CancelledFailure) return error
  const failure = ApplicationFailure.create({
    message: codeOf(error),
    type: codeOf(error),
    nonRetryable: error instanceof NonRetryable || error instanceof StaleRunError,
    ...(error instanceof RetryLater && error.retryAfterMs !== null ? { nextRetryDelay: error.retryAfterMs } : {}),
  })
  failure.stack = ''
  return failure
}

function codeOf(error: unknown): string {
  if (error instanceof RetryLater || error instanceof NonRetryable) return error.code
  if (isTransient(error)) return 'DATABASE_UNAVAILABLE'
  if (error instanceof Error) return error.name
  return 'UNKNOWN'
}

type Log = { warn(fields: object, message: string): void; info(fields: object, message: string): void }

/** Wraps activities so that whatever they throw is logged here and leaves as a closed code. */
export function sanitizeFailures<T extends Record<string, (...args: never[]) => Promise<unknown>>>(
  activities: T,
  log: Log,
): T {
  const entries = Object.entries(activities).map(([name, activity]) => [
    name,
    async (...args: never[]) => {
      try {
        return await activity(...args)
      } catch (error) {
        if (error instanceof RetryLater) log.warn({ activity: name, code: error.code }, 'activity will be tried again')
        else if (!(error instanceof CancelledFailure)) log.warn({ activity: name, err: error }, 'activity failed')
        throw toFailure(error)
      }
    },
  ])
  return Object.fromEntries(entries) as T
}
