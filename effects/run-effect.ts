import { randomUUID } from 'node:crypto'
import { acceptEffect, type Effect, effectByKey, finishEffect } from '../db/effects.ts'
import { withAdvisoryLock } from '../db/lock.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { Principal } from '../domain/operator.ts'
import { type EffectDeps, type EffectEnding, EffectRefused, effectLock } from './effect.ts'
import { reconcileEffect } from './reconcile.ts'

type EffectRequest = {
  principal: Principal
  key: string | null
  judged: IncidentEvent<'tool_started'> | null
  tool: string
  actionDigest: string
  incidentId?: string | null
}

type EffectSteps = {
  /** Checks that the state is still the approved one. Runs only before the key is accepted. */
  before?: () => Promise<void>
  /** Does the write. Null: its ending is not known yet. */
  perform(key: string): Promise<EffectEnding | null>
}

/** A caller waits at most 30 s. Before that the answer is that the write still runs, and the key tells more. */
const answerWithinMs = 25_000

/**
 * Runs a write once per key, however often it is asked for. The row that accepts it is committed before the platform or the
 * device is called, and the work goes on when the caller stops waiting. Answers the effect as far as it has come.
 */
export async function runEffect(deps: EffectDeps, request: EffectRequest, steps: EffectSteps): Promise<Effect> {
  const { db, log } = deps
  const { tool, actionDigest } = request
  const key = getEffectKey(request)
  const work = startOnce(deps, key, request, steps)
  // A caller that stopped waiting hears of no fault any more: the log does, and the key still answers.
  work.catch(
    (error) =>
      error instanceof EffectRefused || log.error({ err: error, key, tool }, 'an effect was not carried to its end'),
  )

  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, answerWithinMs, 'late')
  })
  const outcome = await Promise.race([work, late]).finally(() => clearTimeout(timer))

  const effect = outcome === false ? await reconcileEffect(deps, key) : await effectByKey(db, key)
  if (!effect) {
    throw new EffectRefused('unavailable', 'EFFECT_BUSY', 'Another request with this key is about to be accepted.')
  }
  if (effect.actionDigest !== actionDigest) {
    throw new EffectRefused('invalid', 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another action.')
  }
  return effect
}

/** The key of a write: an agent's step key, or the one that a person sent. */
function getEffectKey({ principal, key, judged }: Pick<EffectRequest, 'principal' | 'key' | 'judged'>): string {
  return judged?.stepKey ?? `api:${principal.tokenId}:${key ?? randomUUID()}`
}

/** False where the key was accepted before, null where another process is working on it. */
async function startOnce(
  { db, locks, metrics, state }: EffectDeps,
  key: string,
  request: EffectRequest,
  { before, perform }: EffectSteps,
): Promise<boolean | null> {
  const { tool, actionDigest } = request
  const incidentId = request.judged?.incidentId ?? request.incidentId ?? null
  return await withAdvisoryLock(locks, effectLock(key), async () => {
    // The write itself changes the state that `before` compares, so a repeated request skips it.
    if (before && !(await effectByKey(db, key))) await before()
    if (!(await acceptEffect(db, { key, incidentId, tool, actionDigest }))) return false
    try {
      const ending = await perform(key)
      if (ending) await finishEffect(db, key, ending)
      metrics.effects.inc({ tool, status: ending?.status ?? 'unknown' })
    } finally {
      state.forget()
    }
    return true
  })
}
