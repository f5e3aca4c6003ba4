import { type AlertLabels, clusterLabels, qualifiedGuests, subjectNamespace, toPlainLabel } from './alert-labels.ts'
import {
  isElsewhere,
  listMachine,
  listNamed,
  machineLabels,
  namesOf,
  namesOther,
  type Sought,
  tellsOfItsMachine,
  toMachineNames,
} from './alert-machines.ts'
import { type InventoryKind, kinds } from './kinds.ts'
import type { ResourceRule } from './resource-rules.ts'

/**
 * Lists the subjects that labels may name, in the published order (`docs/reference/ingest.md`):
 * guests, objects of a cluster, and services, containers and databases on a machine.
 */

const runsGuests = /libvirt|kvm|qemu/i
/** Pods and containers of exporters, which measure something other than themselves. */
const isExporter = /exporter|kube-state-metrics|blackbox|pushgateway|prometheus-operator|node-problem-detector/i
const clusterJobs = /kube-state-metrics|ksm|kubelet|cadvisor/i

/** Lists the possible subjects of the labels, in the published order. */
export function listSought(labels: AlertLabels, rules: readonly ResourceRule[]): Sought[] {
  const isOfCluster = clusterJobs.test(labels.job ?? '') || 'persistentvolumeclaim' in labels
  // Tries a pod before its node, unless the pod is the exporter that measures the node.
  const isPodFirst = isOfCluster || (namespaceOf(labels) !== undefined && !tellsOfItsMachine.test(labels.job ?? ''))
  const ofProxmox = listProxmox(labels)
  const isProxmoxGuest = ofProxmox.some(({ kinds }) => kinds.includes('vm'))
  const sought: Sought[] = [...listRuled(labels, rules), ...(isProxmoxGuest ? ofProxmox : [])]
  sought.push(...listGuest(labels), ...listServer(labels))
  // Tries a node or host before its shard, because platforms send both labels. A queried target or
  // a pod comes before all three.
  const isNamed = !isPodFirst && !namesOther(labels)
  const onMachine = listOnMachine(labels)
  if (isNamed) sought.push(...onMachine)
  for (const kind of [...(isNamed ? (['node', 'host'] as const) : []), 'shard', 'tenant'] as const)
    for (const label of kinds[kind].labels) push(sought, labels, label, { kinds: [kind] })
  sought.push(
    ...(isProxmoxGuest ? [] : ofProxmox),
    ...listBesideWorkloads(labels),
    ...listWorkload(labels, isOfCluster),
    ...listSaidPod(labels, isOfCluster),
  )
  if (isPodFirst) sought.push(...listPod(labels, isOfCluster))
  if (!isNamed) sought.push(...onMachine)
  if (!('persistentvolumeclaim' in labels)) sought.push(...listMachine(labels))
  if (!isPodFirst) sought.push(...listPod(labels, false))
  sought.push(...listNamed(labels))
  // Tries the namespace, cluster and region of the subject last, if nothing narrower is known.
  if (isOfCluster || !isElsewhere(labels)) sought.push(...listHolders(labels))
  return sought
}

/**
 * Lists a virtual machine by the labels of its kind and of its platform. If the VM is unknown, its
 * host does not become the subject.
 */
function listGuest(labels: AlertLabels): Sought[] {
  const sought: Sought[] = []
  const isSubject = !tellsOfItsMachine.test(labels.job ?? '')
  for (const label of new Set([...kinds.vm.labels, ...qualifiedGuests(labels)]))
    push(sought, labels, label, { kinds: ['vm'] })
  if (runsGuests.test(labels.job ?? '')) push(sought, labels, 'domain', { kinds: ['vm'] })
  return sought.map((each, at, all) => (at === all.length - 1 ? { ...each, isSubject } : each))
}

const aboutDatabase = /postgres|pgbouncer|patroni|mysql|mariadb/i

/**
 * Lists a database server that is a source: by address and port, and by its name alone if the
 * scrape job measures databases.
 */
function listServer(labels: AlertLabels): Sought[] {
  const isOfDatabase = aboutDatabase.test(labels.job ?? '')
  return ['server', 'exported_instance', 'instance'].flatMap((label): Sought[] => {
    const value = (labels[label] ?? '').toLowerCase()
    if (!/^[^/\s]+:\d{1,5}$/.test(value)) return []
    const names = isOfDatabase ? [value, ...toMachineNames(value)] : [value]
    return [{ label, names: [...new Set(names)], kinds: ['database'], isSeldom: true, isServer: true }]
  })
}

function listHolders(labels: AlertLabels): Sought[] {
  const sought: Sought[] = []
  const more = { inside: 'cluster' as const, isHolder: true }
  for (const label of kinds.namespace.labels) push(sought, labels, label, { kinds: ['namespace'], ...more })
  for (const label of clusterLabels(labels)) push(sought, labels, label, { kinds: ['cluster'], ...more })
  // Tries the region only if no label names a machine, because every resource has a region.
  if (!machineLabels.some((label) => label in labels))
    for (const label of kinds.region.labels) push(sought, labels, label, { kinds: ['region'], ...more })
  return sought
}

