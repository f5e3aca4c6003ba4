import { toList, toText } from '../../domain/say.ts'
import { cleanse } from '../../safety/redact.ts'
import type { ContextParts } from '../kind.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { diagnose, type PodDiagnosis } from './diagnosis.ts'
import { type FoldedEvent, foldEvents, readEvents } from './events.ts'
import { cutInside, toIso } from './fields.ts'
import { isWorkload } from './kinds.ts'
import { isBehind, type KeptNode, type KeptObject, type KeptWorkload, sayRolling } from './objects.ts'
import { showCondition } from './pod.ts'
import { findByResource, stateOf } from './state.ts'
import { type ClusterSubject, countPods, nameOfWorkload, ofWorkload, servicesOf } from './subject.ts'
import { type ClusterView, objectsOf } from './view.ts'

/**
 * Lines about an object of a cluster for the first turn: its state, how its containers ended, the
 * changes of its newest rollout, and events. At most 1.5 kB.
 */

const maxBytes = 1_500
const maxLineCharacters = 320
const maxEvents = 4

type Asked = ContextParts['cluster']['subject']

export async function readClusterContext(
  ask: AskCluster,
  asked: Asked,
  { nowMs }: { nowMs: number },
): Promise<{ facts: string[] } | null> {
  const cluster = await ask({ view: true })
  const lines = await linesAbout(ask, cluster, asked, nowMs)
  return lines === null ? null : { facts: fitLines(cleanse(lines)) }
}

async function linesAbout(
  ask: AskCluster,
  cluster: SeenCluster,
  asked: Asked,
  nowMs: number,
): Promise<string[] | null> {
  const { view } = cluster
  const object = asked.kind === 'cluster' ? null : findByResource(cluster, asked)
  const state = stateOf(cluster, asked, nowMs)
  if (!state) return null
  if (!object) return [state.observed, ...illNodes(view), ...illWorkloads(view, null)]
  if (isWorkload(object.kind)) {
    const subject = chooseSubject(view, object as KeptWorkload, asked.pod)
    return linesOfWorkload(object as KeptWorkload, subject, await diagnose(ask, cluster, subject, nowMs))
  }
  if (object.kind === 'Node')
    return [state.observed, ...linesOfNode(view, object), ...(await eventLines(ask, view, object))]
  const inside = object.kind === 'Namespace' ? illWorkloads(view, object.name) : usersOf(view, object)
  return [state.observed, ...inside, ...(await eventLines(ask, view, object))]
}

/** Chooses the alert's pod if it belongs to the workload, and the worst pod otherwise. */
function chooseSubject(view: ClusterView, workload: KeptWorkload, pod: string | null): ClusterSubject {
  const subject = ofWorkload(view, workload, null)
  const named = subject.pods.find(({ name }) => name === pod)
  return named ? { ...subject, pod: named } : subject
}

function linesOfWorkload(
  workload: KeptWorkload,
  { pods }: ClusterSubject,
  { head, rollout, events, partial }: PodDiagnosis,
): string[] {
  const { ready, notReady = {} } = countPods(pods)
  const states = Object.entries(notReady).map(([state, count]) => `${count} ${state}`)
  const conditions = toList(head.conditions).map(sayCondition)
  return [
    `${nameOfWorkload(workload)}: ${ready} of ${pods.length} pods ready, ${workload.wanted} wanted${states.length > 0 ? `; not ready: ${states.join(', ')}` : ''}${workload.isPaused ? '; paused' : ''}`,
    ...(head.pod
      ? [
          `pod ${toText(head.pod)} on ${toText(head.node) || 'no node'}: ${toText(head.state)}${conditions.length > 0 ? `; ${conditions.join('; ')}` : ''}`,
        ]
      : []),
    ...toList(head.containers).slice(0, 2).map(sayContainer),
    ...(Array.isArray(head.lastLines) ? head.lastLines.map((line) => `it wrote last: ${toText(line)}`) : []),
    ...(rollout ? sayRollout(rollout) : []),
    ...(Array.isArray(head.failedPods) ? head.failedPods.map((each) => `failed: ${toText(each)}`) : []),
    ...events.slice(0, maxEvents).map(sayEvent),
    ...toList(head.workloadConditions).map(sayCondition),
    ...toList(head.nodeConditions).map((each) => `its node: ${sayCondition(each)}`),
    ...toList(head.claims).map(
      ({ name, state, class: of }) => `claim ${toText(name)} is ${toText(state)}, class ${toText(of)}`,
    ),
    ...(Array.isArray(head.services) ? head.services.map((each) => `service ${toText(each)}`) : []),
    ...partial,
  ]
}

const sayCondition = ({ type, is, since, reason, message, lastHeard }: Record<string, unknown>): string =>
  `${toText(type)} is ${toText(is)}${since ? ` since ${toText(since)}` : ''}${reason ? ` (${toText(reason)})` : ''}${message ? `: ${toText(message)}` : ''}${lastHeard ? `, last heard ${toText(lastHeard)}` : ''}`

