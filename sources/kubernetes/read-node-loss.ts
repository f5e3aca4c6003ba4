import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { toList, toText } from '../../domain/say.ts'
import { cleanse } from '../../safety/redact.ts'
import { defineSourceTool, fitSummary, SourceError } from '../kind.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { type Fields, fieldsOf, numberOf, wordOf } from './fields.ts'
import type { ClusterKind } from './kinds.ts'
import { type ClusterLoad, foreseeLoss, type NodeLoss, type PendingPod } from './node-loss.ts'
import { readPages } from './pages.ts'
import { nodeTermsIn, readScheduledNode, readScheduledPod, type ScheduledPod, selectorIn } from './scheduled.ts'
import { matchesNode, type Obstruction } from './scheduling-rules.ts'
import { nameField, nameOfWorkload, sourceField } from './subject.ts'
import { type ClusterView, objectsOf, workloadOf } from './view.ts'

/**
 * Predicts which pods stay pending after a drain or failure of nodes, by which rule, and what would
 * make room. Only reads.
 */

/** Limits of a read: as many objects as a watch follows. Pages of 200 need little memory. */
const bounds = { pageSize: 200, maxPages: 150 }

/**
 * Reads all objects of a kind. Throws SourceError if there are too many, because an incomplete list
 * would prove nothing.
 */
async function readAll<T>(ask: AskCluster, read: ClusterKind, toKept: (given: Fields) => T | null): Promise<T[]> {
  const { items, isCut } = await readPages(ask, { read, namespace: null }, bounds, toKept)
  if (isCut) throw new SourceError('TOO_LARGE', `there are more than ${bounds.pageSize * bounds.maxPages} of ${read}`)
  return items
}

async function readLoad(ask: AskCluster): Promise<ClusterLoad> {
  const nodes = await readAll(ask, 'Node', readScheduledNode)
  const pods = await readAll(ask, 'Pod', readScheduledPod)
  const budgets = await readAll(ask, 'PodDisruptionBudget', (given) => {
    const { metadata, spec, status } = fieldsOf(given)
    const [name, namespace] = [wordOf(fieldsOf(metadata).name), wordOf(fieldsOf(metadata).namespace)]
    const { disruptionsAllowed, expectedPods, desiredHealthy } = fieldsOf(status)
    return {
      name,
      namespace,
      selector: selectorIn(fieldsOf(spec).selector),
      allowed: numberOf(disruptionsAllowed),
      // Allows no eviction if the budget requires all its pods to be healthy.
      allowsNone: numberOf(expectedPods) > 0 && numberOf(desiredHealthy) >= numberOf(expectedPods),
    }
  })
  const volumes = await readAll(ask, 'PersistentVolume', (given) => {
    const { claimRef, nodeAffinity } = fieldsOf(fieldsOf(given).spec)
    const { namespace, name } = fieldsOf(claimRef)
    const terms = nodeTermsIn(fieldsOf(nodeAffinity).required)
    return { claim: `${wordOf(namespace)}/${wordOf(name)}`, terms }
  })
  return {
    ...{ nodes, pods, budgets },
    volumes: new Map(volumes.map(({ claim, terms }) => [claim, (node) => matchesNode(terms, node)])),
  }
}

/** Formats `memory 512 MiB`, `cpu 250 m`, `pods 1`. */
function formatAmount(name: string, amount: number): string {
  if (name === 'cpu') return `cpu ${amount} m`
  if (name === 'memory' || name.endsWith('storage')) return `${name} ${Math.ceil(amount / 2 ** 20)} MiB`
  return `${name} ${amount}`
}

const ruleWords: Readonly<Record<Obstruction['rule'], string>> = {
  resources: 'short of',
  taint: 'taint',
  cordoned: 'cordoned',
  'not ready': 'not ready',
  'node affinity': 'node selector or affinity',
  apart: 'keeps apart from a pod there',
  beside: 'not beside the pods it belongs to',
  spread: 'spread over',
  port: 'port is taken:',
  volume: 'its volume is elsewhere:',
}

const maxRules = 4

/**
 * Returns text such as `short of memory on 2 (512 MiB on node-b at least), taint gpu=true on 1`:
 * how many nodes reject the pod by each rule, and the smallest shortage.
 */
function sayWhy(why: PendingPod['why']): string {
  const found = new Map<string, { nodes: string[]; least: { node: string; amount: number } | null; resource: string }>()
  for (const [node, obstructions] of why)
    for (const { rule, detail, amount } of obstructions) {
      const key = `${ruleWords[rule]} ${detail}`.trim()
      const entry = found.get(key) ?? { nodes: [], least: null, resource: detail }
      entry.nodes.push(node)
      if (amount !== undefined && (entry.least === null || amount < entry.least.amount)) entry.least = { node, amount }
      found.set(key, entry)
    }
  const rules = [...found].sort(([, a], [, b]) => b.nodes.length - a.nodes.length)
  const said = rules.slice(0, maxRules).map(([key, { nodes, least, resource }]) => {
    const by = least ? ` (least: ${formatAmount(resource, least.amount)} on ${least.node})` : ''
    return `${key} on ${nodes.length === 1 && !least ? nodes[0] : nodes.length}${by}`
  })
  if (why.size === 0) return 'no node is left'
  return [...said, ...(rules.length > maxRules ? [`and ${rules.length - maxRules} more rules`] : [])].join('; ')
}

function nameOwner(view: ClusterView, pod: ScheduledPod): string {
  const kept = view.objects.get(pod.uid)
  const workload = kept && workloadOf(view, kept)
  return workload
    ? nameOfWorkload(workload)
    : `${pod.owner?.kind ?? 'Pod'} ${pod.namespace}/${pod.owner?.name ?? pod.name}`
}

