import { type Fields, fieldsOf, listOf, numberOf, sentenceOf, timeOf, wordOf } from './fields.ts'
import type { FollowedKind } from './kinds.ts'

/**
 * Short forms of objects that the view keeps in memory: names, owner and state, but no texts or
 * values that people wrote.
 */

type Owner = { kind: string; name: string; uid: string }

export type Condition = {
  type: string
  isTrue: boolean | null
  reason: string
  message: string
  sinceMs: number | null
  /** The last time when the node's kubelet reported the condition. */
  heardMs: number | null
}

type Common = {
  uid: string
  namespace: string | null
  name: string
  createdMs: number
  isEnding: boolean
  /**
   * The controller that the object names as owner. Code checks the owner's uid where it matters.
   */
  owner: Owner | null
}

export type KeptPod = Common & {
  kind: 'Pod'
  node: string
  /** The state as `kubectl get pods` prints it: `CrashLoopBackOff`, `Pending`, `Running`. */
  state: string
  isReady: boolean
  isDone: boolean
  isFailed: boolean
  /** Why the whole pod failed, for example by an eviction. */
  why: string
  restarts: number
  labels: Readonly<Record<string, string>>
  claims: readonly string[]
}

export type KeptNode = Common & {
  kind: 'Node'
  isReady: boolean
  isCordoned: boolean
  addresses: readonly string[]
  systemUuid: string
  /** The conditions that are unhealthy. */
  ill: readonly Condition[]
  version: string
}

export type KeptWorkload = Common & {
  kind: 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'DaemonSet' | 'Job' | 'CronJob'
  wanted: number
  ready: number
  updated: number
  /**
   * Whether all wanted pods are available with the newest revision, and no older pod is left, as
   * `kubectl rollout status` requires it.
   */
  isRolledOut: boolean
  isPaused: boolean
  isDone: boolean
  revision: number
  ill: readonly Condition[]
}

export type KeptOther = Common & {
  kind: 'Namespace' | 'PersistentVolumeClaim' | 'Service' | 'Ingress'
  state: string
  /** `selector` belongs to a service, `services` to an ingress, `className` to a claim. */
  selector: Readonly<Record<string, string>> | null
  services: readonly string[]
  className: string
}

export type KeptObject = KeptPod | KeptNode | KeptWorkload | KeptOther

export type KeptOf<K extends FollowedKind> = K extends 'Pod'
  ? KeptPod
  : K extends 'Node'
    ? KeptNode
    : K extends KeptWorkload['kind']
      ? KeptWorkload
      : KeptOther

const maxMessage = 200
const maxLabels = 24

/** Returns the short form of an object. Null for an object without uid or name. */
export function keep(kind: FollowedKind, given: unknown): KeptObject | null {
  const object = fieldsOf(given)
  const metadata = fieldsOf(object.metadata)
  const [uid, name, namespace] = [wordOf(metadata.uid), wordOf(metadata.name), wordOf(metadata.namespace)]
  if (uid === '' || name === '') return null
  const common: Common = {
    uid,
    name,
    namespace: namespace === '' ? null : namespace,
    createdMs: timeOf(metadata.creationTimestamp) ?? 0,
    isEnding: timeOf(metadata.deletionTimestamp) !== null,
    owner: ownerIn(metadata),
  }
  const [spec, status] = [fieldsOf(object.spec), fieldsOf(object.status)]
  switch (kind) {
    case 'Pod':
      return { ...common, kind, ...podFacts(common, spec, status), labels: labelsIn(metadata.labels) ?? {} }
    case 'Node':
      return { ...common, kind, ...nodeFacts(spec, status) }
    case 'Namespace':
    case 'PersistentVolumeClaim':
    case 'Service':
    case 'Ingress':
      return { ...common, kind, ...otherFacts(kind, spec, status) }
    default:
      return { ...common, kind, ...workloadFacts(kind, metadata, spec, status) }
  }
}

function ownerIn(metadata: Fields): Owner | null {
  const found = listOf(metadata.ownerReferences).find(({ controller }) => controller === true)
  if (!found) return null
  const owner = { kind: wordOf(found.kind), name: wordOf(found.name), uid: wordOf(found.uid) }
  return owner.kind === '' || owner.name === '' || owner.uid === '' ? null : owner
}

