import { z } from 'zod'
import { toList, toText } from '../../domain/say.ts'
import { cleanse } from '../../safety/redact.ts'
import { redactKeyLines } from '../../safety/redact-lines.ts'
import { defineSourceTool, fitSummary, SourceError } from '../kind.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { type FoldedEvent, foldEvents, readEvents, showEvent } from './events.ts'
import { cutInside, sentenceOf, toIso } from './fields.ts'
import type { KeptPod } from './objects.ts'
import { type ShownContainer, type ShownPod, showCondition, showPod } from './pod.ts'
import { type Rollouts, readRollouts, sayFirst } from './rollouts.ts'
import {
  type ClusterSubject,
  countPods,
  findSubject,
  nameField,
  nameOfWorkload,
  namespaceField,
  servicesOf,
  sourceField,
  unseenOfSubject,
} from './subject.ts'
import { type ClusterView, findObject } from './view.ts'

/**
 * Diagnoses a pod, or a workload's worst pod: conditions first, then containers, the newest rollout
 * and events.
 */

const maxChanges = 6
const recentMs = 24 * 3_600_000

export type PodDiagnosis = {
  head: Record<string, unknown>
  rollout: Record<string, unknown> | null
  /**
   * The complete state of the worst pod; below, its last log lines and all rollouts that were read.
   * The page shows them.
   */
  shown: ShownPod | null
  lastLines: string[]
  rollouts: Rollouts | null
  events: FoldedEvent[]
  /** Parts of the diagnosis that could not be read, each with the reason. */
  partial: string[]
}

/**
 * Reads a diagnosis. A part that cannot be read is listed in `partial` and left out. `revisions`:
 * how many revisions of the workload are compared.
 */
export async function diagnose(
  ask: AskCluster,
  cluster: SeenCluster,
  subject: ClusterSubject,
  nowMs: number,
  revisions = 1,
): Promise<PodDiagnosis> {
  const { view } = cluster
  const { workload, pod, pods, goneMs, namesakes } = subject
  const partial = unseenOfSubject(cluster, subject, nowMs)
  const attempt = async <T>(what: string, read: () => Promise<T>): Promise<T | null> => {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      partial.push(`${what}: ${error.message.slice(0, 200)}`)
      return null
    }
  }
  const { name = '', namespace = '' } = pod ?? {}
  const shown = pod && (await attempt('the pod', async () => showPod(await ask({ read: 'Pod', namespace, name }))))
  const rollouts = workload && (await attempt('rollouts', () => readRollouts(ask, view, workload, revisions)))
  const events = (await attempt('events', () => eventsOf(ask, view, subject))) ?? []
  const lastLines = pod && shown ? await readLastLines(ask, pod, shown.containers[0]) : null
  const head = {
    ...(workload && {
      workload: nameOfWorkload(workload),
      ...(workload.ill.length > 0 && { workloadConditions: workload.ill.map(showCondition) }),
    }),
    ...(namesakes.length > 0 && { alsoCalledSo: namesakes }),
    ...(goneMs !== null && { gone: `the named object has not existed since ${toIso(goneMs)}` }),
    ...(workload && { wanted: workload.wanted, ...countPods(pods) }),
    ...(workload?.isPaused && { paused: true }),
    ...(pod && { pod: pod.name }),
    ...(shown ? { ...shown, containers: shown.containers.map(withoutRest) } : pod && { state: pod.state }),
    ...(lastLines && lastLines.length > 0 && { lastLines }),
    ...failedOf(pods, pod),
    ...nodeOf(view, pod),
    ...claimsOf(view, pod),
    ...servicesFor(view, subject),
  }
  const rollout = rollouts ? showNewest(rollouts, nowMs) : null
  return {
    head,
    rollout,
    events,
    partial,
    shown: shown ?? null,
    lastLines: lastLines ?? [],
    rollouts: rollouts ?? null,
  }
}

