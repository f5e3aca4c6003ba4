import { withAdvisoryLock } from '../db/advisory-lock.ts'
import { removeOld } from '../db/retention/remove.ts'
import type { EffectDeps } from './effect.ts'

const everyMs = 3_600_000
/** A start is busy enough without it. */
const firstAfterMs = 60_000

type RetentionDeps = Pick<EffectDeps, 'db' | 'locks' | 'log'>

/**
 * One round over what is old, in one process at a time; a failure is noted and the next round
 * begins at the start.
 */
async function retentionRound({ db, locks, log }: RetentionDeps, signal: AbortSignal): Promise<void> {
  try {
    const removed = await withAdvisoryLock(locks, 'retention', () => removeOld(db, signal))
    if (removed && Object.values(removed).some((count) => count > 0)) log.info(removed, 'removed what is old')
  } catch (error) {
    log.error({ err: error }, 'retention did not go through what is old; the next round comes')
  }
}

/** Runs a round every hour. Answers how to stop: between two batches. */
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
