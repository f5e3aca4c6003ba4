import { ownOf } from './fields.ts'
import {
  type Amounts,
  addAmounts,
  type PodTerm,
  type Requirement,
  type ScheduledNode,
  type ScheduledPod,
  type Selector,
  type SpreadRule,
} from './scheduled.ts'

/**
 * Finds the nodes that may take a pod, and the rules by which all other nodes reject it. Follows
 * the scheduler's filters (kubernetes.io, "Scheduling Framework"). Pure.
 */

/**
 * Nodes, the pods on them, and the volumes that tie a pod to some nodes. `putPod` updates the
 * board.
 */
export type Board = {
  nodes: readonly ScheduledNode[]
  /** The pods by the name of their node. `used` has the sum of the pods' requests for each node. */
  pods: Map<string, ScheduledPod[]>
  used: Map<string, Amounts>
  /**
   * Whether a claim may be mounted on a node, by `namespace/claim`. A claim without an entry may be
   * mounted anywhere.
   */
  volumes: ReadonlyMap<string, (node: ScheduledNode) => boolean>
}

export function newBoard(
  nodes: readonly ScheduledNode[],
  pods: readonly ScheduledPod[],
  volumes: Board['volumes'],
): Board {
  const board: Board = { nodes, pods: new Map(nodes.map(({ name }) => [name, []])), used: new Map(), volumes }
  for (const pod of pods) if (!pod.isDone) putPod(board, pod, pod.node)
  return board
}

/** Places a pod on a node. Ignores an unknown node. */
export function putPod({ pods, used }: Board, pod: ScheduledPod, node: string): void {
  pods.get(node)?.push(pod)
  used.set(node, addAmounts(used.get(node) ?? {}, pod.requests))
}

type Rule =
  | 'resources'
  | 'taint'
  | 'cordoned'
  | 'not ready'
  | 'node affinity'
  | 'apart'
  | 'beside'
  | 'spread'
  | 'port'
  | 'volume'

/** The reason why a node does not take a pod. `amount`: the missing amount of a resource. */
export type Obstruction = { rule: Rule; detail: string; amount?: number }

