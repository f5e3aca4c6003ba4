import { ClusterError } from '../../clients/kubernetes/server.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { missingRule, type SeenCluster } from './connect.ts'
import type { FollowedKind } from './kinds.ts'
import type { FollowState } from './view.ts'

/** Reports how well a cluster is followed: when its server last sent data, and what is not seen. */

/** Formats `last response 3 min ago`, or that no response was received yet. */
export function sayHeard(states: readonly { heardMs: number | null }[], nowMs: number): string {
  const heard = states.flatMap(({ heardMs }) => heardMs ?? [])
  return heard.length === 0 ? 'no response received yet' : `last response ${formatSpan(nowMs - Math.max(...heard))} ago`
}

/**
 * Milliseconds without data after which a watch counts as quiet. A working watch receives data
 * about once a minute.
 */
const quietMs = 300_000

const isForbidden = ({ trouble }: FollowState): boolean =>
  trouble?.error instanceof ClusterError && trouble.error.code === 'forbidden'

function sayTroubles(states: readonly FollowState[], nowMs: number): string[] {
  const forbidden = states.filter(isForbidden)
  const quiet = states.filter((each) => each.trouble && !isForbidden(each) && nowMs - (each.heardMs ?? 0) > quietMs)
  const kindsOf = (of: readonly FollowState[]) => [...new Set(of.map(({ kind }) => kind))]
  const rules = kindsOf(forbidden).map((read) => missingRule({ read }))
  return [
    ...(forbidden.length > 0
      ? [`Nightshift may not list ${kindsOf(forbidden).join(', ')}: its role lacks ${rules.join(' and ')}`]
      : []),
    ...(quiet.length > 0 ? [`Nightshift does not follow ${kindsOf(quiet).join(', ')}: ${sayHeard(quiet, nowMs)}`] : []),
  ]
}

/** Returns which parts of the cluster are not seen, and why. Null if everything is followed. */
export function findLacks({ view: { states } }: SeenCluster, nowMs: number): string | null {
  const unread = states.reduce((sum, each) => sum + each.unread, 0)
  const odd = unread > 0 ? [`${formatCount(unread, 'object')} could not be read`] : []
  return [...sayTroubles(states, nowMs), ...odd].join('; ') || null
}

/**
 * Returns why knowledge of these kinds may be incomplete, in one namespace or in all. Empty if the
 * knowledge is complete.
 */
export function unseenOf(
  { name, view, namespaces }: SeenCluster,
  kinds: readonly FollowedKind[],
  namespace: string | null,
  nowMs: number,
): string[] {
  const limits = namespaces === null ? null : `${name} is read only in ${namespaces.join(', ')}`
  if (limits !== null && namespace !== null && !namespaces?.includes(namespace))
    return [`${limits}, and not in ${namespace}`]
  const isAsked = (each: FollowState) =>
    kinds.includes(each.kind) && (namespace === null || each.namespace === null || each.namespace === namespace)
  return [
    ...(limits !== null && namespace === null ? [limits] : []),
    ...sayTroubles(view.states.filter(isAsked), nowMs),
  ]
}