function labelsIn(value: unknown): Record<string, string> | null {
  const entries = Object.entries(fieldsOf(value))
    .filter(([name, word]) => wordOf(name) !== '' && (word === '' || wordOf(word) !== ''))
    .slice(0, maxLabels)
  return entries.length === 0 ? null : (Object.fromEntries(entries) as Record<string, string>)
}

export function conditionsIn(status: Fields): Condition[] {
  return listOf(status.conditions)
    .map(({ type, status: is, reason, message, lastTransitionTime, lastHeartbeatTime }) => ({
      type: wordOf(type),
      isTrue: is === 'True' ? true : is === 'False' ? false : null,
      reason: wordOf(reason),
      message: sentenceOf(message, maxMessage),
      sinceMs: timeOf(lastTransitionTime),
      heardMs: timeOf(lastHeartbeatTime),
    }))
    .filter(({ type }) => type !== '')
    .slice(0, 20)
}

function podFacts({ isEnding }: Common, spec: Fields, status: Fields) {
  const containers = [...listOf(status.initContainerStatuses), ...listOf(status.containerStatuses)]
  const isReady = conditionsIn(status).some(({ type, isTrue }) => type === 'Ready' && isTrue)
  return {
    node: wordOf(spec.nodeName),
    state: podState(isEnding, status),
    isReady,
    isDone: status.phase === 'Succeeded' || status.phase === 'Failed',
    isFailed: status.phase === 'Failed',
    why: status.phase === 'Failed' ? sentenceOf(status.message, maxMessage) : '',
    restarts: containers.reduce((sum, { restartCount }) => sum + numberOf(restartCount), 0),
    claims: listOf(spec.volumes)
      .map(({ persistentVolumeClaim }) => wordOf(fieldsOf(persistentVolumeClaim).claimName))
      .filter((name) => name !== ''),
  }
}

/**
 * Returns a pod's state with the priority of `kubectl get pods`: an init container's wait, then a
 * container's wait or end, then the pod's phase.
 */
export function podState(isEnding: boolean, status: Fields): string {
  const own = wordOf(status.reason)
  if (isEnding) return own === 'NodeLost' ? 'Unknown' : 'Terminating'
  for (const each of listOf(status.initContainerStatuses)) {
    const { waiting, terminated } = fieldsOf(each.state)
    const reason = wordOf(fieldsOf(waiting).reason)
    if (reason !== '' && reason !== 'PodInitializing') return `Init:${reason}`
    if (terminated !== undefined && numberOf(fieldsOf(terminated).exitCode) !== 0)
      return `Init:${wordOf(fieldsOf(terminated).reason) || 'Error'}`
  }
  if (own !== '') return own
  for (const each of listOf(status.containerStatuses)) {
    const { waiting, terminated } = fieldsOf(each.state)
    const reason = wordOf(fieldsOf(waiting).reason)
    if (reason !== '') return reason
    if (terminated !== undefined && numberOf(fieldsOf(terminated).exitCode) !== 0)
      return wordOf(fieldsOf(terminated).reason) || 'Error'
  }
  return wordOf(status.phase) || 'Unknown'
}

/**
 * Whether a node's condition is healthy when true. All other conditions are healthy when false,
 * such as pressure or a missing network.
 */
const isWellTrue = (type: string): boolean => type === 'Ready'

const illConditions = (conditions: readonly Condition[]): Condition[] =>
  conditions.filter(({ type, isTrue }) => isTrue !== isWellTrue(type))

function nodeFacts(spec: Fields, status: Fields) {
  const conditions = conditionsIn(status)
  const info = fieldsOf(status.nodeInfo)
  return {
    isReady: conditions.some(({ type, isTrue }) => type === 'Ready' && isTrue),
    isCordoned: spec.unschedulable === true,
    addresses: listOf(status.addresses)
      .filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP')
      .map(({ address }) => wordOf(address))
      .filter((address) => address !== '')
      .slice(0, 8),
    systemUuid: wordOf(info.systemUUID).toLowerCase(),
    ill: illConditions(conditions),
    version: wordOf(info.kubeletVersion),
  }
}

const revisionAnnotation = 'deployment.kubernetes.io/revision'

