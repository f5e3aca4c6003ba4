import { append } from '../db/append.ts'
import type { Trx } from '../db/connect.ts'
import { eventsOf } from '../db/events.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { type Run, stepKey } from '../domain/step-key.ts'
import type { State } from '../safety/fold.ts'

/**
 * Says whether a follower's own investigation confirmed its leader's hint: it did when the same kinds of write were verified
 * here, diverged otherwise. Judged from rows when the follower ends, never from what the model says about it.
 */
export async function recordHint(trx: Trx, run: Run, state: State, events: readonly IncidentEvent[]): Promise<void> {
  const leader = state.hintFrom
  if (leader === null) return
  const own = verifiedTools(events.filter((event) => event.attempt === run.attempt))
  const theirs = verifiedTools(await eventsOf(trx, leader))
  const same = theirs.length > 0 && own.join() === theirs.join()
  const stepKeyOf = (kind: 'hint_confirmed' | 'hint_diverged') => stepKey(run, 0, kind, 0)
  if (same) {
    await append(trx, run.incidentId, run.attempt, {
      kind: 'hint_confirmed',
      actor: agentActor,
      stepKey: stepKeyOf('hint_confirmed'),
      detail: `The same repair held here: ${own.join(', ')}`,
      metadata: { leader },
    })
    return
  }
  const why = own.length === 0 ? 'nothing was repaired here' : `${own.join(', ')} held here, ${theirs.join(', ')} there`
  await append(trx, run.incidentId, run.attempt, {
    kind: 'hint_diverged',
    actor: agentActor,
    stepKey: stepKeyOf('hint_diverged'),
    detail: `The leader's hint did not apply: ${why}`,
    metadata: { leader, why },
  })
}

function verifiedTools(events: readonly IncidentEvent[]): string[] {
  const held = events.flatMap((event) =>
    event.kind === 'verification' && event.metadata.outcome === 'held' ? [event.metadata.tool] : [],
  )
  return [...new Set(held)].sort()
}