/** Formats `Deployment shop/web: 3`, the largest number first. */
function countByOwner(view: ClusterView, pods: readonly ScheduledPod[]): string[] {
  const counts = new Map<string, number>()
  for (const pod of pods) counts.set(nameOwner(view, pod), (counts.get(nameOwner(view, pod)) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => (count === 1 ? name : `${name}: ${count}`))
}

type ShownPending = { workload: string; pods: number; certain: boolean; why: string }

/** Formats pending pods: one line for all pods of a workload that are excluded by equal rules. */
function showPending(view: ClusterView, pending: readonly PendingPod[]): ShownPending[] {
  const shown = new Map<string, ShownPending>()
  for (const { pod, isCertain, why } of pending) {
    const workload = nameOwner(view, pod)
    const said = sayWhy(why)
    const key = `${workload} ${said}`
    const before = shown.get(key)
    if (before) Object.assign(before, { pods: before.pods + 1, certain: before.certain && isCertain })
    else shown.set(key, { workload, pods: 1, certain: isCertain, why: said })
  }
  return [...shown.values()].sort((a, b) => b.pods - a.pods)
}

const maxNamed = 5

const few = (names: readonly string[]): string[] =>
  names.length > maxNamed ? [...names.slice(0, maxNamed), `${names.length - maxNamed} more`] : [...names]

function showLoss({ view }: SeenCluster, loss: NodeLoss): Record<string, unknown> {
  const { moving, pending, mostPending, lost, stuck, bound, waiting, room, leftOut } = loss
  return {
    moves: moving.length,
    stayPending: pending.length,
    ...(mostPending > pending.length && { inTheWorstOrderTried: mostPending }),
    ...(waiting.length > 0 && {
      drainWaits: few(
        waiting.map(
          ({ budget: { namespace, name, allowed }, leaving, isEndless }) =>
            `budget ${namespace}/${name}: ${leaving} are to go, ${allowed} may go now${isEndless ? ', and the drain would not end by itself' : ''}`,
        ),
      ),
    }),
    ...(lost.length > 0 && { notMadeAgain: few(lost.map(({ namespace, name }) => `${namespace}/${name}`)) }),
    ...(stuck.length > 0 && {
      waitForTheNodeToBeDeleted: few(countByOwner(view, stuck)),
    }),
    ...(bound.length > 0 && { endWithTheNode: bound.length }),
    ...(moving.some(({ hasLocalData }) => hasLocalData) && {
      loseLocalData: few(
        countByOwner(
          view,
          moving.filter(({ hasLocalData }) => hasLocalData),
        ),
      ),
    }),
    ...(room.length > 0 && {
      tried: room.map(
        ({ change, pending: after }) => `${change}: ${after === 0 ? 'all have a place' : `${after} stay pending`}`,
      ),
    }),
    leftOut,
  }
}

function refuseUnknown({ name, view }: SeenCluster, load: ClusterLoad, nodes: readonly string[]): void {
  const there = new Set(load.nodes.map((each) => each.name))
  const unknown = nodes.filter((each) => !there.has(each))
  if (unknown.length === 0) return
  const names = objectsOf(view, 'Node').map((each) => each.name)
  throw new SourceError(
    'REJECTED',
    `${name} has no node ${unknown.join(', ')}: there is ${few(names.sort()).join(', ')}`,
  )
}

export const nodeLoss = defineSourceTool({
  name: 'kubernetes_node_loss',
  firstFor: ['cluster'],
  isRare: true,
  description:
    'What would stay pending if nodes of Kubernetes were drained or failed, by which rule, and what would make room. Changes nothing.',
  input: z.strictObject({
    source: sourceField,
    nodes: z
      .array(nameField)
      .min(1)
      .max(20)
      .meta({ examples: [['node-1']], description: 'all at once' }),
    intent: z.enum(['drain', 'failure']).default('drain').describe('emptied first, or lost'),
  }),
  judge: () => ({ ok: true as const }),
  labels: ({ nodes, source }) => ({
    ...(nodes.length === 1 && { node: nodes[0] as string }),
    ...(source && { cluster: source }),
  }),
  say: ({ moves, stayPending, inTheWorstOrderTried, pending }, { nodes }) => {
    const [first] = toList(pending)
    const of = `${formatCount(numberOf(moves), 'pod')} would leave ${nodes.join(', ')}`
    const most = numberOf(inTheWorstOrderTried)
    const worst = most > 0 ? `; up to ${most} in another order` : ''
    return numberOf(stayPending) === 0
      ? `${of}, and all have a place${worst === '' ? '' : ` in the best order tried${worst}`}`
      : `${of}, and ${stayPending} would stay pending: ${toText(first?.workload)} (${toText(first?.why)})${worst}`
  },
  async read(ask: AskCluster, { nodes, intent }) {
    const cluster = await ask({ view: true })
    if (cluster.namespaces !== null)
      throw new SourceError(
        'REJECTED',
        `${cluster.name} is read by namespace, and nodes belong to no namespace: grant the rights for the whole cluster`,
      )
    const load = await readLoad(ask)
    refuseUnknown(cluster, load, nodes)
    const loss = foreseeLoss(load, nodes, intent)
    const { head, pending } = cleanse({
      head: showLoss(cluster, loss),
      pending: showPending(cluster.view, loss.pending),
    })
    const summary = fitSummary(pending, (kept, omitted) => ({
      ...head,
      ...(kept.length > 0 && { pending: kept }),
      ...(omitted > 0 && { morePending: omitted }),
    }))
    const whole = [...Object.entries(head), ...pending].map((each) => JSON.stringify(each)).join('\n')
    return { summary, whole, isEmpty: false }
  },
})
