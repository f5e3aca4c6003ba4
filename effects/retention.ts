import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { removeOld } from '../db/retention/remove.ts'
import type { EffectDeps } from './effect.ts'

const everyMs = 3_600_000
/** Milliseconds before the first round, because the process has enough other work at its start. */
const firstAfterMs = 60_000

type RetentionDeps = Pick<EffectDeps, 'db' | 'locks' | 'log'>

/**
 * Runs one round that removes old rows, in one process at a time. A failure is recorded, and the
 * next round tries again.
 */
async function retentionRound({ db, locks, log }: RetentionDeps, signal: AbortSignal): Promise<void> {
  try {
    const removed = await withAdvisoryLock(locks, 'retention', () => removeOld(db, signal))
    if (removed && Object.values(removed).some((count) => count > 0)) log.info(removed, 'removed old rows')
  } catch (error) {
    log.error({ err: error }, 'deleting old rows failed; the next run tries it again')
  }
}

/** Runs a round every hour. Returns a function that stops between two batches. */
export function startRetention(deps: RetentionDeps): () => void {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout
  const round = async () => {
    await retentionRound(deps, stopping.signal)
    if (!stopping.signal.aborted) timer = setTimeout(round, everyMs)
  }
  timer = setTimeout(round, firstAfterMs)
  return () => {
    stopping.abort()
    clearTimeout(timer)
  }
}
