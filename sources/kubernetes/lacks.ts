import { ClusterError } from '../../clients/kubernetes/server.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { missingRule, type SeenCluster } from './connect.ts'
import type { FollowedKind } from './kinds.ts'
import type { FollowState } from './view.ts'

/** How a cluster is followed: when it was heard of last, and what of it is not seen. */

/** `last heard of 3 min ago`, or that nothing was heard yet. */
export function sayHeard(states: readonly { heardMs: number | null }[], nowMs: number): string {
  const heard = states.flatMap(({ heardMs }) => heardMs ?? [])
  return heard.length === 0 ? 'never heard of' : `last heard of ${formatSpan(nowMs - Math.max(...heard))} ago`
}

/** A watch tells about once a minute that it lives. */
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
      ? [`it may not list ${kindsOf(forbidden).join(', ')}: its role lacks ${rules.join(' and ')}`]
      : []),
    ...(quiet.length > 0 ? [`it does not follow ${kindsOf(quiet).join(', ')}: ${sayHeard(quiet, nowMs)}`] : []),
  ]
}

/** The unseen part of the cluster, with the rule or trouble in the way; null: all is followed. */
export function findLacks({ view: { states } }: SeenCluster, nowMs: number): string | null {
  const unread = states.reduce((sum, each) => sum + each.unread, 0)
  const odd = unread > 0 ? [`${formatCount(unread, 'object')} could not be read`] : []
  return [...sayTroubles(states, nowMs), ...odd].join('; ') || null
}

/**
 * The reason why knowledge of these kinds may be less than all, in one namespace or in all; empty
 * where it is all.
 */
export function unseenOf(
  { name, view, namespaces }: SeenCluster,
  kinds: readonly FollowedKind[],
  namespace: string | null,
  nowMs: number,
): string[] {
  const limits = namespaces === null ? null : `${name} is read in ${namespaces.join(', ')} alone`
  if (limits !== null && namespace !== null && !namespaces?.includes(namespace))
    return [`${limits}, and not in ${namespace}`]
  const isAsked = (each: FollowState) =>
    kinds.includes(each.kind) && (namespace === null || each.namespace === null || each.namespace === namespace)
  return [
    ...(limits !== null && namespace === null ? [limits] : []),
    ...sayTroubles(view.states.filter(isAsked), nowMs),
  ]
}
