import { setTimeout as sleep } from 'node:timers/promises'
import { Context } from '@temporalio/activity'
import { HttpError } from '../clients/http.ts'
import { isTransient } from '../db/connect.ts'
import type { WaitedFor } from '../db/incidents/waits.ts'
import { RetryLater } from './failures.ts'
import { waits } from './heartbeat.ts'

/** How long a step waits for a server that does not answer before it fails. */
export const patienceMs = 10 * 60_000

const firstPauseMs = 250

const maxPauseMs = 5_000

/** Code of a `RetryLater`: the core API answered, and decided nothing (`saysNotYet`). */
export const notYet = 'NOT_YET'

/**
 * The server that was away, where waiting may help; null for other failures. A refusal is an
 * answer; "not yet" is an absence.
 */
export function whoIsAway(error: unknown): WaitedFor | null {
  if (error instanceof RetryLater) return error.code === notYet ? 'core_api' : null
  if (error instanceof HttpError) return error.retryable ? 'core_api' : null
  return isTransient(error) ? 'database' : null
}

type Patience = {
  /** From now on. */
  forMs: number
  signal?: AbortSignal
  /**
   * Called at each pause with the awaited server, and once with null when it answered. What it
   * throws is dropped.
   */
  note?: (away: WaitedFor | null) => Promise<void>
}

/** Shows in Temporal what this activity waits for from now on; null when the wait is over. */
function showWait(what: string | null): void {
  const context = Context.current()
  if (what === null) waits.delete(context)
  else if (waits.get(context)?.waitsFor !== what) {
    waits.set(context, { waitsFor: what, since: new Date().toISOString() })
    context.heartbeat(waits.get(context))
  }
}

/**
 * Retries idempotent work while the core API or the database is away, with growing pauses: a
 * restart is back in seconds, and must not cost a counted try. The activity's heartbeat says what
 * it waits for. Every other failure is thrown at once, and so is an absence beyond `forMs`.
 */
export async function retryWhileAway<T>(work: () => Promise<T>, { forMs, signal, note }: Patience): Promise<T> {
  const until = performance.now() + forMs
  let hasWaited = false
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        return await work()
      } catch (error) {
        const away = whoIsAway(error)
        if (!away || performance.now() + pauseMs > until) throw error
        hasWaited = true
        showWait(away)
        void note?.(away).catch(() => {})
        await sleep(pauseMs, undefined, { signal })
      }
    }
  } finally {
    if (hasWaited) {
      showWait(null)
      void note?.(null).catch(() => {})
    }
  }
}
