import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { isTransient } from '../db/connect.ts'
import { StaleRunError } from '../db/log/append.ts'

/**
 * Thrown if waiting may help. `code` is one of a fixed set. `retryAfterMs` is the wait that the
 * server requested.
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

/** Thrown if a retry cannot help. */
export class NonRetryable extends Error {
  override name = 'NonRetryable' as const
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/**
 * Converts every error that leaves an activity to a fixed code. Messages, causes and stack traces
 * stay in the process' log: workflow history is kept long and shown to many, and an error may quote
 * an alert or a secret.
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

/** Wraps activities so that their errors are logged here and leave the process as a fixed code. */
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
        if (error instanceof RetryLater) log.warn({ activity: name, code: error.code }, 'the activity will be retried')
        else if (!(error instanceof CancelledFailure)) log.warn({ activity: name, err: error }, 'activity failed')
        throw toFailure(error)
      }
    },
  ])
  return Object.fromEntries(entries) as T
}
