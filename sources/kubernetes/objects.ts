import { type Fields, fieldsOf, listOf, numberOf, sentenceOf, timeOf, wordOf } from './fields.ts'
import type { FollowedKind } from './kinds.ts'

/** An object's short form in memory: names, owner, state. No people's texts or values. */

type Owner = { kind: string; name: string; uid: string }

export type Condition = {
  type: string
  isTrue: boolean | null
  reason: string
  message: string
  sinceMs: number | null
  /** For a node: the last time its kubelet said so. */
  heardMs: number | null
}

type Common = {
  uid: string
  namespace: string | null
  name: string
  createdMs: number
  isEnding: boolean
  /** Its one controller, in its own words: held against the owner's uid where that counts. */
  owner: Owner | null
}

export type KeptPod = Common & {
  kind: 'Pod'
  node: string
  /** As `kubectl get pods` prints it: `CrashLoopBackOff`, `Pending`, `Running`. */
  state: string
  isReady: boolean
  isDone: boolean
  isFailed: boolean
  /** Why it failed as a whole, as one that was evicted. */
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
  /** Those that are not as they should be. */
  ill: readonly Condition[]
  version: string
}

export type KeptWorkload = Common & {
  kind: 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'DaemonSet' | 'Job' | 'CronJob'
  wanted: number
  ready: number
  updated: number
  /**
   * As `kubectl rollout status` waits: all wanted are of the newest revision and available, and no
   * older pod is left.
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
  /** A service's pods. An ingress' services. A claim's class. */
  selector: Readonly<Record<string, string>> | null
  services: readonly string[]
  className: string
}

export type KeptObject = KeptPod | KeptNode | KeptWorkload | KeptOther

/** The short form of each kind. */
export type KeptOf<K extends FollowedKind> = K extends 'Pod'
  ? KeptPod
  : K extends 'Node'
    ? KeptNode
    : K extends KeptWorkload['kind']
      ? KeptWorkload
      : KeptOther

const maxMessage = 200
const maxLabels = 24

/** Null: it has no uid or name, and so is nothing. */
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
 * A pod's one word, in `kubectl get pods`' order: what an init container waits for, what a
 * container waits for or ended with, its phase.
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

/** Conditions of a node that are well when they are not so: pressure, no network. */
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

/** A number by its digits; a word such as `Infinity` would be the newest for ever. */
function revisionIn(metadata: Fields): number {
  const word = wordOf(fieldsOf(metadata.annotations)[revisionAnnotation])
  return /^\d{1,15}$/.test(word) ? Number(word) : 0
}

/** Conditions of a workload that say that it is not well: the others say how far it is. */
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

/** A paused one, and one that is updated by hand, is as it was left. */
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

/** What runs all the time, and has less than is wanted, or not all of it of the newest revision. */
export const isBehind = ({ kind, ready, wanted, isRolledOut: isOver, isDone }: KeptWorkload): boolean =>
  kind !== 'Job' && kind !== 'CronJob' && !isDone && (ready < wanted || !isOver)

/** `1 of 2 updated, the rollout is not over`; empty where it is. */
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