/** Reads events of the pod, its owners, and the claims that it waits for. */
async function eventsOf(ask: AskCluster, view: ClusterView, { workload, pod }: ClusterSubject): Promise<FoldedEvent[]> {
  const newest = [...(view.owned.get(workload?.uid ?? '') ?? [])]
    .flatMap((uid) => view.objects.get(uid) ?? [])
    .filter(({ kind }) => kind === 'ReplicaSet' || kind === 'Job')
    .sort((a, b) => b.createdMs - a.createdMs)[0]
  const unbound = unboundClaims(view, pod)
  const subjects = [pod, newest, workload, ...unbound].filter((each) => each !== null && each !== undefined)
  const read: Awaited<ReturnType<typeof readEvents>>['events'] = []
  for (const { uid, namespace } of new Map(subjects.map((each) => [each.uid, each])).values())
    read.push(...(await readEvents(ask, { namespace, about: { uid } })).events)
  return foldEvents(view, read)
}

/** Removes resource amounts and probes of a container if they cannot be the cause of its state. */
function withoutRest({ requests, limits, probes, ...container }: ShownContainer) {
  const isKilled = /OOMKilled/.test(`${container.ended?.reason} ${container.before?.reason}`)
  return {
    ...container,
    ...(isKilled && limits && { limits }),
    ...(container.is === 'not started' && requests && { requests }),
    ...(container.ready === false && container.is === 'running' && probes && { probes }),
  }
}

const maxLine = 200

/**
 * Reads the last two lines of a failing container, or of its previous run. Empty if the log cannot
 * be read.
 */
async function readLastLines(
  ask: AskCluster,
  { name, namespace }: KeptPod,
  worst: ShownContainer | undefined,
): Promise<string[]> {
  const isWell = !worst || (worst.is === 'running' && worst.ready !== false)
  if (isWell || worst.is === 'not started' || (!worst.ended && !worst.before && worst.is !== 'running')) return []
  const isOver = worst.is !== 'running' && !worst.ended
  const query = { container: worst.name, tailLines: '5', limitBytes: '8000', ...(isOver && { previous: 'true' }) }
  try {
    const { text } = await ask({ logOf: name, namespace: namespace ?? '', query, maxBytes: 8_000 })
    const lines = redactKeyLines(text.split('\n')).filter(
      (line) => line.trim() !== '' && !line.startsWith('unable to retrieve container logs'),
    )
    return lines.slice(-2).map((line) => cutInside(sentenceOf(line, 1_000), maxLine))
  } catch (error) {
    if (error instanceof SourceError) return []
    throw error
  }
}

/** Lists pods that failed completely, for example because a node evicted them. */
function failedOf(pods: readonly KeptPod[], shown: KeptPod | null): Record<string, unknown> {
  const failed = pods.filter(({ isFailed, uid }) => isFailed && uid !== shown?.uid)
  if (failed.length === 0) return {}
  return {
    failedPods: failed.slice(0, 2).map(({ name, state, why }) => `${name}: ${state}${why === '' ? '' : `: ${why}`}`),
  }
}

function nodeOf(view: ClusterView, pod: KeptPod | null): Record<string, unknown> {
  const node = pod && pod.node !== '' ? findObject(view, 'Node', null, pod.node) : null
  if (!node || (node.isReady && node.ill.length === 0 && !node.isCordoned)) return {}
  return { nodeConditions: node.ill.map(showCondition), ...(node.isCordoned && { nodeCordoned: true }) }
}

function unboundClaims(view: ClusterView, pod: KeptPod | null) {
  return (pod?.claims ?? [])
    .flatMap((name) => findObject(view, 'PersistentVolumeClaim', pod?.namespace ?? null, name) ?? [])
    .filter(({ state }) => state !== 'Bound')
    .slice(0, 2)
}

