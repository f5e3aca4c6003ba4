import { type Fields, fieldsOf, listOf, numberOf, wordOf } from './fields.ts'

/**
 * Pods and nodes with the facts that the scheduler of a cluster uses: requests, capacity, and
 * rules. Pure.
 */

/** Amounts by resource: CPU in thousandths, memory and storage in bytes, and others as numbers. */
export type Amounts = Readonly<Record<string, number>>

export type Requirement = { key: string; operator: string; values: readonly string[] }
/** Requirements on labels that all have to hold. Null selects nothing. */
export type Selector = readonly Requirement[] | null
/** Terms for nodes. One term has to hold, with all its requirements. Null allows any node. */
type NodeTerms = readonly { labels: readonly Requirement[]; names: readonly Requirement[] }[] | null
/** `namespaces` is null if the term selects namespaces by labels, which are never read. */
export type PodTerm = { selector: Selector; topologyKey: string; namespaces: readonly string[] | 'all' | null }
export type SpreadRule = {
  selector: Selector
  topologyKey: string
  maxSkew: number
  minDomains: number
  honorsAffinity: boolean
  honorsTaints: boolean
}
type Toleration = { key: string; isEqual: boolean; value: string; effect: string }

export type ScheduledPod = {
  uid: string
  namespace: string
  name: string
  labels: Readonly<Record<string, string>>
  node: string
  priority: number
  /** The controller that creates the pod again. Null if the pod has no controller. */
  owner: { kind: string; name: string; uid: string } | null
  /** True if a file on the pod's node creates the pod. */
  isStatic: boolean
  isEnding: boolean
  isDone: boolean
  /** True if the pod has disks that are lost with its node. */
  hasLocalData: boolean
  requests: Amounts
  tolerations: readonly Toleration[]
  terms: NodeTerms
  apart: readonly PodTerm[]
  beside: readonly PodTerm[]
  spread: readonly SpreadRule[]
  ports: readonly string[]
  claims: readonly string[]
  /** Rules of the pod that the prediction ignores. */
  leftOut: readonly string[]
}

type Taint = { key: string; value: string; effect: string }
export type ScheduledNode = {
  name: string
  labels: Readonly<Record<string, string>>
  allocatable: Amounts
  taints: readonly Taint[]
  isCordoned: boolean
  isReady: boolean
}

const scales: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

/** Reads a Kubernetes quantity such as `500m`, `1.5Gi` or `1e3`. Returns 0 for any other text. */
function readQuantity(value: unknown): number {
  if (typeof value === 'number') return numberOf(value)
  const found = /^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i))?$/.exec(
    typeof value === 'string' && value.length <= 64 ? value : '',
  )
  return found ? Number(`${found[1]}${found[2] ?? ''}`) * (scales[found[3] ?? ''] as number) : 0
}

/** Reads amounts by resource, and rounds them up as the scheduler does. */
function amountsIn(value: unknown): Amounts {
  const entries = Object.entries(fieldsOf(value))
    .filter(([name]) => wordOf(name) !== '')
    .slice(0, 50)
  return Object.fromEntries(
    entries.map(([name, each]) => [name, Math.ceil(readQuantity(each) * (name === 'cpu' ? 1_000 : 1) - 1e-6)]),
  )
}

export function addAmounts(one: Amounts, two: Amounts, sign: 1 | -1 = 1): Amounts {
  const sum = { ...one }
  for (const [name, amount] of Object.entries(two)) sum[name] = (sum[name] ?? 0) + sign * amount
  return sum
}

function atLeast(one: Amounts, two: Amounts): Amounts {
  const most = { ...one }
  for (const [name, amount] of Object.entries(two)) most[name] = Math.max(most[name] ?? 0, amount)
  return most
}

/**
 * Returns a pod's requests: the sum of all containers, or the requests of an init container if they
 * are higher, plus the pod's overhead.
 */
