import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../clients/http.ts'
import { type PlatformClient, PlatformError } from '../clients/platform.ts'
import { type Effect, effectByKey, finishEffect } from '../db/effects.ts'
import { eventByStepKey } from '../db/events.ts'
import { withAdvisoryLock } from '../db/lock.ts'
import { proposalById } from '../db/proposals.ts'
import { planOfEffect } from '../db/steps.ts'
import { isDeviceTool } from '../mesh/registry.ts'
import type { ApiDeps } from './deps.ts'
import { type EffectEnding, effectLock } from './effect.ts'
import { executePlan } from './execute-plan.ts'
import { settleDeviceCall } from './mesh/settle.ts'
import { type Ending, endingOf } from './platform-ending.ts'

type KnownEffect = Effect & { actionDigest: string; tool: string }

/** Before this the one who carries it out will tell. */
const askAfterSeconds = 5
/** A write that is not in the platform's journal after this long is not on its way any more. */
const lostAfterSeconds = 60
/** After this, what was approved is too old to be gone on with: what was done is told, the rest is left. */
const goOnWithinSeconds = 3_600
/** Whoever asks is answered by then: a plan that is gone on with takes longer. */
const answerWithinMs = 2_000

/**
 * An effect as it stands. One that nobody carries out any more (the process died, or the answer was lost) is settled by
 * asking the platform, or the device, for its keys; only what can be told is written down. A plan that was left in the middle is gone on with,
 * under the approval it has.
 */
export async function settleEffect(deps: ApiDeps, key: string): Promise<KnownEffect | null> {
  const { db, locks, platform, log } = deps
  const effect = await effectByKey(db, key)
  if (effect?.status !== 'running') return effect
  const onDevice = isDeviceTool(effect.tool)
  if (!onDevice && !platform) return effect
  const runningSeconds = effect.runningSeconds ?? 0
  if (runningSeconds < askAfterSeconds) return effect
  const work = withAdvisoryLock(locks, effectLock(key), async () => {
    if ((await effectByKey(db, key))?.status !== 'running') return
    const ending: EffectEnding | null = onDevice
      ? await settleDeviceCall(deps, key, runningSeconds > lostAfterSeconds)
      : await endingFrom(deps, platform as PlatformClient, key, runningSeconds)
    if (ending) await finishEffect(db, key, ending)
  })
  work.catch((error) => log.error({ err: error, key }, 'an effect could not be settled'))
  await Promise.race([work, sleep(answerWithinMs, undefined, { ref: false })])
  return await effectByKey(db, key)
}

async function endingFrom(
  deps: ApiDeps,
  platform: PlatformClient,
  key: string,
  runningSeconds: number,
): Promise<Ending | null> {
  const isLost = runningSeconds > lostAfterSeconds
  try {
    const plan = await planOfEffect(deps.db, key)
    if (plan !== null) return await goOn(deps, platform, key, plan, runningSeconds)
    const answer = await platform.effect(key)
    if (answer) return endingOf(answer)
    return isLost ? { status: 'failed', detail: 'it never reached the platform', result: {} } : null
  } catch (error) {
    // Out of reach: nothing can be told, and nothing is written down.
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}

async function goOn(
  deps: ApiDeps,
  platform: PlatformClient,
  key: string,
  proposalId: string,
  runningSeconds: number,
): Promise<Ending | null> {
  const found = await proposalById(deps.db, proposalId)
  if (!found) return null
  const started = await eventByStepKey(deps.db, key)
  const judged = started?.kind === 'tool_started' ? started : null
  const by = { key, actor: started?.actor ?? 'system:core-api', judged }
  return await executePlan(deps, platform, found, by, {
    resumed: { isLate: runningSeconds > goOnWithinSeconds },
  })
}
