import { setTimeout as sleep } from 'node:timers/promises'
import { isTransient } from '../db/connect.ts'

/** Less than the 30 s an activity of rows may take, so that the last try still has time. */
const outageMs = 20_000
const everyMs = 500

/**
 * Runs work that may be run again, once more and once more while the database is away: one that is restarting is back in seconds,
 * and a try that is counted must not be spent on it. What is not an outage is thrown at once.
 */
export async function outlast<T>(work: () => Promise<T>): Promise<T> {
  const until = performance.now() + outageMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isTransient(error) || performance.now() > until) throw error
      await sleep(everyMs)
    }
  }
}