function requestsOf(spec: Fields): Amounts {
  const requestOf = ({ resources }: Fields) => amountsIn(fieldsOf(resources).requests)
  let beside: Amounts = {}
  let starting: Amounts = {}
  for (const each of listOf(spec.initContainers)) {
    const own = requestOf(each)
    // Adds an init container that always restarts: it runs on beside the containers.
    if (each.restartPolicy === 'Always') beside = addAmounts(beside, own)
    starting = atLeast(starting, each.restartPolicy === 'Always' ? beside : addAmounts(beside, own))
  }
  for (const each of listOf(spec.containers)) beside = addAmounts(beside, requestOf(each))
  const ofAll = amountsIn(fieldsOf(spec.resources).requests)
  const asked = { ...atLeast(beside, starting), ...ofAll }
  return addAmounts(addAmounts(asked, amountsIn(spec.overhead)), { pods: 1 })
}

const wordsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.slice(0, 500).map((each) => (typeof each === 'string' ? each : '')) : []

const requirementsIn = (value: unknown): Requirement[] =>
  listOf(value).map(({ key, operator, values }) => ({
    key: wordOf(key),
    operator: wordOf(operator),
    values: wordsIn(values),
  }))

export function selectorIn(value: unknown): Selector {
  if (value === null || value === undefined) return null
  const { matchLabels, matchExpressions } = fieldsOf(value)
  const equal = Object.entries(fieldsOf(matchLabels)).map(([key, each]) => ({
    key,
    operator: 'In',
    values: wordsIn([each]),
  }))
  return [...equal, ...requirementsIn(matchExpressions)]
}

export function nodeTermsIn(required: unknown): NodeTerms {
  if (required === null || required === undefined) return null
  return listOf(fieldsOf(required).nodeSelectorTerms).map(({ matchExpressions, matchFields }) => ({
    labels: requirementsIn(matchExpressions),
    names: requirementsIn(matchFields),
  }))
}

/** Reads the node terms of a pod. A node selector is one more requirement of each term. */
function termsOf(spec: Fields): NodeTerms {
  const own = nodeTermsIn(fieldsOf(fieldsOf(spec.affinity).nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution)
  const labels = selectorIn({ matchLabels: spec.nodeSelector }) ?? []
  if (labels.length === 0) return own
  return (own ?? [{ labels: [], names: [] }]).map((term) => ({ ...term, labels: [...term.labels, ...labels] }))
}

function podTermsIn(value: unknown, namespace: string, leftOut: Set<string>): PodTerm[] {
  return listOf(fieldsOf(value).requiredDuringSchedulingIgnoredDuringExecution).map((term) => {
    const named = wordsIn(term.namespaces)
    const chosen = selectorIn(term.namespaceSelector)
    if (wordsIn(term.matchLabelKeys).length + wordsIn(term.mismatchLabelKeys).length > 0)
      leftOut.add('matchLabelKeys of an affinity')
    if (chosen !== null && chosen.length > 0) leftOut.add('an affinity that selects namespaces by label')
    return {
      selector: selectorIn(term.labelSelector),
      topologyKey: wordOf(term.topologyKey),
      namespaces: chosen?.length === 0 ? 'all' : chosen ? null : named.length > 0 ? named : [namespace],
    }
  })
}

function spreadIn(spec: Fields, labels: Readonly<Record<string, string>>): SpreadRule[] {
  return listOf(spec.topologySpreadConstraints)
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule')
    .map((rule) => ({
      selector: [
        ...(selectorIn(rule.labelSelector) ?? []),
        ...wordsIn(rule.matchLabelKeys)
          .filter((key) => Object.hasOwn(labels, key))
          .map((key) => ({ key, operator: 'In', values: [labels[key] as string] })),
      ],
      topologyKey: wordOf(rule.topologyKey),
      maxSkew: Math.max(1, numberOf(rule.maxSkew)),
      minDomains: Math.max(1, numberOf(rule.minDomains)),
      honorsAffinity: rule.nodeAffinityPolicy !== 'Ignore',
      honorsTaints: rule.nodeTaintsPolicy === 'Honor',
    }))
}

const labelsIn = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(fieldsOf(value)).flatMap(([key, each]) => (typeof each === 'string' ? [[key, each]] : [])),
  )

