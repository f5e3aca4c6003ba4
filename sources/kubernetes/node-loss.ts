import type { ScheduledNode, ScheduledPod, Selector } from './scheduled.ts'
import { type Board, judgeNodes, newBoard, type Obstruction, putPod, selects } from './scheduling-rules.ts'

/**
 * Predicts what happens to the pods of drained or failed nodes. The scheduler places one pod after
 * the other and never moves a placed pod, so several orders are tried. Pure.
 */

/**
 * A disruption budget. `allowsNone`: it never allows an eviction, however many pods are healthy.
 */
type Budget = { namespace: string; name: string; selector: Selector; allowed: number; allowsNone: boolean }
export type ClusterLoad = {
  nodes: readonly ScheduledNode[]
  pods: readonly ScheduledPod[]
  budgets: readonly Budget[]
  volumes: Board['volumes']
}

type LossIntent = 'drain' | 'failure'

/**
 * A pod that no node takes, with each node's reasons. `isCertain`: the pod stays pending in any
 * order of placing.
 */
export type PendingPod = { pod: ScheduledPod; isCertain: boolean; why: Map<string, Obstruction[]> }
export type NodeLoss = {
  /** Pods that a controller creates again on another node, if a node has room. */
  moving: ScheduledPod[]
  /** Pods that stay pending in the best order. `mostPending` is their number in the worst order. */
  pending: PendingPod[]
  mostPending: number
  /** Pods that no controller creates again. */
  lost: ScheduledPod[]
  /** Pods that never move: pods of a DaemonSet, or of a file on the node. */
  bound: ScheduledPod[]
  /** Budgets that delay a drain, each with the number of its pods that have to leave. */
  waiting: { budget: Budget; leaving: number; isEndless: boolean }[]
  /**
   * Pods of a StatefulSet on a failed node. It starts no pod elsewhere before the API knows that
   * the node is gone.
   */
  stuck: ScheduledPod[]
  /** Changes that would make room, each with the number of pods that would then stay pending. */
  room: { change: string; pending: number }[]
  leftOut: string[]
}

type Order = 'priority' | 'size'
type Choice = 'free' | 'tight'

const orders: readonly [Order, Choice][] = [
  ['priority', 'free'],
  ['priority', 'tight'],
  ['size', 'free'],
  ['size', 'tight'],
]

/** Predicts a drain, or a failure, of these nodes. */
export function foreseeLoss(load: ClusterLoad, names: readonly string[], intent: LossIntent): NodeLoss {
  const gone = new Set(names)
  const here = load.pods.filter(({ node, isDone, isEnding }) => gone.has(node) && !isDone && !isEnding)
  const bound = here.filter(({ isStatic, owner }) => isStatic || owner?.kind === 'DaemonSet' || owner?.kind === 'Node')
  const others = here.filter((pod) => !bound.includes(pod))
  const lost = others.filter(({ owner }) => owner === null)
  const stuck = intent === 'failure' ? others.filter(({ owner }) => owner?.kind === 'StatefulSet') : []
  const moving = others.filter((pod) => !lost.includes(pod) && !stuck.includes(pod))
  const outcomes = orders.map(([order, choice]) => place(load, gone, moving, order, choice))
  const pending = outcomes.reduce((one, two) => (isLess(two, one) ? two : one))
  return {
    moving,
    pending,
    mostPending: Math.max(...outcomes.map((each) => each.length)),
    lost,
    bound,
    stuck,
    waiting: intent === 'drain' ? listWaiting(load, others, pending) : [],
    room: pending.length > 0 ? findRoom(load, gone, moving) : [],
    leftOut: listLeftOut(load, moving, pending),
  }
}

/** Whether the first result is better: compares the most important pending pods first. */
function isLess(one: readonly PendingPod[], two: readonly PendingPod[]): boolean {
  const byPriority = (pending: readonly PendingPod[]) => pending.map(({ pod }) => pod.priority).sort((a, b) => b - a)
  const [a, b] = [byPriority(one), byPriority(two)]
  for (let at = 0; at < Math.max(a.length, b.length); at += 1)
    if (a[at] !== b[at]) return (a[at] ?? Number.NEGATIVE_INFINITY) < (b[at] ?? Number.NEGATIVE_INFINITY)
  return false
}

function boardWithout({ nodes, pods, volumes }: ClusterLoad, gone: ReadonlySet<string>): Board {
  return newBoard(
    nodes.filter(({ name }) => !gone.has(name)),
    pods.filter(({ node }) => node !== '' && !gone.has(node)),
    volumes,
  )
}

const fractionOf = (pod: ScheduledPod, nodes: readonly ScheduledNode[]): number =>
  Math.max(
    0,
    ...Object.entries(pod.requests).map(([name, amount]) => {
      const most = Math.max(...nodes.map(({ allocatable }) => allocatable[name] ?? 0))
      return most > 0 ? amount / most : 1
    }),
  )