/**
 * Reads the revision, which must have only digits. A word such as `Infinity` would be the newest
 * revision for ever.
 */
function revisionIn(metadata: Fields): number {
  const word = wordOf(fieldsOf(metadata.annotations)[revisionAnnotation])
  return /^\d{1,15}$/.test(word) ? Number(word) : 0
}

/** Whether a workload's condition is unhealthy. Conditions of other types only show progress. */
const isIll = ({ type, isTrue }: Condition): boolean =>
  type === 'ReplicaFailure' || type === 'Failed' ? isTrue === true : /^(?:Available|Progressing)$/.test(type) && !isTrue

function workloadFacts(kind: KeptWorkload['kind'], metadata: Fields, spec: Fields, status: Fields) {
  const conditions = conditionsIn(status)
  const isJob = kind === 'Job'
  const ofDaemonSet = kind === 'DaemonSet'
  return {
    wanted: isJob
      ? numberOf(spec.completions ?? 1)
      : ofDaemonSet
        ? numberOf(status.desiredNumberScheduled)
        : kind === 'CronJob'
          ? 0
          : numberOf(spec.replicas ?? 1),
    ready: isJob ? numberOf(status.succeeded) : numberOf(ofDaemonSet ? status.numberReady : status.readyReplicas),
    updated: numberOf(ofDaemonSet ? status.updatedNumberScheduled : status.updatedReplicas),
    isRolledOut: isRolledOut(kind, metadata, spec, status),
    isPaused: spec.paused === true || spec.suspend === true,
    isDone: isJob && conditions.some(({ type, isTrue }) => /^(?:Complete|Failed)$/.test(type) && isTrue),
    revision: revisionIn(metadata),
    ill: conditions.filter(isIll),
  }
}

/** Whether a rollout has ended. A paused or manual rollout counts as ended. */
function isRolledOut(kind: KeptWorkload['kind'], metadata: Fields, spec: Fields, status: Fields): boolean {
  const strategy = fieldsOf(spec.updateStrategy)
  if (spec.paused === true || strategy.type === 'OnDelete') return true
  if (kind !== 'Deployment' && kind !== 'StatefulSet' && kind !== 'DaemonSet') return true
  if (numberOf(status.observedGeneration) < numberOf(metadata.generation)) return false
  const wanted = numberOf(kind === 'DaemonSet' ? status.desiredNumberScheduled : (spec.replicas ?? 1))
  if (kind === 'DaemonSet')
    return numberOf(status.updatedNumberScheduled) >= wanted && numberOf(status.numberAvailable) >= wanted
  const updated = numberOf(status.updatedReplicas)
  if (kind === 'StatefulSet') return updated >= wanted - numberOf(fieldsOf(strategy.rollingUpdate).partition)
  return updated >= wanted && numberOf(status.replicas) <= updated && numberOf(status.availableReplicas) >= updated
}

/** Whether the workload has fewer ready pods than wanted, or pods of an older revision. */
export const isBehind = ({ kind, ready, wanted, isRolledOut: isOver, isDone }: KeptWorkload): boolean =>
  kind !== 'Job' && kind !== 'CronJob' && !isDone && (ready < wanted || !isOver)

/** Formats `1 of 2 updated, the rollout is not over`. Empty if the rollout is over. */
export const sayRolling = ({ updated, wanted, isRolledOut: isOver }: KeptWorkload): string[] =>
  isOver ? [] : [`${updated} of ${wanted} updated, the rollout is not over`]

function otherFacts(kind: KeptOther['kind'], spec: Fields, status: Fields) {
  const backends =
    kind === 'Ingress'
      ? [
          spec.defaultBackend,
          ...listOf(spec.rules)
            .flatMap(({ http }) => listOf(fieldsOf(http).paths))
            .map(({ backend }) => backend),
        ]
      : []
  const services = backends.map((each) => wordOf(fieldsOf(fieldsOf(each).service).name)).filter((name) => name !== '')
  return {
    state: wordOf(status.phase),
    selector: kind === 'Service' ? labelsIn(spec.selector) : null,
    services: [...new Set(services)],
    className: wordOf(spec.storageClassName ?? spec.ingressClassName ?? spec.type),
  }
}
