import { workloadId } from '../../../domain/listed-cluster.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import type { Source } from '../../../domain/source.ts'
import { type ClusterFault, clusterFaultRows } from '../../../lab/kubernetes/faults.ts'
import type { SourceStates } from '../../../sources/ask.ts'
import { SourceError } from '../../../sources/kind.ts'
import { planRead, readContext, readSource } from '../../../sources/kinds.ts'
import type { ClusterQuestion } from './questions.ts'

/**
 * Asks a question as an investigation would: what the first turn holds, then two calls at most.
 * What is right is compared by code.
 */

export type AskedCluster = { source: Source; states: SourceStates; nowMs: number }

export type Answered = {
  question: ClusterQuestion
  calls: string[]
  bytes: number
  /** Facts that do not stand in what was returned. */
  missing: string[]
}

/** A call may answer so much. */
export const maxCallBytes = 2_048
export const maxContextBytes = 1_536

type Call = [tool: string, args: Record<string, unknown>]
type Calls = Partial<Record<ClusterQuestion['asks'], Call[]>>

/** What an alert of the fault is about, as the registry names it. */
function subjectOf(fault: ClusterFault, cluster: string): ResourceRef & { name: string; pod: null } {
  const [namespace = '', name] = clusterFaultRows[fault].on.split('/')
  const ofPlace = (kind: 'cluster_service' | 'volume_claim', named: string) => ({
    kind,
    id: [cluster, namespace, named].join(':'),
    name: named,
    pod: null,
  })
  if (name === undefined) return { kind: 'node', id: [cluster, namespace].join(':'), name: namespace, pod: null }
  if (fault === 'k8s_wrong_selector') return ofPlace('cluster_service', name)
  if (fault === 'k8s_volume_unbound') return ofPlace('volume_claim', 'ledger-data-fast')
  const kind = fault === 'k8s_job_endless' ? 'Job' : 'Deployment'
  return { kind: 'workload', id: workloadId(cluster, { kind, namespace, name }), name, pod: null }
}

/**
 * The calls of a question, in order: what it asks decides, and where the root is no rollout, its
 * kind of object.
 */
function callsOf({ fault, asks }: ClusterQuestion): Call[] {
  const [place = '', named] = clusterFaultRows[fault].on.split('/')
  // What fills the disk of a node is told by its events.
  const [namespace, name] = named === undefined ? ['shop', 'thumbnails'] : [place, named]
  const diagnosis: Call = ['pod_diagnosis', { namespace, name }]
  const history: Call = ['rollout_history', { namespace, name }]
  const get = (kind: string, of = name): Call => [
    'get_kubernetes',
    kind === 'Node' ? { kind, name: place } : { kind, namespace, name: of },
  ]
  const usual: Required<Calls> = {
    what: [diagnosis],
    since: [diagnosis],
    why: [diagnosis, ['kubernetes_logs', { namespace, name, previous: fault === 'k8s_crash_loop' }]],
    change: [history, diagnosis],
    more: [history, diagnosis],
  }
  const special: Partial<Record<ClusterFault, Calls>> = {
    k8s_node_not_ready: { what: [get('Node')], since: [get('Node')], why: [get('Node')], change: [get('Node')] },
    k8s_disk_pressure: {
      what: [get('Node'), ['kubernetes_events', { namespace }]],
      since: [get('Node')],
      why: [diagnosis, ['kubernetes_events', { namespace }]],
    },
    k8s_volume_unbound: { since: [get('PersistentVolumeClaim', 'ledger-data-fast'), diagnosis] },
    k8s_quota: { why: [diagnosis, get('ResourceQuota', 'team-budget')], change: [get('Deployment'), history] },
    k8s_wrong_selector: {
      what: [get('Service')],
      since: [get('Service')],
      why: [get('Service'), diagnosis],
      change: [get('Service')],
    },
    k8s_webhook_expired: { more: [diagnosis, ['kubernetes_events', { namespace }]] },
    k8s_job_endless: { since: [get('Job')], change: [get('Job')], more: [get('Job')] },
  }
  return special[fault]?.[asks] ?? usual[asks]
}

export async function askCluster(
  { source, states, nowMs }: AskedCluster,
  question: ClusterQuestion,
  facts: Record<string, string>,
): Promise<Answered> {
  const [told] = await readContext('cluster', [source], subjectOf(question.fault, source.name), states)
  const answers = [told === undefined ? '' : 'facts' in told ? told.facts.join('\n') : told.notRead]
  const calls: string[] = []
  const missing = () => {
    const all = answers.join('\n')
    return question.holds.filter((key) => !all.includes(facts[key] ?? `no fact ${key}`))
  }
  for (const [tool, args] of callsOf(question)) {
    if (missing().length === 0) break
    const planned = planRead([source], tool, { source: source.name, ...args })
    if (!planned.ok) throw new Error(planned.reason)
    calls.push(tool)
    answers.push(
      await readSource(planned, states, { nowMs, incidentBeganMs: null }).then(
        ({ summary }) => textOf(summary),
        // A refusal, as of a log that is not there, is an answer too.
        (error) => (error instanceof SourceError ? error.message : Promise.reject(error)),
      ),
    )
  }
  const bytes = answers.map((each) => Buffer.byteLength(each))
  const isLong = bytes.some((each, n) => each > (n === 0 ? maxContextBytes : maxCallBytes))
  return {
    question,
    calls,
    bytes: bytes.reduce((sum, each) => sum + each, 0),
    missing: isLong ? ['a short answer'] : missing(),
  }
}

/** As a model reads it, without the escapes of JSON. */
const textOf = (value: unknown): string => JSON.stringify(value).replaceAll('\\"', '"')

export const sayAnswered = ({ question, calls, bytes, missing }: Answered): string =>
  `${question.fault} ${question.asks}: ${calls.length === 0 ? 'context' : calls.join(', ')}, ${bytes} bytes${missing.length > 0 ? `, lacks ${missing.join(', ')}` : ''}`
