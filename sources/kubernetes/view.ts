import { type FollowedKind, isWorkload } from './kinds.ts'
import type { KeptObject, KeptOf, KeptPod, KeptWorkload } from './objects.ts'

/**
 * The objects of a cluster that this process knows, in short forms, and the deleted objects.
 * `follow.ts` fills the view.
 */

/** The state of the list of one kind, in one namespace or in all. */
export type FollowState = {
  kind: FollowedKind
  namespace: string | null
  /** The time of the last complete list. */
  listedMs: number | null
  /** The last time when the server sent data: a list, a change, or a sign that nothing changed. */
  heardMs: number | null
  /** The reason why the kind is not followed now. */
  trouble: { error: unknown; sinceMs: number } | null
  /** Number of objects that could not be read. */
  unread: number
}

/** A pod, or an owner of a pod, with its workload. */
type Member = {
  kind: 'Pod' | 'ReplicaSet' | 'Job'
  uid: string
  namespace: string
  name: string
  node: string
  workload: { kind: KeptWorkload['kind']; name: string; uid: string } | null
}

export type ClusterView = {
  objects: Map<string, KeptObject>
  byName: Map<string, string>
  /** The uids of the objects that each owner controls. */
  owned: Map<string, Set<string>>
  states: FollowState[]
  /** Deleted objects with their last known workload. Only the newest are kept. */
  gone: Map<string, Member & { goneMs: number }>
}

const maxGone = 20_000

export const newView = (): ClusterView => ({
  objects: new Map(),
  byName: new Map(),
  owned: new Map(),
  states: [],
  gone: new Map(),
})

const nameKey = (kind: string, namespace: string | null, name: string): string => `${kind}/${namespace ?? ''}/${name}`

export function putObject(view: ClusterView, object: KeptObject): void {
  const before = view.objects.get(object.uid)
  if (before?.owner && before.owner.uid !== object.owner?.uid) view.owned.get(before.owner.uid)?.delete(object.uid)
  view.objects.set(object.uid, object)
  view.byName.set(nameKey(object.kind, object.namespace, object.name), object.uid)
  if (!object.owner) return
  const siblings = view.owned.get(object.owner.uid) ?? new Set()
  view.owned.set(object.owner.uid, siblings.add(object.uid))
}

export function removeObject(view: ClusterView, uid: string, nowMs: number): void {
  const object = view.objects.get(uid)
  if (!object) return
  const member = memberOf(view, object)
  if (member) {
    view.gone.set(uid, { ...member, goneMs: nowMs })
    if (view.gone.size > maxGone) view.gone.delete(view.gone.keys().next().value as string)
  }
  view.objects.delete(uid)
  const key = nameKey(object.kind, object.namespace, object.name)
  // Removes the name only if it still belongs to this object and not to a newer one.
  if (view.byName.get(key) === uid) view.byName.delete(key)
  const siblings = object.owner && view.owned.get(object.owner.uid)
  if (siblings) {
    siblings.delete(uid)
    if (siblings.size === 0) view.owned.delete((object.owner as { uid: string }).uid)
  }
}

/**
 * Replaces the objects of a kind by a complete list. Objects that the list lacks count as deleted.
 */
export function replaceListed(
  view: ClusterView,
  { kind, namespace }: Pick<FollowState, 'kind' | 'namespace'>,
  listed: ReadonlySet<string>,
  nowMs: number,
): void {
  for (const object of [...view.objects.values()]) {
    const isOfList = object.kind === kind && (namespace === null || object.namespace === namespace)
    if (isOfList && !listed.has(object.uid)) removeObject(view, object.uid, nowMs)
  }
}

export function findObject<K extends FollowedKind>(
  view: ClusterView,
  kind: K,
  namespace: string | null,
  name: string,
): KeptOf<K> | null {
  const uid = view.byName.get(nameKey(kind, namespace, name))
  return (uid === undefined ? null : (view.objects.get(uid) ?? null)) as KeptOf<K> | null
}

export const objectsOf = <K extends FollowedKind>(view: ClusterView, kind: K): KeptOf<K>[] =>
  [...view.objects.values()].filter((each) => each.kind === kind) as KeptOf<K>[]

const maxSteps = 4

/**
 * Finds the workload of an object through the chain of its controllers. Checks that each controller
 * has the uid that the object below names. An unknown owner, such as a custom kind, ends the chain.
 */
export function workloadOf(view: ClusterView, object: KeptObject): KeptWorkload | null {
  let at: KeptObject = object
  let found: KeptWorkload | null = isWorkload(object.kind) ? (object as KeptWorkload) : null
  for (let step = 0; step < maxSteps && at.owner; step += 1) {
    const above = view.objects.get(at.owner.uid)
    const isOwner = above && above.kind === at.owner.kind && above.name === at.owner.name
    if (!isOwner || above.namespace !== object.namespace || !isWorkload(above.kind)) break
    at = above
    found = above as KeptWorkload
  }
  return found
}

/** Lists the pods of a workload, directly or through the objects that it owns. */
export function podsOf(view: ClusterView, workload: KeptWorkload): KeptPod[] {
  const owned = (uid: string): KeptObject[] =>
    [...(view.owned.get(uid) ?? [])].flatMap((each) => view.objects.get(each) ?? [])
  // Visits each object once: an object that claims to own itself would make an endless loop.
  const found = new Set(owned(workload.uid))
  let below = [...found]
  for (let step = 1; step < maxSteps - 1; step += 1) {
    below = below.flatMap(({ uid }) => owned(uid)).filter((each) => !found.has(each))
    for (const each of below) found.add(each)
  }
  return [...found].filter(
    (each): each is KeptPod => each.kind === 'Pod' && workloadOf(view, each)?.uid === workload.uid,
  )
}

/**
 * Finds the workload of a deleted pod by name: the part before the random end is the name of an
 * existing owner. Null if no owner has the name; nothing is guessed.
 */
export function workloadByName(view: ClusterView, namespace: string, pod: string): KeptWorkload | null {
  const [, before] = /^(.+)-[a-z0-9]{5}$/.exec(pod) ?? []
  const [, set] = /^(.+)-\d{1,6}$/.exec(pod) ?? []
  const makers = [
    ...(before
      ? (['ReplicaSet', 'DaemonSet', 'Job'] as const).map((kind) => findObject(view, kind, namespace, before))
      : []),
    set ? findObject(view, 'StatefulSet', namespace, set) : null,
  ].filter((each) => each !== null)
  const [maker] = makers
  return maker && makers.length === 1 ? workloadOf(view, maker) : null
}

export function memberOf(view: ClusterView, object: KeptObject): Member | null {
  if (object.namespace === null) return null
  if (object.kind !== 'Pod' && object.kind !== 'ReplicaSet' && object.kind !== 'Job') return null
  const workload = workloadOf(view, object)
  // Remembers no workload, which is found by its own name.
  if (workload?.uid === object.uid) return null
  const { kind, uid, namespace, name } = object
  return {
    kind,
    uid,
    namespace,
    name,
    node: object.kind === 'Pod' ? object.node : '',
    workload: workload && { kind: workload.kind, name: workload.name, uid: workload.uid },
  }
}
