import { setTimeout as sleep } from 'node:timers/promises'
import { Context } from '@temporalio/activity'
import { HttpError } from '../clients/http.ts'
import { isTransient } from '../db/connect.ts'
import type { WaitedFor } from '../db/incidents/waits.ts'
import { RetryLater } from './failures.ts'
import { waits } from './heartbeat.ts'

/** Milliseconds that a step waits for an unreachable server before it fails. */
export const patienceMs = 10 * 60_000

const firstPauseMs = 250

const maxPauseMs = 5_000

/** Code of a `RetryLater`: the core API answered, but decided nothing (`saysNotYet`). */
export const notYet = 'NOT_YET'

/**
 * Returns the unreachable server if waiting may help; null for other failures. A refusal is an
 * answer, but "not yet" counts as unreachable.
 */
export function whoIsAway(error: unknown): WaitedFor | null {
  if (error instanceof RetryLater) return error.code === notYet ? 'core_api' : null
  if (error instanceof HttpError) return error.retryable ? 'core_api' : null
  return isTransient(error) ? 'database' : null
}

type Patience = {
  /** Milliseconds to wait, from now on. */
  forMs: number
  signal?: AbortSignal
  /**
   * Called at each pause with the server that is awaited, and once with null when that server
   * answered. An error of this function is ignored.
   */
  note?: (away: WaitedFor | null) => Promise<void>
}

/** Shows in Temporal what this activity waits for; null when the wait is over. */
function showWait(what: string | null): void {
  const context = Context.current()
  if (what === null) waits.delete(context)
  else if (waits.get(context)?.waitsFor !== what) {
    waits.set(context, { waitsFor: what, since: new Date().toISOString() })
    context.heartbeat(waits.get(context))
  }
}

/**
 * Retries idempotent work, with growing pauses, while the core API or the database is unreachable,
 * because a restart takes seconds and must not cost a counted attempt. The activity's heartbeat
 * names the server. Throws every other failure at once, and an outage that lasts longer than
 * `forMs`.
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
