import {
  type AlertLabels,
  listMachine,
  machineLabels,
  namesOf,
  namesOther,
  type Sought,
  tellsOfItsMachine,
} from './alert-machines.ts'
import { type InventoryKind, kinds } from './kinds.ts'
import type { ResourceRule } from './resource-rules.ts'

/** What the labels of an alert may name, in the published order (`docs/reference/ingest.md`): guests, objects of a cluster, what runs on a machine. */

const runsGuests = /libvirt|kvm|qemu/i
/** Pods and containers that measure others. */
const isExporter = /exporter|kube-state-metrics|blackbox|pushgateway|prometheus-operator|node-problem-detector/i
const clusterJobs = /kube-state-metrics|ksm|kubelet|cadvisor/i

/** What the labels may name, in the published order. */
export function listSought(labels: AlertLabels, rules: readonly ResourceRule[]): Sought[] {
  const isOfCluster = clusterJobs.test(labels.job ?? '') || 'persistentvolumeclaim' in labels
  // A pod goes before the node it runs on, unless the pod is what measures the node.
  const isPodFirst = isOfCluster || (namespaceOf(labels) !== undefined && !tellsOfItsMachine.test(labels.job ?? ''))
  const sought: Sought[] = [...listRuled(labels, rules), ...listGuest(labels)]
  // A platform names a node beside its shard. What was asked, and a pod, go before either.
  const isNamed = !isPodFirst && !namesOther(labels)
  for (const kind of [...(isNamed ? (['node', 'host'] as const) : []), 'shard', 'tenant'] as const)
    for (const label of kinds[kind].labels) push(sought, labels, label, { kinds: [kind] })
  const narrow: Sought[] = [...listProxmox(labels), ...listWorkload(labels, isOfCluster)]
  if (isPodFirst) narrow.push(...listPod(labels, isOfCluster))
  const machines = 'persistentvolumeclaim' in labels ? [] : listMachine(labels)
  const onMachine = listOnMachine(labels)
  narrow.push(...onMachine, ...machines)
  if (!isPodFirst) narrow.push(...listPod(labels, false))
  sought.push(...narrow)
  // What holds the subject stands for it where nothing narrower is named, or what is named is an object of the cluster.
  const namesMachine = machineLabels.some((label) => label in labels)
  if (isOfCluster || (narrow.length === onMachine.length && !namesMachine)) sought.push(...listHolders(labels))
  return sought
}

/** A virtual machine, by the labels of its kind and of what runs it. */
function listGuest(labels: AlertLabels): Sought[] {
  const sought: Sought[] = []
  for (const label of kinds.vm.labels) push(sought, labels, label, { kinds: ['vm'] })
  if (runsGuests.test(labels.job ?? '')) push(sought, labels, 'domain', { kinds: ['vm'] })
  return sought
}

function listHolders(labels: AlertLabels): Sought[] {
  const sought: Sought[] = []
  for (const kind of ['namespace', 'cluster', 'region'] as const)
    for (const label of kinds[kind].labels)
      push(sought, labels, label, { kinds: [kind], inside: 'cluster', isSubject: kind === 'namespace', isHolder: true })
  return sought
}

/** Jobs, replica sets and the like are objects of a cluster only beside a namespace: Flink's jobs have a `job_name`, too. */
function listWorkload(labels: AlertLabels, isOfCluster: boolean): Sought[] {
  const sought: Sought[] = []
  if (!isOfCluster && !('namespace' in labels) && !('deployment' in labels) && !('statefulset' in labels)) return sought
  for (const label of kinds.workload.labels)
    push(sought, labels, label, { kinds: ['workload'], inside: 'cluster', isSubject: !isOfCluster })
  return sought
}

function push(sought: Sought[], labels: AlertLabels, label: string, more: Omit<Sought, 'label' | 'names'>): void {
  const names = namesOf(labels[label])
  if (names.length > 0) sought.push({ label, names, ...more })
}