function sayContainer({ name, image, is, message, restarts, ended, before, limits }: Record<string, unknown>): string {
  const end = (ended ?? before) as Record<string, unknown> | undefined
  const words = [
    `${toText(is)}${message ? ` (${toText(message)})` : ''}`,
    `${toText(restarts)} restarts`,
    ...(end
      ? [
          `ended at ${toText(end.finished)} with exit code ${toText(end.exitCode)} (${toText(end.reason)})${end.ranFor ? ` after ${toText(end.ranFor)}` : ''}`,
        ]
      : []),
    ...(limits ? [`memory limit ${toText((limits as Record<string, unknown>).memory) || 'none'}`] : []),
  ]
  return `container ${toText(name)} of ${toText(image)}: ${words.join(', ')}`
}

function sayRollout({
  revision,
  replicaSet,
  at,
  takenUpAgain,
  changed,
  configMaps,
  bounds,
  workloadChanged,
}: Record<string, unknown>): string[] {
  const what = Array.isArray(changed) ? changed.map(toText).join('; ') || 'nothing of the template' : toText(changed)
  return [
    ...(revision
      ? [
          `newest rollout: revision ${toText(revision)}${replicaSet ? ` (${toText(replicaSet)})` : ''}${at ? ` at ${toText(at)}` : ''}${takenUpAgain ? ', an older one taken up again' : ''}: ${what}`,
        ]
      : []),
    ...(workloadChanged ? [`own fields of the workload last changed ${toText(workloadChanged)}`] : []),
    ...(Array.isArray(bounds) ? [bounds.map(toText).join(', ')] : []),
    ...(Array.isArray(configMaps) ? configMaps.map((each) => `ConfigMap ${toText(each)}`) : []),
  ]
}

const sayEvent = ({ reason, about, count, firstMs, lastMs, message }: FoldedEvent): string =>
  `${reason} (${about}) ${count} times, ${lastMs > firstMs ? `first ${toIso(firstMs)}, ` : ''}last ${toIso(lastMs)}: ${message}`

async function eventLines(ask: AskCluster, view: ClusterView, object: KeptObject): Promise<string[]> {
  // Asks by name and not by uid: in events about a node, the kubelet writes the node's name as uid.
  const about = object.kind === 'Namespace' ? {} : { kind: object.kind, name: object.name }
  const namespace = object.kind === 'Namespace' ? object.name : object.namespace
  const { events } = await readEvents(ask, { namespace, about })
  return foldEvents(view, events).slice(0, maxEvents).map(sayEvent)
}

function linesOfNode(view: ClusterView, { name, ill, version }: KeptNode): string[] {
  const pods = objectsOf(view, 'Pod').filter(({ node, isDone }) => node === name && !isDone)
  const { ready, notReady = {} } = countPods(pods)
  const states = Object.entries(notReady).map(([state, count]) => `${count} ${state}`)
  const failed = objectsOf(view, 'Pod').filter(({ node, isFailed }) => node === name && isFailed)
  return [
    ...ill.map((each) => sayCondition(showCondition(each))),
    `kubelet ${version}; ${ready} of ${pods.length} pods ready${states.length > 0 ? `; not ready: ${states.join(', ')}` : ''}`,
    ...failed.slice(0, 3).map((pod) => `failed on it: pod ${pod.namespace}/${pod.name}: ${pod.state}: ${pod.why}`),
  ]
}

const maxNamed = 5

const illNodes = (view: ClusterView): string[] =>
  objectsOf(view, 'Node')
    .filter(({ isReady, ill }) => !isReady || ill.length > 0)
    .slice(0, maxNamed)
    .map(({ name, ill }) => `node ${name}: ${ill.map(({ type, reason }) => `${type} (${reason})`).join(', ')}`)

function illWorkloads(view: ClusterView, namespace: string | null): string[] {
  const ill = [...view.objects.values()].filter(
    (each): each is KeptWorkload =>
      isWorkload(each.kind) &&
      each.owner === null &&
      (namespace === null || each.namespace === namespace) &&
      ((each as KeptWorkload).ill.length > 0 || isBehind(each as KeptWorkload)),
  )
  const more = ill.length > maxNamed ? [`and ${ill.length - maxNamed} more workloads that are not ready`] : []
  return [
    ...ill
      .slice(0, maxNamed)
      .map(
        (each) =>
          `${nameOfWorkload(each)}: ${[`${each.ready} of ${each.wanted} ready`, ...sayRolling(each)].join(', ')}${each.ill.map(({ reason }) => ` (${reason})`).join('')}`,
      ),
    ...more,
  ]
}

/** Finds the pods that use a claim, or the workloads behind a service or ingress. */
function usersOf(view: ClusterView, { kind, namespace, name }: KeptObject): string[] {
  const pods = objectsOf(view, 'Pod').filter((pod) => pod.namespace === namespace && !pod.isDone)
  if (kind === 'PersistentVolumeClaim')
    return pods
      .filter(({ claims }) => claims.includes(name))
      .slice(0, maxNamed)
      .map((pod) => `used by pod ${pod.name}: ${pod.state}`)
  return kind === 'Service' ? servicesOf(view, namespace ?? '', pods).filter((each) => each.startsWith(`${name} `)) : []
}

/** Keeps the first lines that fit into the limit. A long line is cut inside. */
function fitLines(lines: readonly string[]): string[] {
  const kept: string[] = []
  for (const line of lines) {
    const cut = cutInside(line, maxLineCharacters)
    if (Buffer.byteLength(JSON.stringify([...kept, cut])) > maxBytes) break
    kept.push(cut)
  }
  return kept
}
