import { formatCount } from '../../domain/format.ts'
import { clusterId, workloadId } from '../../domain/listed-cluster.ts'
import type { ResourceRef, ResourceState } from '../../domain/registry.ts'
import type { SeenCluster } from './connect.ts'
import { type FollowedKind, isWorkload } from './kinds.ts'
import { unseenOf } from './lacks.ts'
import { isBehind, type KeptNode, type KeptObject, type KeptOther, type KeptWorkload, sayRolling } from './objects.ts'
import { countPods, nameOfWorkload, servicesOf } from './subject.ts'
import { type ClusterView, findObject, objectsOf, podsOf } from './view.ts'

/**
 * The present state of a cluster's object from the view in memory, for reads of a resource and for
 * its page.
 */

/**
 * Finds the object of a resource of the registry. `name` is the name of the object in the cluster.
 */
export function findByResource(
  { name: cluster, view }: SeenCluster,
  { kind, id, name }: ResourceRef & { name: string },
): KeptObject | null {
  if (kind === 'node') return findObject(view, 'Node', null, name)
  if (kind === 'workload')
    return [...view.objects.values()].find((each) => isWorkload(each.kind) && idOf(cluster, each) === id) ?? null
  const kinds = {
    namespace: 'Namespace',
    volume_claim: 'PersistentVolumeClaim',
    cluster_service: 'Service',
    ingress: 'Ingress',
  } as const
  const wanted = kinds[kind as keyof typeof kinds]
  if (!wanted) return null
  if (wanted === 'Namespace') return findObject(view, 'Namespace', null, name)
  return objectsOf(view, wanted).find((each) => clusterId(cluster, each.namespace ?? '', each.name) === id) ?? null
}

const idOf = (cluster: string, { kind, namespace, name }: KeptObject): string =>
  workloadId(cluster, { kind, namespace: namespace ?? '', name })

/**
 * Returns the state of a resource. Null if the cluster has no such object. `unknown` if the object
 * is not followed now, because its last known state may be out of date.
 */
export function stateOf(
  cluster: SeenCluster,
  resource: ResourceRef & { name: string },
  nowMs: number,
): ResourceState | null {
  const object = resource.kind === 'cluster' ? null : findByResource(cluster, resource)
  const state = resource.kind === 'cluster' ? stateOfCluster(cluster) : object && stateOfObject(cluster.view, object)
  if (!state) return null
  const unseen = unseenOf(cluster, object ? kindsBehind(object.kind) : ['Node'], object?.namespace ?? null, nowMs)
  if (unseen.length === 0) return state
  return { health: 'unknown', observed: `${state.observed}; ${unseen.join('; ')}`, fields: {} }
}

/** Lists the kinds of objects on which the state of an object of this kind depends. */
function kindsBehind(kind: FollowedKind): FollowedKind[] {
  if (kind === 'Ingress') return [kind, 'Service', 'Pod']
  return isWorkload(kind) || kind === 'Service' ? [kind, 'Pod'] : [kind]
}

/** Returns the state of an object. Null for a pod, because a pod is not a resource. */
export function stateOfObject(view: ClusterView, object: KeptObject): ResourceState | null {
  if (object.kind === 'Node') return stateOfNode(object)
  if (object.kind === 'Pod') return null
  if (isWorkload(object.kind)) return stateOfWorkload(view, object as KeptWorkload)
  return stateOfOther(view, object as KeptOther)
}

const healthOf = (isWell: boolean): ResourceState['health'] => (isWell ? 'nominal' : 'degraded')

function stateOfCluster({ name, view, namespaces }: SeenCluster): ResourceState {
  if (namespaces !== null) return { health: 'unknown', observed: `${name}: the nodes are not visible`, fields: {} }
  const nodes = objectsOf(view, 'Node')
  const ill = nodes.filter(({ isReady }) => !isReady)
  const observed = `${name}: ${formatCount(nodes.length, 'node')}, ${nodes.length - ill.length} ready`
  return { health: healthOf(ill.length === 0), observed, fields: { notReady: ill.length } }
}

function stateOfNode({ name, isReady, isCordoned, ill }: KeptNode): ResourceState {
  const pressure = ill.filter(({ type }) => type !== 'Ready').map(({ type }) => type)
  const words = [isReady ? 'ready' : 'not ready', ...(isCordoned ? ['cordoned'] : []), ...pressure]
  return {
    health: healthOf(isReady && pressure.length === 0),
    observed: `node ${name} is ${words.join(', ')}`,
    fields: { ready: isReady, cordoned: isCordoned, pressure: pressure.join(', ') },
  }
}

function stateOfWorkload(view: ClusterView, workload: KeptWorkload): ResourceState {
  const { kind, wanted, isPaused, revision, ill } = workload
  const { pods, ready, notReady = {} } = countPods(podsOf(view, workload).filter(({ isDone }) => !isDone))
  const isOfRuns = kind === 'Job' || kind === 'CronJob'
  const reasons = Object.entries(notReady).map(([state, count]) => `${count} ${state}`)
  const counts = isOfRuns ? formatCount(pods, 'running pod') : `${workload.ready} of ${wanted} ready`
  const words = [counts, ...sayRolling(workload), ...reasons, ...ill.map(({ type, reason }) => `${type}: ${reason}`)]
  const isWell = isOfRuns
    ? ill.length === 0 && reasons.length === 0
    : !isBehind(workload) && ready >= wanted && ill.length === 0
  return {
    health: healthOf(isWell),
    observed: `${nameOfWorkload(workload)}: ${words.join(', ')}${isPaused ? ', paused' : ''}`,
    fields: { wanted, revision, paused: isPaused },
  }
}

function stateOfOther(
  view: ClusterView,
  { kind, namespace, name, state, services, selector }: KeptOther,
): ResourceState {
  const named = `${kind} ${namespace === null ? '' : `${namespace}/`}${name}`
  if (kind === 'PersistentVolumeClaim' || kind === 'Namespace')
    return {
      health: healthOf(state === 'Bound' || state === 'Active'),
      observed: `${named} is ${state}`,
      fields: { state },
    }
  const names = kind === 'Service' ? [name] : services
  const said = servicesOf(
    view,
    namespace ?? '',
    objectsOf(view, 'Pod').filter((pod) => pod.namespace === namespace),
  ).filter((each) => names.some((one) => each.startsWith(`${one} `)))
  const isChoosing = kind === 'Ingress' || selector !== null
  const isIll =
    isChoosing && (said.length < names.length || said.some((each) => / selects no pod| sends to 0 ready/.test(each)))
  return {
    health: healthOf(!isIll),
    observed: `${named}: ${said.join('; ') || 'no pod is behind this object'}`,
    fields: { ill: isIll },
  }
}
