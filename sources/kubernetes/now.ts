import type { ClusterNow, Unwell } from '../../domain/cluster-now.ts'
import { formatCount } from '../../domain/format.ts'
import { workloadId } from '../../domain/listed-cluster.ts'
import { type ResourceRef, ref, resourceKey } from '../../domain/registry.ts'
import { cleanse } from '../../safety/redact.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { foldEvents, readEvents } from './events.ts'
import { fieldsOf, wordOf } from './fields.ts'
import { isWorkload } from './kinds.ts'
import { findLacks } from './lacks.ts'
import { emptyNow, fact, sayPodState, showConditionsOf, showEvents } from './now-parts.ts'
import { conditionsIn, type KeptNode, type KeptPod, type KeptWorkload } from './objects.ts'
import { findByResource, stateOfObject } from './state.ts'
import { objectsOf, workloadOf } from './view.ts'
import { readWorkloadNow } from './workload-now.ts'

/**
 * Reads a cluster, node or workload for its page. Shows only fields that the tools show too,
 * cleansed and limited.
 */

const maxUnwell = 50

/** Reads an object's present state. Null if the cluster has no such object. Throws SourceError. */
export async function readClusterNow(
  ask: AskCluster,
  resource: ResourceRef & { name: string },
  nowMs: number,
): Promise<ClusterNow | null> {
  const cluster = await ask({ view: true })
  const object = resource.kind === 'cluster' ? null : findByResource(cluster, resource)
  if (resource.kind === 'cluster') return cleanse(await readWholeCluster(ask, cluster, nowMs))
  if (object?.kind === 'Node') return cleanse(await readNode(ask, cluster, object, nowMs))
  if (object && isWorkload(object.kind))
    return cleanse(await readWorkloadNow(ask, cluster, object as KeptWorkload, nowMs))
  return null
}

async function readWholeCluster(ask: AskCluster, cluster: SeenCluster, nowMs: number): Promise<ClusterNow> {
  const { name, view, namespaces } = cluster
  const version = wordOf(fieldsOf(await ask({ version: true })).gitVersion)
  const nodes = objectsOf(view, 'Node')
  const pods = objectsOf(view, 'Pod').filter(({ isDone }) => !isDone)
  const readyNodes = nodes.filter(({ isReady }) => isReady).length
  const workloads = [...view.objects.values()].filter(
    (each): each is KeptWorkload => isWorkload(each.kind) && workloadOf(view, each)?.uid === each.uid,
  )
  const unwell = [...nodes, ...workloads].flatMap((each): Unwell[] => {
    const state = stateOfObject(view, each)
    if (state?.health !== 'degraded') return []
    return [
      each.kind === 'Node'
        ? { kind: 'node', text: state.observed, resource: resourceKey(ref('node', `${name}:${each.name}`)) }
        : { kind: 'workload', text: state.observed, resource: keyOfWorkload(name, each) },
    ]
  })
  const lacks = findLacks(cluster, nowMs)
  const followed = new Set(view.states.filter(({ trouble }) => !trouble).map(({ kind }) => kind))
  const kinds = new Set(view.states.map(({ kind }) => kind))
  return {
    ...emptyNow(cluster, 'cluster', nowMs),
    facts: [
      fact('Version', version || 'not known'),
      ...(namespaces === null
        ? [fact('Nodes', sayReady(nodes.length, readyNodes), readyNodes < nodes.length)]
        : [fact('Namespaces', namespaces.join(', '))]),
      fact('Pods', sayReady(pods.length, pods.filter(({ isReady }) => isReady).length)),
      fact('Workloads', String(workloads.length)),
      fact('Followed', `${followed.size} of ${formatCount(kinds.size, 'kind')}`, followed.size < kinds.size),
    ],
    unwell: unwell.slice(0, maxUnwell),
    unwellMore: Math.max(0, unwell.length - maxUnwell),
    partial: lacks === null ? [] : [lacks],
  }
}

const sayReady = (all: number, ready: number): string => `${ready} of ${all} ready`

const keyOfWorkload = (cluster: string, { kind, namespace, name }: KeptWorkload): string =>
  resourceKey(ref('workload', workloadId(cluster, { kind, namespace: namespace ?? '', name })))

async function readNode(ask: AskCluster, cluster: SeenCluster, node: KeptNode, nowMs: number): Promise<ClusterNow> {
  const { view } = cluster
  const { name, isReady, isCordoned, version, addresses } = node
  const object = fieldsOf(await ask({ read: 'Node', namespace: null, name }))
  const there = objectsOf(view, 'Pod').filter((pod) => pod.node === name)
  const running = there.filter(({ isDone }) => !isDone)
  const unwell = there.filter(({ isReady, isDone, isFailed }) => isFailed || (!isReady && !isDone))
  // Asks by name and not by uid: in events about a node, the kubelet writes the node's name as uid.
  const { events } = await readEvents(ask, { namespace: null, about: { kind: 'Node', name } })
  return {
    ...emptyNow(cluster, 'node', nowMs),
    facts: [
      fact('Node', `${name}, ${isReady ? 'ready' : 'not ready'}`, !isReady),
      ...(isCordoned ? [fact('Scheduling', 'cordoned: no new pod is placed on it', true)] : []),
      fact('Pods', sayReady(running.length, running.filter((pod) => pod.isReady).length)),
      fact('Kubelet', version || 'not known'),
      fact('Addresses', addresses.join(', ') || 'none'),
    ],
    conditions: showConditionsOf('', conditionsIn(fieldsOf(object.status)), node.ill),
    unwell: unwell.slice(0, maxUnwell).map((pod) => toUnwellPod(cluster, pod)),
    unwellMore: Math.max(0, unwell.length - maxUnwell),
    ...showEvents(foldEvents(view, events)),
  }
}

function toUnwellPod({ name: cluster, view }: SeenCluster, pod: KeptPod): Unwell {
  const { namespace, name, why, restarts } = pod
  const workload = workloadOf(view, pod)
  const words = [
    `${sayPodState(pod)}${why === '' ? '' : `: ${why}`}`,
    ...(restarts > 0 ? [formatCount(restarts, 'restart')] : []),
  ]
  return {
    kind: 'pod',
    text: `${namespace}/${name}: ${words.join(', ')}`,
    resource: workload && keyOfWorkload(cluster, workload),
  }
}
