import { ClusterError } from '../../clients/kubernetes/server.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { missingRule, type SeenCluster } from './connect.ts'

/** How a cluster is followed: when it was heard of last, and what of it is not seen. */

/** `last heard of 3 min ago`, or that nothing was heard yet. */
export function sayHeard(states: readonly { heardMs: number | null }[], nowMs: number): string {
  const heard = states.flatMap(({ heardMs }) => heardMs ?? [])
  return heard.length === 0 ? 'never heard of' : `last heard of ${formatSpan(nowMs - Math.max(...heard))} ago`
}

/** A watch tells about once a minute that it lives. */
const quietMs = 300_000

/** What is not seen of the cluster, with the rule or the trouble that is in the way; null: all is followed. */
export function findLacks({ view: { states } }: SeenCluster, nowMs: number): string | null {
  const isForbidden = (error: unknown) => error instanceof ClusterError && error.code === 'forbidden'
  const forbidden = states.filter(({ trouble }) => trouble && isForbidden(trouble.error))
  const quiet = states.filter(
    ({ trouble, heardMs }) => trouble && !isForbidden(trouble.error) && nowMs - (heardMs ?? 0) > quietMs,
  )
  const unread = states.reduce((sum, each) => sum + each.unread, 0)
  const kindsOf = (of: typeof states) => [...new Set(of.map(({ kind }) => kind))]
  const lacks = [
    ...(forbidden.length > 0
      ? [
          `it may not list ${kindsOf(forbidden).join(', ')}: its role lacks ${kindsOf(forbidden)
            .map((read) => missingRule({ read }))
            .join(' and ')}`,
        ]
      : []),
    ...(quiet.length > 0 ? [`it does not follow ${kindsOf(quiet).join(', ')}: ${sayHeard(quiet, nowMs)}`] : []),
    ...(unread > 0 ? [`${formatCount(unread, 'object')} could not be read`] : []),
  ]
  return lacks.length === 0 ? null : lacks.join('; ')
}