function claimsOf(view: ClusterView, pod: KeptPod | null): Record<string, unknown> {
  const unbound = unboundClaims(view, pod).map(({ name, state, className }) => ({
    name,
    state,
    class: className || 'none',
  }))
  return unbound.length > 0 ? { claims: unbound } : {}
}

function servicesFor(view: ClusterView, { workload, pod, pods }: ClusterSubject): Record<string, unknown> {
  const namespace = workload?.namespace ?? pod?.namespace
  const services = namespace ? servicesOf(view, namespace, pods).slice(0, 3) : []
  return services.length > 0 ? { services } : {}
}

/**
 * Shows the change of the newest revision, and ConfigMaps that changed later without a revision.
 */
function showNewest(
  { rollouts, changedBy, configMaps, bounds }: Rollouts,
  nowMs: number,
): Record<string, unknown> | null {
  const [newest] = rollouts
  const since = Math.min(newest?.madeMs ?? 0, nowMs - recentMs)
  const changed = configMaps.filter(({ changedMs }) => changedMs === null || changedMs > since)
  if (!newest && changed.length === 0 && bounds.length === 0) return null
  return {
    ...(newest && {
      revision: newest.revision,
      ...(newest.set && { replicaSet: newest.set }),
      ...(newest.isTakenUpAgain ? { takenUpAgain: true } : { at: toIso(newest.madeMs) }),
      changed: newest.changed === null ? sayFirst(newest.revision) : newest.changed.slice(0, maxChanges),
    }),
    ...(bounds.length > 0 && { bounds }),
    ...(changedBy && { workloadChanged: `${toIso(changedBy.atMs)} by ${changedBy.manager}` }),
    ...(changed.length > 0 && {
      configMaps: changed.map(({ name, changedMs, manager }) =>
        changedMs === null ? `${name}: ${manager}` : `${name} changed ${toIso(changedMs)} by ${manager}`,
      ),
    }),
  }
}

export const podDiagnosis = defineSourceTool({
  name: 'pod_diagnosis',
  firstFor: ['workload', 'namespace', 'cluster'],
  description:
    'What is wrong with a pod or workload of Kubernetes: conditions, how its containers ended, what the newest rollout changed, events.',
  input: z.strictObject({
    source: sourceField,
    namespace: namespaceField,
    name: nameField.describe('of the pod, or of the workload'),
  }),
  judge: () => ({ ok: true as const }),
  labels: ({ namespace, name, source }) => ({ namespace, pod: name, ...(source && { cluster: source }) }),
  say: ({ workload, pod, state, conditions, ready, pods, events }) => {
    const [first] = toList(conditions)
    const [event] = toList(events)
    const why = first
      ? `, ${toText(first.type)} is ${toText(first.is)}${first.reason ? ` (${toText(first.reason)})` : ''}`
      : ''
    const of = toText(workload) && `${toText(workload)}: ${toText(ready)} of ${toText(pods)} ready; `
    return `${of}${toText(pod) ? `${toText(pod)} ${toText(state)}${why}` : 'no pod'}${event ? `; ${toText(event.reason)}: ${toText(event.message)}` : ''}`
  },
  async read(ask: AskCluster, { namespace, name }, { nowMs }) {
    const cluster = await ask({ view: true })
    const found = await diagnose(ask, cluster, findSubject(cluster, namespace, name, nowMs), nowMs)
    const { head, rollout, events, partial } = cleanse(found)
    const summary = fitSummary(events.map(showEvent), (kept, omitted) => ({
      ...(partial.length > 0 && { partial }),
      ...head,
      ...(rollout && { newestRollout: rollout }),
      events: kept,
      ...(omitted > 0 && { moreEvents: omitted }),
    }))
    const lines = [...Object.entries(head), ['newestRollout', rollout] as const].map((pair) => JSON.stringify(pair))
    return {
      summary,
      whole: [...lines, ...events.map((each) => JSON.stringify(showEvent(each)))].join('\n'),
      isEmpty: false,
      isPartial: partial.length > 0,
    }
  },
})