/** Lists a volume claim, an ingress and a service of a cluster, if labels name a namespace. */
function listBesideWorkloads(labels: AlertLabels): Sought[] {
  const sought: Sought[] = []
  if (namespaceOf(labels) === undefined) return sought
  for (const kind of ['volume_claim', 'ingress', 'cluster_service'] as const)
    for (const label of kinds[kind].labels)
      push(sought, labels, label, { kinds: [kind], inside: 'cluster', isSeldom: kind !== 'volume_claim' })
  return sought
}

/**
 * Lists workloads of a cluster. Jobs and replica sets are tried only on an alert with a namespace,
 * because the jobs of Flink also have a `job_name`.
 */
function listWorkload(labels: AlertLabels, isOfCluster: boolean): Sought[] {
  const sought: Sought[] = []
  const hasNamespace = namespaceOf(labels) !== undefined
  if (!isOfCluster && !hasNamespace && !('deployment' in labels) && !('statefulset' in labels)) return sought
  for (const label of kinds.workload.labels)
    push(sought, labels, label, { kinds: ['workload'], inside: 'cluster', isNarrowest: !isOfCluster && hasNamespace })
  return sought
}

function push(sought: Sought[], labels: AlertLabels, label: string, more: Omit<Sought, 'label' | 'names'>): void {
  const names = namesOf(labels[label])
  if (names.length > 0) sought.push({ label, names, ...more })
}

/** Lists the resources that the configured rules (`alert.resource_labels`) find in the labels. */
function listRuled(labels: AlertLabels, rules: readonly ResourceRule[]): Sought[] {
  return rules.flatMap(({ label, before, after, kind, id }): Sought[] => {
    const value = labels[toPlainLabel(label)]
    const matched = value ? matchRule(value, before, after) : null
    if (matched === null) return []
    const name = id.replace('*', () => matched)
    return [
      { label: toPlainLabel(label), names: [...new Set([...namesOf(name), ...toMachineNames(name)])], kinds: [kind] },
    ]
  })
}

/** Returns the text that stands for the star in a pattern; null if the value does not match. */
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

/**
 * Lists the subjects of an alert from the exporter of Proxmox VE: `id="node/pve-1"`,
 * `id="qemu/101"`, `id="storage/pve-1/local"`. The label `guest` of a replication names the guest.
 */
function listProxmox(labels: AlertLabels): Sought[] {
  for (const label of ['guest', 'id']) {
    const [, type = '', id = ''] = /^(node|qemu|lxc|storage(?=\/.*\/)|cluster)\/([^/]+)/.exec(labels[label] ?? '') ?? []
    if (id === '') continue
    const of = proxmoxKinds[type] ?? []
    // Makes a guest the subject even if it is unknown, so that the guest's node does not become the
    // subject.
    const isSubject = of.includes('vm') || /pve|proxmox/i.test(labels.job ?? '')
    return of.map((kind, at) => ({
      label,
      names: namesOf(id),
      kinds: [kind],
      isSubject: isSubject && at === of.length - 1,
    }))
  }
  return []
}

/** Returns the subject's namespace, or the exporter's namespace if the labels name no other. */
export const namespaceOf = (labels: AlertLabels): string | undefined =>
  labels[subjectNamespace(labels) ?? 'namespace'] || undefined

/** Lists the subject's pod and namespace, which come before the pod of the exporter. */
function listSaidPod(labels: AlertLabels, isOfCluster: boolean): Sought[] {
  const { exported_pod: pod = '', exported_container: container = '' } = labels
  const sought = listPodOf(pod, container, namespaceOf(labels), isOfCluster)
  const label = subjectNamespace(labels)
  if (label !== undefined) push(sought, labels, label, { kinds: ['namespace'], inside: 'cluster' })
  return sought
}

/** Lists the scraped pod, in the namespace from which it was scraped. */
function listPod({ pod, pod_name, container = '', ...labels }: AlertLabels, isOfCluster: boolean): Sought[] {
  if (labels.exported_pod) return []
  return listPodOf(pod || pod_name || '', container, labels.namespace || namespaceOf(labels), isOfCluster)
}

/** Lists the workload and the container of a pod. The pod of an exporter is not the subject. */
function listPodOf(pod: string, container: string, namespace: string | undefined, isOfCluster: boolean): Sought[] {
  if (pod === '' || isExporter.test(pod)) return []
  const place = { inside: 'cluster' as const, namespace }
  const sought: Sought[] = [{ label: 'pod', names: toWorkloadNames(pod), kinds: ['workload'], ...place }]
  const names = isExporter.test(container) || container === 'POD' ? [] : namesOf(container)
  if (names.length > 0)
    sought.push({ label: 'container', names, kinds: ['container'], ...place, isNarrowest: isOfCluster })
  return sought
}

/**
 * Lists possible workloads of a pod: `api` for `api-7d9f8b6c5-x2x9k`, `db` for `db-0`, and the name
 * itself.
 */
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

/** Lists a service, container or database on the machine that the alert also names. */
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