function meets({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const own = ownOf(labels, key)
  const [first = ''] = values
  switch (operator) {
    case 'In':
      return own !== undefined && values.includes(own)
    case 'NotIn':
      return own === undefined || !values.includes(own)
    case 'Exists':
      return own !== undefined
    case 'DoesNotExist':
      return own === undefined
    case 'Gt':
      return Number.parseInt(own ?? '', 10) > Number.parseInt(first, 10)
    case 'Lt':
      return Number.parseInt(own ?? '', 10) < Number.parseInt(first, 10)
    default:
      return false
  }
}

export const selects = (selector: Selector, labels: Readonly<Record<string, string>>): boolean =>
  selector?.every((each) => meets(each, labels)) ?? false

export const matchesNode = (terms: ScheduledPod['terms'], node: ScheduledNode): boolean =>
  terms === null ||
  terms.some(
    ({ labels, names }) =>
      labels.length + names.length > 0 &&
      labels.every((each) => meets(each, node.labels)) &&
      names.every((each) => meets(each, { 'metadata.name': node.name })),
  )

const blocks = (effect: string) => effect === 'NoSchedule' || effect === 'NoExecute'

function untolerated({ tolerations }: ScheduledPod, { taints }: ScheduledNode) {
  return taints.find(
    (taint) =>
      blocks(taint.effect) &&
      !tolerations.some(
        ({ key, isEqual, value, effect }) =>
          (effect === '' || effect === taint.effect) &&
          (key === '' ? !isEqual : key === taint.key && (!isEqual || value === taint.value)),
      ),
  )
}

const cordon = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' }

/**
 * Lists requested resources of which a node has too little, with the missing amount. Empty if the
 * node has enough.
 */
function shortOf({ used }: Pick<Board, 'used'>, pod: ScheduledPod, node: ScheduledNode): Amounts {
  const left = addAmounts(node.allocatable, used.get(node.name) ?? {}, -1)
  const entries = Object.entries(pod.requests).filter(([name, amount]) => amount > 0 && amount > (left[name] ?? 0))
  return Object.fromEntries(entries.map(([name, amount]) => [name, amount - Math.max(0, left[name] ?? 0)]))
}

const appliesTo = ({ selector, namespaces }: PodTerm, to: ScheduledPod): boolean =>
  (namespaces === 'all' || (namespaces?.includes(to.namespace) ?? false)) && selects(selector, to.labels)

/** Builds the key of a topology domain: all nodes with one value of a label. */
const domainKey = (key: string, value: string): string => `${key}=${value}`

function* placed({ nodes, pods }: Board): Generator<[ScheduledNode, ScheduledPod]> {
  for (const node of nodes) for (const pod of pods.get(node.name) ?? []) yield [node, pod]
}

/** Lists the topology domains with a pod that this pod avoids, or that avoids this pod. */
function listApart(board: Board, pod: ScheduledPod): Set<string> {
  const found = new Set<string>()
  for (const [node, each] of placed(board))
    for (const term of [
      ...pod.apart.filter((own) => appliesTo(own, each)),
      ...each.apart.filter((its) => appliesTo(its, pod)),
    ]) {
      const value = ownOf(node.labels, term.topologyKey)
      if (value !== undefined) found.add(domainKey(term.topologyKey, value))
    }
  return found
}

/**
 * Lists the topology domains that have each wanted neighbour. Null if the pod itself is the first
 * wanted neighbour, so that any domain is allowed.
 */
function listBeside(board: Board, pod: ScheduledPod): Set<string>[] | null {
  const found = pod.beside.map(() => new Set<string>())
  let isFirst = pod.beside.every((term) => appliesTo(term, pod))
  if (pod.beside.length > 0)
    for (const [node, each] of placed(board))
      for (const [index, term] of pod.beside.entries()) {
        if (!appliesTo(term, each)) continue
        isFirst = false
        const value = ownOf(node.labels, term.topologyKey)
        if (value !== undefined) found[index]!.add(domainKey(term.topologyKey, value))
      }
  return isFirst ? null : found
}

/** Counts the pods in each topology domain to which the spread rule applies. */
function countSpread({ nodes, pods }: Board, pod: ScheduledPod, rule: SpreadRule): Map<string, number> {
  const counts = new Map<string, number>()
  for (const node of nodes) {
    const value = ownOf(node.labels, rule.topologyKey)
    if (value === undefined) continue
    if (rule.honorsAffinity && !matchesNode(pod.terms, node)) continue
    if (rule.honorsTaints && untolerated(pod, node)) continue
    const here = (pods.get(node.name) ?? []).filter(
      ({ namespace, labels, isEnding }) => namespace === pod.namespace && !isEnding && selects(rule.selector, labels),
    )
    counts.set(value, (counts.get(value) ?? 0) + here.length)
  }
  return counts
}

/**
 * Returns for a node every rule by which it rejects the pod on this board. Empty if the node takes
 * the pod.
 */
export function judgeNodes(board: Board, pod: ScheduledPod): (node: ScheduledNode) => Obstruction[] {
  const apart = listApart(board, pod)
  const beside = listBeside(board, pod)
  const spreads = pod.spread.map((rule) => {
    const counts = countSpread(board, pod, rule)
    const fewest = counts.size < rule.minDomains ? 0 : Math.min(...counts.values())
    return { rule, counts, fewest, own: selects(rule.selector, pod.labels) ? 1 : 0 }
  })
  return (node) => {
    const found = findOwnObstructions(board, pod, node)
    const isIn = (domains: ReadonlySet<string>) =>
      Object.entries(node.labels).some(([key, value]) => domains.has(domainKey(key, value)))
    if (apart.size > 0 && isIn(apart)) found.push({ rule: 'apart', detail: '' })
    const isNear = beside
      ? beside.every(isIn)
      : pod.beside.every(({ topologyKey }) => ownOf(node.labels, topologyKey) !== undefined)
    if (!isNear) found.push({ rule: 'beside', detail: '' })
    const uneven = spreads.find(({ rule, counts, fewest, own }) => {
      const value = ownOf(node.labels, rule.topologyKey)
      return value === undefined || (counts.get(value) ?? 0) + own - fewest > rule.maxSkew
    })
    if (uneven) found.push({ rule: 'spread', detail: uneven.rule.topologyKey })
    return found
  }
}

/** Finds the rules that depend only on the node and the pod. */
function findOwnObstructions(board: Board, pod: ScheduledPod, node: ScheduledNode): Obstruction[] {
  const found: Obstruction[] = []
  const taint = untolerated(pod, node)
  if (taint) found.push({ rule: 'taint', detail: taint.value ? `${taint.key}=${taint.value}` : taint.key })
  if (node.isCordoned && taint?.key !== cordon.key && untolerated(pod, { ...node, taints: [cordon] }))
    found.push({ rule: 'cordoned', detail: '' })
  if (!node.isReady && !taint) found.push({ rule: 'not ready', detail: '' })
  if (!matchesNode(pod.terms, node)) found.push({ rule: 'node affinity', detail: '' })
  for (const [name, amount] of Object.entries(shortOf(board, pod, node)))
    found.push({ rule: 'resources', detail: name, amount })
  const volume = pod.claims.find((claim) => board.volumes.get(`${pod.namespace}/${claim}`)?.(node) === false)
  if (volume !== undefined) found.push({ rule: 'volume', detail: volume })
  const ports = new Set((board.pods.get(node.name) ?? []).flatMap((each) => each.ports))
  const port = pod.ports.find((each) => ports.has(each))
  if (port !== undefined) found.push({ rule: 'port', detail: port })
  return found
}