/** Places pods in this order, each on a node that takes it. Returns the pods that no node takes. */
function place(
  load: ClusterLoad,
  gone: ReadonlySet<string>,
  moving: readonly ScheduledPod[],
  order: Order,
  choice: Choice,
): PendingPod[] {
  const board = boardWithout(load, gone)
  const pending: PendingPod[] = []
  const size = new Map(moving.map((pod) => [pod.uid, fractionOf(pod, board.nodes)]))
  const bySize = (a: ScheduledPod, b: ScheduledPod) => size.get(b.uid)! - size.get(a.uid)!
  const sorted = [...moving].sort((a, b) => b.priority - a.priority || (order === 'size' ? bySize(a, b) : 0))
  for (const pod of sorted) {
    const judge = judgeNodes(board, pod)
    const why = new Map(board.nodes.map((node) => [node.name, judge(node)]))
    const open = board.nodes.filter(({ name }) => why.get(name)!.length === 0)
    const [first] = open
      .map((node) => ({ node, left: leftShare(board, node) }))
      .sort((a, b) => (choice === 'free' ? b.left - a.left : a.left - b.left))
    if (first) putPod(board, pod, first.node.name)
    else pending.push({ pod, why, isCertain: false })
  }
  if (pending.length > 0) markCertain(pending, boardWithout(load, gone))
  return pending
}

const lasting: ReadonlySet<Obstruction['rule']> = new Set([
  'resources',
  'taint',
  'cordoned',
  'not ready',
  'node affinity',
  'apart',
  'port',
  'volume',
])

/** Marks pods that no node takes because of lasting rules, even before any other pod is placed. */
function markCertain(pending: PendingPod[], board: Board): void {
  for (const each of pending) {
    const judge = judgeNodes(board, each.pod)
    each.isCertain = board.nodes.every((node) => judge(node).some(({ rule }) => lasting.has(rule)))
  }
}

function leftShare({ used }: Board, { name, allocatable }: ScheduledNode): number {
  const shares = ['cpu', 'memory'].map((each) => {
    const all = allocatable[each] ?? 0
    return all > 0 ? 1 - (used.get(name)?.[each] ?? 0) / all : 0
  })
  return shares.reduce((sum, share) => sum + share, 0)
}

/**
 * Lists the budgets that delay a drain. A budget allows the next eviction only when the pod that
 * was evicted before it is ready again.
 */
function listWaiting(
  { budgets }: ClusterLoad,
  leaving: readonly ScheduledPod[],
  pending: readonly PendingPod[],
): NodeLoss['waiting'] {
  return budgets.flatMap((budget) => {
    const covers = ({ namespace, labels }: ScheduledPod) =>
      namespace === budget.namespace && selects(budget.selector, labels)
    const covered = leaving.filter(covers)
    if (covered.length <= budget.allowed) return []
    const isEndless = budget.allowsNone || pending.some(({ pod }) => covers(pod))
    return [{ budget, leaving: covered.length, isEndless }]
  })
}

const maxUncordoned = 5

/** Lists single changes that would make room, each with the result of trying the change. */
function findRoom(load: ClusterLoad, gone: ReadonlySet<string>, moving: readonly ScheduledPod[]): NodeLoss['room'] {
  const after = (changed: ClusterLoad) =>
    Math.min(...orders.map(([order, choice]) => place(changed, gone, moving, order, choice).length))
  const cordoned = load.nodes.filter(({ name, isCordoned }) => isCordoned && !gone.has(name)).slice(0, maxUncordoned)
  const uncordoned = cordoned.map(({ name }) => ({
    change: `uncordon ${name}`,
    pending: after({
      ...load,
      nodes: load.nodes.map((node) =>
        node.name === name
          ? {
              ...node,
              isCordoned: false,
              taints: node.taints.filter(({ key }) => key !== 'node.kubernetes.io/unschedulable'),
            }
          : node,
      ),
    }),
  }))
  const copied = load.nodes.find(({ name }) => gone.has(name))
  const copy = copied && {
    ...copied,
    name: `a node like ${copied.name}`,
    labels: { ...copied.labels, 'kubernetes.io/hostname': `a node like ${copied.name}` },
    isCordoned: false,
    isReady: true,
    taints: copied.taints.filter(({ key }) => !key.startsWith('node.kubernetes.io/')),
  }
  return [
    ...uncordoned,
    ...(copy
      ? [{ change: `one more node like ${copied.name}`, pending: after({ ...load, nodes: [...load.nodes, copy] }) }]
      : []),
  ]
}

function listLeftOut({ pods }: ClusterLoad, moving: readonly ScheduledPod[], pending: readonly PendingPod[]): string[] {
  const least = Math.min(...pods.filter(({ node, isDone }) => node !== '' && !isDone).map(({ priority }) => priority))
  const mayPreempt = pending.some(({ pod }) => pod.priority > least)
  const waiting = pods.filter(({ node, isDone }) => node === '' && !isDone).length
  return [
    'limits of volumes per node',
    'what autoscaling adds',
    ...(mayPreempt ? ['the scheduler may evict pods of lower priority for pods that stay pending'] : []),
    ...(waiting > 0 ? [`${waiting} pods that are pending already and may take the free room first`] : []),
    ...new Set(moving.flatMap(({ leftOut }) => leftOut)),
  ]
}
