import { randomUUID } from 'node:crypto'
import { acceptEffect, type Effect, effectByKey, finishEffect } from '../db/effects.ts'
import { withAdvisoryLock } from '../db/lock.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { Principal } from '../domain/operator.ts'
import type { ApiDeps } from './deps.ts'
import type { Ending } from './platform-ending.ts'
import { Problem } from './problem.ts'
import { settleEffect } from './settle-effect.ts'

type EffectRequest = {
  principal: Principal
  key: string | null
  judged: IncidentEvent<'tool_started'> | null
  tool: string
  actionDigest: string
  incidentId?: string | null
}

/** How a write ended; `indeterminate` where whoever did it says that nobody can tell. */
export type EffectEnding = Omit<Ending, 'status'> & { status: Ending['status'] | 'indeterminate' }

/** Callers wait at most 30 s: before that they are told that it is still at work, and ask by the key. */
const answerWithinMs = 25_000

/** The key of a write: an agent's step key, or one of the person's own. */
function effectKeyOf({ principal, key, judged }: Pick<EffectRequest, 'principal' | 'key' | 'judged'>): string {
  return judged?.stepKey ?? `api:${principal.tokenId}:${key ?? randomUUID()}`
}

/** The lock that whoever carries an effect out holds: free means that nobody is at it any more. */
export function effectLock(key: string): string {
  return `effect:${key}`
}

/**
 * Carries a write out once per key, whoever asks how often. The row that accepts it is committed before the platform hears of
 * it; the work goes on when the caller does not wait for it. Answers the effect as far as it has come.
 */
export async function runEffect(
  deps: ApiDeps,
  request: EffectRequest,
  { before, perform }: { before?: () => Promise<void>; perform(key: string): Promise<EffectEnding | null> },
): Promise<Effect> {
  const { db, locks, metrics, log, state } = deps
  const key = effectKeyOf(request)
  const incidentId = request.judged?.incidentId ?? request.incidentId ?? null
  const { tool, actionDigest } = request

  const work = withAdvisoryLock(locks, effectLock(key), async () => {
    // What must hold before it begins no longer holds once it was done: a repeat is not asked.
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
  // Whoever stopped waiting is not told of a fault any more: the log is, and the key still answers.
  work.catch(
    (error) => error instanceof Problem || log.error({ err: error, key, tool }, 'an effect was not carried to its end'),
  )

  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, answerWithinMs, 'late')
  })
  const came = await Promise.race([work, late]).finally(() => clearTimeout(timer))

  const effect = came === false ? await settleEffect(deps, key) : await effectByKey(db, key)
  if (!effect) throw new Problem(503, 'EFFECT_BUSY', 'Another request with this key is about to be accepted.')
  if (effect.actionDigest !== actionDigest) {
    throw new Problem(422, 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another action.')
  }
  return effect
}
