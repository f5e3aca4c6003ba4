import type { Conversation, RunbookStep } from '../conversation.ts'
import { call, done, escalate, type Facts, type OperatorTurn, object, type RunbookCall, text } from '../facts.ts'

/**
 * Handles alerts about a Kubernetes cluster: reads the objects that the alert names, and escalates
 * with their state and a command for a person. Changes nothing in a cluster.
 */

/**
 * The subject of an alert: a workload, its pod, or another object of a namespace or of the cluster.
 * The kind is null for a workload or pod.
 */
type Named = { namespace: string; name: string; kind: 'Node' | 'Service' | 'PersistentVolumeClaim' | 'Job' | null }

const kindsByLabel = {
  deployment: null,
  persistentvolumeclaim: 'PersistentVolumeClaim',
  job_name: 'Job',
  pod: null,
  exported_service: 'Service',
} as const

function namedBy({ context }: Conversation): Named | null {
  for (const { labels } of context!.alerts) {
    const { namespace = '', node } = labels
    if (namespace === '') {
      if (node) return { namespace, name: node, kind: 'Node' }
      continue
    }
    for (const [label, kind] of Object.entries(kindsByLabel)) {
      const name = labels[label]
      if (name) return { namespace, name, kind }
    }
  }
  return null
}

const lookAt = ({ namespace, name, kind }: Named): RunbookCall =>
  kind === null
    ? call('pod_diagnosis', { namespace, name })
    : call('get_kubernetes', { kind, name, ...(namespace !== '' && { namespace }) })

/** The incident types that this playbook handles. */
export const clusterTypes = [
  'kube_pod_crash_looping',
  'kube_pod_not_ready',
  'kube_container_waiting',
  'kubernetes_container_oom_killer',
  'kube_deployment_rollout_stuck',
  'kube_deployment_replicas_mismatch',
  'kubernetes_persistentvolumeclaim_pending',
  'kube_node_not_ready',
  'kube_node_pressure',
  'kube_job_not_completed',
  'kube_service_without_endpoints',
]

/** Reads the alert's object, then its events, then escalates to a person. */
export function lookAtCluster(conversation: Conversation): OperatorTurn {
  const named = namedBy(conversation)
  if (!named) return escalate(conversation, 'The alert names no object of a cluster that I can read.')
  const look = lookAt(named)
  const [seen] = done(conversation.steps, look.tool, named.name)
  if (!seen) {
    if (hasFailed(conversation.steps, look.tool))
      return handOver(conversation, named, 'The object could not be read.', {})
    return { say: `I read ${placeOf(named)}.`, calls: [look] }
  }
  const summary = object(object(seen.result.data).summary)
  const said = named.kind === null ? sayDiagnosis(summary) : sayObject(summary)
  if (named.kind === null || conversation.steps.some(({ tool }) => tool === 'kubernetes_events'))
    return handOver(conversation, named, said, summary)
  const { namespace, name, kind } = named
  const events = call('kubernetes_events', { kind, name, ...(namespace !== '' && { namespace }) })
  return { say: said, calls: [events] }
}

const hasFailed = (steps: RunbookStep[], tool: string): boolean =>
  steps.some((step) => step.tool === tool && step.result?.ok === false)

const placeOf = ({ namespace, name, kind }: Named): string =>
  `${kind ?? 'what runs'} ${namespace === '' ? name : `${namespace}/${name}`}`

function sayDiagnosis(summary: Facts): string {
  const [container] = listIn(summary, 'containers')
  const [condition] = listIn(summary, 'conditions', 'workloadConditions')
  const rollout = object(summary.newestRollout)
  const [event] = listIn(summary, 'events')
  return [
    text(summary, 'workload', 'pod'),
    container && `container ${text(container, 'name')} is ${text(container, 'is')}`,
    condition && `${text(condition, 'type')} is ${text(condition, 'is')} since ${text(condition, 'since')}`,
    rollout.revision !== undefined && `revision ${rollout.revision} at ${rollout.at} changed ${changesOf(rollout)}`,
    event && `${text(event, 'reason')}: ${text(event, 'message')}`,
  ]
    .filter(Boolean)
    .join('; ')
}

const listIn = (summary: Facts, ...names: string[]): Facts[] =>
  names.flatMap((name) => (Array.isArray(summary[name]) ? (summary[name] as unknown[]).map(object) : []))

const changesOf = ({ changed }: Facts): string => (Array.isArray(changed) ? changed.join(', ') : String(changed))

/** Describes an object by its fields, short enough for the reason of an escalation. */
function sayObject({ kind, name, namespace, ...fields }: Facts): string {
  const shown = Object.entries(fields).map(([field, value]) => `${field} ${JSON.stringify(value)}`)
  return `${kind} ${namespace ? `${namespace}/` : ''}${name}: ${shown.join(', ').slice(0, 600)}`
}

function handOver(conversation: Conversation, named: Named, said: string, summary: Facts): OperatorTurn {
  return escalate(conversation, said || placeOf(named), { category: 'no_tool', nextStep: stepFor(named, summary) })
}

/**
 * Returns a command for a person. The command undoes the newest rollout if this rollout changed
 * something, and otherwise shows the object.
 */
function stepFor({ namespace, name, kind }: Named, summary: Facts): string {
  if (kind === 'Node') return `On ${name}: systemctl status kubelet; kubectl describe node ${name}`
  const workload = /^(\w+) \S+\/(\S+)$/.exec(text(summary, 'workload') ?? '')
  const { revision, changed } = object(summary.newestRollout)
  if (workload && Number(revision) > 1 && Array.isArray(changed) && changed.length > 0)
    return `kubectl -n ${namespace} rollout undo ${workload[1]?.toLowerCase()}/${workload[2]}`
  if (kind === 'Job') return `kubectl -n ${namespace} delete job ${name}`
  return `kubectl -n ${namespace} describe ${kind?.toLowerCase() ?? workload?.[1]?.toLowerCase() ?? 'pod'} ${workload?.[2] ?? name}`
}
