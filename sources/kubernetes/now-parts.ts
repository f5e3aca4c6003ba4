import type { ClusterFact, ClusterNow, ShownCondition } from '../../domain/cluster-now.ts'
import type { SeenCluster } from './connect.ts'
import type { FoldedEvent } from './events.ts'
import { toIso } from './fields.ts'
import type { Condition, KeptPod } from './objects.ts'

/** Parts that the pages of a cluster, a node and a workload share. */

const maxEvents = 40

/** Returns the data of a page without contents. */
export function emptyNow({ name, view }: SeenCluster, kind: ClusterNow['kind'], nowMs: number): ClusterNow {
  const heardMs = Math.max(0, ...view.states.map((each) => each.heardMs ?? 0))
  return {
    source: name,
    kind,
    readAt: toIso(nowMs),
    heardAt: heardMs > 0 ? toIso(heardMs) : null,
    facts: [],
    conditions: [],
    pods: [],
    worst: null,
    rollouts: [],
    changes: [],
    unwell: [],
    unwellMore: 0,
    events: [],
    eventsMore: 0,
    partial: [],
  }
}

export const fact = (name: string, text: string, isIll = false): ClusterFact => ({ name, text, isIll })

/** Formats a pod's state. Distinguishes a running pod that is not ready from a ready pod. */
export const sayPodState = ({ state, isReady }: Pick<KeptPod, 'state' | 'isReady'>): string =>
  state === 'Running' ? (isReady ? 'Running, ready' : 'Running, not ready') : state

const rank = ({ type, isIll }: ShownCondition): number => (isIll ? 2 : 0) + (type === 'Ready' ? 1 : 0)

/**
 * Formats conditions: unhealthy conditions first, and `Ready` first among equals. `ill` lists the
 * unhealthy conditions.
 */
export function showConditionsOf(
  of: string,
  conditions: readonly Condition[],
  ill: readonly Pick<Condition, 'type'>[],
): ShownCondition[] {
  return conditions
    .map(({ type, isTrue, reason, message, sinceMs }) => ({
      of,
      type,
      is: isTrue === null ? ('Unknown' as const) : isTrue ? ('True' as const) : ('False' as const),
      isIll: ill.some((each) => each.type === type),
      since: sinceMs === null ? null : toIso(sinceMs),
      reason,
      message,
    }))
    .sort((a, b) => rank(b) - rank(a))
}

export function showEvents(folded: readonly FoldedEvent[]): Pick<ClusterNow, 'events' | 'eventsMore'> {
  return {
    events: folded.slice(0, maxEvents).map(({ firstMs, lastMs, ...each }) => ({
      ...each,
      first: toIso(firstMs),
      last: toIso(lastMs),
    })),
    eventsMore: Math.max(0, folded.length - maxEvents),
  }
}
