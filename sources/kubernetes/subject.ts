import { z } from 'zod'
import { SourceError } from '../kind.ts'
import type { SeenCluster } from './connect.ts'
import { type FollowedKind, followedKinds, isWorkload, workloadKinds } from './kinds.ts'
import { unseenOf } from './lacks.ts'
import type { KeptPod, KeptWorkload } from './objects.ts'
import { type ClusterView, findObject, objectsOf, podsOf, workloadByName, workloadOf } from './view.ts'

/** The pod or workload that a query to a cluster is about. */

export const sourceField = z.string().max(40).optional().describe('the cluster, where there are several')
export const namespaceField = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'is not the name of a namespace')
  .meta({ examples: ['shop'], description: 'where it is' })
export const nameField = z
  .string()
  .max(253)
  .regex(/^[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?$/, 'is not the name of an object')
  .meta({ examples: ['web'] })

export type ClusterSubject = {
  workload: KeptWorkload | null
  /** The pod that was named, or the worst pod of the workload. */
  pod: KeptPod | null
  pods: KeptPod[]
  /** The time when the view noticed that the named object was gone. Null for an existing object. */
  goneMs: number | null
  /** Other workloads of the namespace with the same name. */
  namesakes: string[]
}

/**
 * Finds a pod, a workload or a deleted pod by name. Throws SourceError, which lists the existing
 * names and the parts that are not seen.
 */
export function findSubject(cluster: SeenCluster, namespace: string, name: string, nowMs: number): ClusterSubject {
  const { view } = cluster
  const pod = findObject(view, 'Pod', namespace, name)
  if (pod) {
    const workload = workloadOf(view, pod)
    const namesakes = calledSo(view, namespace, name, workload)
    return { workload, pod, pods: workload ? podsOf(view, workload) : [pod], goneMs: null, namesakes }
  }
  for (const kind of workloadKinds) {
    const found = findObject(view, kind, namespace, name)
    const workload = found && (workloadOf(view, found) ?? found)
    if (workload) return { ...ofWorkload(view, workload, null), namesakes: calledSo(view, namespace, name, workload) }
  }
  const gone = [...view.gone.values()].findLast((each) => each.namespace === namespace && each.name === name)
  const left = gone?.workload && findObject(view, gone.workload.kind, namespace, gone.workload.name)
  if (gone && left) return ofWorkload(view, left, gone.goneMs)
  const maker = workloadByName(view, namespace, name)
  if (maker) return ofWorkload(view, maker, null)
  const unseen = unseenOf(cluster, ['Pod', ...workloadKinds], namespace, nowMs)
  const said = [sayThere(view, namespace), ...unseen].join('; ')
  throw new SourceError('REJECTED', `${cluster.name} has no pod and no workload ${name} in ${namespace}: ${said}`)
}

/**
 * Returns why the subject of a query may not be fully known: its pods, itself or its owner are not
 * followed.
 */
export function unseenOfSubject(cluster: SeenCluster, { workload, pod }: ClusterSubject, nowMs: number): string[] {
  const named = workload ?? pod
  const kinds = ['Pod', named?.kind ?? '', named?.owner?.kind ?? ''].filter((kind) =>
    Object.hasOwn(followedKinds, kind),
  )
  return unseenOf(cluster, kinds as FollowedKind[], named?.namespace ?? null, nowMs)
}

const calledSo = (view: ClusterView, namespace: string, name: string, chosen: KeptWorkload | null): string[] =>
  workloadKinds
    .flatMap((kind) => findObject(view, kind, namespace, name) ?? [])
    .filter((each) => (workloadOf(view, each) ?? each).uid !== chosen?.uid)
    .map(nameOfWorkload)

/** Returns a workload with its pods, the worst first. */
export function ofWorkload(view: ClusterView, workload: KeptWorkload, goneMs: number | null): ClusterSubject {
  const pods = podsOf(view, workload).sort((a, b) => badness(b) - badness(a) || b.createdMs - a.createdMs)
  return { workload, pod: pods[0] ?? null, pods, goneMs, namesakes: [] }
}

const badness = ({ isReady, isDone, isFailed, isEnding, restarts }: KeptPod): number =>
  (isReady || (isDone && !isFailed) ? 0 : isFailed ? 1.5 : 2) + (restarts > 0 ? 1 : 0) - (isEnding ? 1 : 0)

const maxNamed = 8

/** Lists existing names instead of a missing one: the namespace's workloads, or namespaces. */
function sayThere(view: ClusterView, namespace: string): string {
  const inside = [...view.objects.values()].filter(
    (each) => each.namespace === namespace && isWorkload(each.kind) && workloadOf(view, each)?.uid === each.uid,
  )
  const named = (words: string[]) =>
    `${words.slice(0, maxNamed).join(', ')}${words.length > maxNamed ? ` and ${words.length - maxNamed} more` : ''}`
  if (inside.length > 0) return `there is ${named(inside.map(({ kind, name }) => `${kind} ${name}`).sort())}`
  const spaces = new Set(
    [...view.objects.values()].flatMap((each) => (each.namespace === null ? [] : [each.namespace])),
  )
  return spaces.size === 0
    ? 'no object of the cluster is known'
    : `namespaces with objects are ${named([...spaces].sort())}`
}

export const nameOfWorkload = ({ kind, namespace, name }: KeptWorkload): string => `${kind} ${namespace}/${name}`

/** Counts all pods, the ready pods, and the pods in each other state. */
export function countPods(pods: readonly KeptPod[]) {
  const states = Map.groupBy(
    pods.filter(({ isReady }) => !isReady),
    ({ state }) => (state === 'Running' ? 'Running, not ready' : state),
  )
  const counts = [...states].map(([state, { length }]): [string, number] => [state, length])
  return {
    pods: pods.length,
    ready: pods.filter(({ isReady }) => isReady).length,
    ...(counts.length > 0 && { notReady: Object.fromEntries(counts) }),
  }
}

/**
 * Lists the services that select these pods, and services that select no pod, with the labels of
 * the namespace's pods.
 */
export function servicesOf(view: ClusterView, namespace: string, pods: readonly KeptPod[]): string[] {
  const there = objectsOf(view, 'Pod').filter((each) => each.namespace === namespace && !each.isDone)
  const matches = (selector: Readonly<Record<string, string>>, pod: KeptPod) =>
    Object.entries(selector).every(([name, value]) => pod.labels[name] === value)
  return objectsOf(view, 'Service').flatMap(({ namespace: own, name, selector }) => {
    if (own !== namespace || selector === null) return []
    const chosen = there.filter((pod) => matches(selector, pod))
    const words = Object.entries(selector).map((pair) => pair.join('='))
    if (chosen.length === 0) return [`${name} selects no pod (${words.join(', ')})${sayLabels(there, selector, name)}`]
    if (!pods.some((pod) => chosen.includes(pod))) return []
    return [`${name} sends to ${chosen.filter(({ isReady }) => isReady).length} ready of ${chosen.length}`]
  })
}

/**
 * Lists the values that the pods' labels have under the names of a service's selector. Pods with a
 * name similar to the service's name come first.
 */
function sayLabels(pods: readonly KeptPod[], selector: Readonly<Record<string, string>>, service: string): string {
  const found = pods.flatMap((pod) => {
    const words = Object.keys(selector).flatMap((name) =>
      Object.hasOwn(pod.labels, name) ? [`${name}=${pod.labels[name]}`] : [],
    )
    return words.length > 0 ? [{ words: words.join(','), isAlike: pod.name.startsWith(service) }] : []
  })
  const named = [...new Set(found.sort((a, b) => Number(b.isAlike) - Number(a.isAlike)).map(({ words }) => words))]
  return named.length > 0 ? `; pods here have ${named.slice(0, 3).join(' or ')}` : ''
}