/** Reads a pod. Null if the object is not a pod. */
export function readScheduledPod(given: unknown): ScheduledPod | null {
  const { metadata: meta, spec: asked, status } = fieldsOf(given)
  const [metadata, spec] = [fieldsOf(meta), fieldsOf(asked)]
  const [uid, name, namespace] = [wordOf(metadata.uid), wordOf(metadata.name), wordOf(metadata.namespace)]
  if (uid === '' || name === '' || namespace === '') return null
  const leftOut = new Set<string>()
  const affinity = fieldsOf(spec.affinity)
  const labels = labelsIn(metadata.labels)
  const controller = listOf(metadata.ownerReferences).find((each) => each.controller === true)
  const volumes = listOf(spec.volumes)
  if (volumes.some(({ ephemeral }) => ephemeral !== undefined)) leftOut.add('volumes that are made for a pod')
  if (listOf(spec.resourceClaims).length > 0) leftOut.add('claims of devices')
  if (wordOf(spec.schedulerName) !== 'default-scheduler' && wordOf(spec.schedulerName) !== '')
    leftOut.add(`the scheduler ${wordOf(spec.schedulerName)}`)
  const { phase } = fieldsOf(status)
  return {
    uid,
    name,
    namespace,
    labels,
    node: wordOf(spec.nodeName),
    priority: numberOf(spec.priority),
    owner: controller
      ? { kind: wordOf(controller.kind), name: wordOf(controller.name), uid: wordOf(controller.uid) }
      : null,
    isStatic: fieldsOf(metadata.annotations)['kubernetes.io/config.mirror'] !== undefined,
    isEnding: metadata.deletionTimestamp !== undefined,
    isDone: phase === 'Succeeded' || phase === 'Failed',
    hasLocalData: volumes.some(({ emptyDir }) => emptyDir !== undefined),
    requests: requestsOf(spec),
    tolerations: listOf(spec.tolerations).map((each) => ({
      key: wordOf(each.key),
      isEqual: each.operator !== 'Exists',
      value: typeof each.value === 'string' ? each.value : '',
      effect: wordOf(each.effect),
    })),
    terms: termsOf(spec),
    apart: podTermsIn(affinity.podAntiAffinity, namespace, leftOut),
    beside: podTermsIn(affinity.podAffinity, namespace, leftOut),
    spread: spreadIn(spec, labels),
    ports: listOf(spec.containers)
      .flatMap(({ ports }) => listOf(ports))
      .filter(({ hostPort }) => numberOf(hostPort) > 0)
      .map(({ hostPort, protocol }) => `${numberOf(hostPort)}/${wordOf(protocol) || 'TCP'}`),
    claims: volumes
      .map(({ persistentVolumeClaim }) => wordOf(fieldsOf(persistentVolumeClaim).claimName))
      .filter((claim) => claim !== ''),
    leftOut: [...leftOut],
  }
}

/** Reads a node. Null if the object is not a node. */
export function readScheduledNode(given: unknown): ScheduledNode | null {
  const { metadata, spec, status } = fieldsOf(given)
  const name = wordOf(fieldsOf(metadata).name)
  if (name === '') return null
  return {
    name,
    labels: labelsIn(fieldsOf(metadata).labels),
    allocatable: amountsIn(fieldsOf(status).allocatable),
    taints: listOf(fieldsOf(spec).taints).map((each) => ({
      key: wordOf(each.key),
      value: typeof each.value === 'string' ? each.value : '',
      effect: wordOf(each.effect),
    })),
    isCordoned: fieldsOf(spec).unschedulable === true,
    isReady: listOf(fieldsOf(status).conditions).some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  }
}
