import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../clients/http.ts'
import { isTransient } from '../db/connect.ts'
import type { WaitedFor } from '../db/waits.ts'
import { waitFor } from './heartbeat.ts'

/** So long a step waits for what does not answer. Only then does the silence become an answer. */
export const patienceMs = 10 * 60_000
const firstPauseMs = 250
const longestPauseMs = 5_000

/** Who was away, where waiting may help; null for every other failure. An answer that says no is no absence. */
export function whoIsAway(error: unknown): WaitedFor | null {
  if (error instanceof HttpError) return error.retryable ? 'core_api' : null
  return isTransient(error) ? 'database' : null
}

type Patience = {
  /** From now on. */
  forMs: number
  signal?: AbortSignal
  /** Called at each pause with what is waited for, and once with null when it answered. What it throws is dropped. */
  note?: (away: WaitedFor | null) => Promise<void>
}

/**
 * Retries idempotent work while the core API or the database is away, with longer and longer
 * pauses: one that restarts is back in seconds, and a try that is counted must not be spent on it. The activity's heartbeat says what it
 * waits for. What is no absence is thrown at once, and an absence that lasts longer than patience is thrown as it is.
 */
export async function outlast<T>(work: () => Promise<T>, { forMs, signal, note }: Patience): Promise<T> {
  const until = performance.now() + forMs
  let hasWaited = false
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await work()
      } catch (error) {
        const away = whoIsAway(error)
        if (!away || performance.now() + pauseMs > until) throw error
        hasWaited = true
        waitFor(away)
        void note?.(away).catch(() => {})
        await sleep(pauseMs, undefined, { signal })
      }
    }
  } finally {
    if (hasWaited) {
      waitFor(null)
      void note?.(null).catch(() => {})
    }
  }
}
