import { HttpError } from '../clients/http.ts'
import { type PlatformClient, PlatformError } from '../clients/platform.ts'
import type { Db } from '../db/connect.ts'
import { type Effect, effectByKey, finishEffect } from '../db/effects.ts'
import { withAdvisoryLock } from '../db/queue.ts'
import { stepsOfEffect } from '../db/steps.ts'
import type { ApiDeps } from './deps.ts'
import { effectLock } from './effect.ts'
import type { PlacementStepOutcome } from './execute-plan.ts'
import { planEnding } from './execute-plan.ts'
import { type Ending, endingOf } from './platform-ending.ts'

type KnownEffect = Effect & { actionDigest: string }

/** Before this the one who carries it out will tell. */
const askAfterSeconds = 5
/** A write that is not in the platform's journal after this long is not on its way any more. */
const lostAfterSeconds = 60

/**
 * An effect as it stands. One that nobody carries out any more (the process died, or the answer was lost) is settled by
 * asking the platform for its keys; only what can be told is written down.
 */
export async function settleEffect(deps: ApiDeps, key: string): Promise<KnownEffect | null> {
  const { db, locks, platform } = deps
  const effect = await effectByKey(db, key)
  if (!effect || !platform || effect.status !== 'running') return effect
  const runningSeconds = effect.runningSeconds ?? 0
  if (runningSeconds < askAfterSeconds) return effect
  await withAdvisoryLock(locks, effectLock(key), async () => {
    const ending = await endingFromPlatform(db, platform, key, runningSeconds)
    if (ending) await finishEffect(db, key, ending)
  })
  return await effectByKey(db, key)
}

async function endingFromPlatform(
  db: Db,
  platform: PlatformClient,
  key: string,
  runningSeconds: number,
): Promise<Ending | null> {
  const never: Ending = { status: 'failed', detail: 'it never reached the platform', result: {} }
  const lost = runningSeconds > lostAfterSeconds
  try {
    const steps = await stepsOfEffect(db, key)
    if (!steps) {
      const answer = await platform.effect(key)
      return answer ? endingOf(answer) : lost ? never : null
    }
    const outcomes: PlacementStepOutcome[] = []
    for (const step of steps) {
      const answer = await platform.effect(`${key}:${step.step}`)
      const ending = answer ? endingOf(answer) : lost ? never : null
      if (!ending) return null
      outcomes.push({ ...step, status: ending.status === 'done' ? 'OK' : 'FAILED', detail: ending.detail })
    }
    return planEnding(outcomes)
  } catch (error) {
    // Out of reach: nothing can be told, and nothing is written down.
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}