/** What the site's own rules make of a label. */
function listRuled(labels: AlertLabels, rules: readonly ResourceRule[]): Sought[] {
  return rules.flatMap(({ label, before, after, kind, id }): Sought[] => {
    const value = labels[label]
    const matched = value ? matchRule(value, before, after) : null
    if (matched === null) return []
    return [{ label, names: namesOf(id.replace('*', () => matched)), kinds: [kind] }]
  })
}

/** What the star of a pattern stands for; null where the value does not match. */
function matchRule(value: string, before: string, after: string | null): string | null {
  if (after === null) return value === before ? '' : null
  const isMatch = value.length >= before.length + after.length && value.startsWith(before) && value.endsWith(after)
  return isMatch ? value.slice(before.length, value.length - after.length) : null
}

const proxmoxKinds: Readonly<Record<string, readonly InventoryKind[]>> = {
  qemu: ['vm'],
  lxc: ['vm'],
  node: ['host', 'node'],
  storage: ['host', 'node'],
  cluster: ['cluster'],
}

/** Proxmox VE's exporter: `id="node/pve-1"`, `id="qemu/101"`, `id="storage/pve-1/local"`; a replication names its guest. */
function listProxmox(labels: AlertLabels): Sought[] {
  for (const label of ['guest', 'id']) {
    const [, type = '', id = ''] = /^(node|qemu|lxc|storage(?=\/.*\/)|cluster)\/([^/]+)/.exec(labels[label] ?? '') ?? []
    if (id === '') continue
    const of = proxmoxKinds[type] ?? []
    const isSubject = /pve|proxmox/i.test(labels.job ?? '')
    return of.map((kind, at) => ({
      label,
      names: namesOf(id),
      kinds: [kind],
      isSubject: isSubject && at === of.length - 1,
    }))
  }
  return []
}

const podLabels = ['exported_pod', 'pod', 'pod_name', 'kubernetes_pod_name', 'k8s_pod_name'] as const
const namespaceLabels = ['exported_namespace', 'namespace', 'kubernetes_namespace', 'k8s_namespace_name'] as const

/** The namespace of the subject, before that of the exporter. */
export const namespaceOf = (labels: AlertLabels): string | undefined =>
  namespaceLabels.map((label) => labels[label]).find((name) => name)

/** A pod's alert is about its workload. The pod of an exporter is not what the alert is about. */
function listPod(labels: AlertLabels, isOfCluster: boolean): Sought[] {
  const pod = podLabels.map((label) => labels[label]).find((name) => name) ?? ''
  if (pod === '' || isExporter.test(pod)) return []
  const inside = 'cluster' as const
  const sought: Sought[] = [{ label: 'pod', names: toWorkloadNames(pod), kinds: ['workload'], inside }]
  const container = labels.exported_container ?? labels.container ?? ''
  const names = isExporter.test(container) || container === 'POD' ? [] : namesOf(container)
  if (names.length > 0) sought.push({ label: 'container', names, kinds: ['container'], inside, isSubject: isOfCluster })
  return sought
}

/** `api` of `api-7d9f8b6c5-x2x9k`, `db` of `db-0`, and the name itself. */
function toWorkloadNames(pod: string): string[] {
  const name = pod.toLowerCase()
  const parts = [
    name,
    name.replace(/-[0-9a-z]{6,10}-[0-9a-z]{5}$/, ''),
    name.replace(/-\d{1,4}$/, ''),
    name.replace(/-[0-9a-z]{5}$/, ''),
    name.replace(/-\d{8,10}-[0-9a-z]{5}$/, ''),
  ]
  return [...new Set(parts)]
}

/** A service, container or database on the machine that the alert names as well. */
function listOnMachine(labels: AlertLabels): Sought[] {
  const sought: Sought[] = []
  const inside = 'machine' as const
  for (const label of kinds.service_unit.labels) push(sought, labels, label, { kinds: ['service_unit'], inside })
  const isUnit = /\.(service|socket|timer|mount|target|slice)$/.test(labels.name ?? '')
  push(sought, labels, 'name', { kinds: [isUnit ? 'service_unit' : 'container'], inside })
  for (const kind of ['container', 'database'] as const)
    for (const label of kinds[kind].labels) push(sought, labels, label, { kinds: [kind], inside })
  return sought
}
