import { setTimeout as sleep } from 'node:timers/promises'
import { type FollowTimes, follow, type OpenServer, usualTimes } from './follow.ts'
import { clusterKinds, type FollowedKind, followedKinds } from './kinds.ts'
import { type ClusterView, type FollowState, newView } from './view.ts'

/**
 * Views of clusters in this process, one per source. A view begins at the first query, and ends
 * after some time without a query.
 */

type Kept = {
  /**
   * The settings that decide the contents of a view. Another address, credential or option begins a
   * new view.
   */
  key: string
  view: ClusterView
  stop: AbortController
  first: Promise<void>
  idle: NodeJS.Timeout | null
}

const kept = new Map<string, Kept>()

/**
 * Milliseconds without a query after which a view ends: longer than two rounds of the inventory.
 */
const idleMs = 660_000

type Wanted = {
  name: string
  key: string
  /** The namespaces that the view follows. Null for the whole cluster. */
  namespaces: readonly string[] | null
  open: OpenServer
  times?: FollowTimes
}

/**
 * Returns the view of a source as soon as each kind was listed or failed, and after `withinMs` at
 * the latest.
 */
export async function viewOf(wanted: Wanted, withinMs: number): Promise<ClusterView> {
  const found = kept.get(wanted.name)
  const entry = found?.key === wanted.key ? found : begin(wanted)
  if (entry.idle) clearTimeout(entry.idle)
  entry.idle = setTimeout(() => endViewOf(wanted.name), idleMs).unref()
  const over = new AbortController()
  await Promise.race([entry.first, sleep(withinMs, undefined, { signal: over.signal, ref: false }).catch(() => {})])
  over.abort()
  return entry.view
}

/** Ends the view of a changed or removed source. */
export function endViewOf(name: string): void {
  const entry = kept.get(name)
  kept.delete(name)
  entry?.stop.abort()
  if (entry?.idle) clearTimeout(entry.idle)
}

function begin({ name, key, namespaces, open, times = usualTimes }: Wanted): Kept {
  endViewOf(name)
  const view = newView()
  const stop = new AbortController()
  const inTurn = takeTurns()
  const firsts = placesOf(namespaces).map(({ kind, namespace }) => {
    const state: FollowState = { kind, namespace, listedMs: null, heardMs: null, trouble: null, unread: 0 }
    view.states.push(state)
    return new Promise<void>((resolve) => {
      void follow({ view, state, open, signal: stop.signal, times, onFirst: resolve, inTurn })
    })
  })
  const entry: Kept = { key, view, stop, first: Promise.all(firsts).then(() => {}), idle: null }
  kept.set(name, entry)
  return entry
}

/**
 * Lists the kinds to follow: each kind once in the whole cluster, or once in each readable
 * namespace. Rights in namespaces do not include kinds of the whole cluster.
 */
function placesOf(namespaces: readonly string[] | null): { kind: FollowedKind; namespace: string | null }[] {
  const kinds = Object.keys(followedKinds) as FollowedKind[]
  if (namespaces === null) return kinds.map((kind) => ({ kind, namespace: null }))
  return kinds
    .filter((kind) => !clusterKinds[kind].isOfCluster)
    .flatMap((kind) => namespaces.map((namespace) => ({ kind, namespace })))
}

/** Runs tasks one after the other, in order. */
function takeTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return async (work) => {
    const before = last.catch(() => {})
    const own = before.then(work)
    last = own
    return await own
  }
}
