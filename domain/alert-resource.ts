import type { ResourceRule } from './explained-alert.ts'
import { type InventoryKind, kinds, machineKinds } from './kinds.ts'
import { type ResourceRef, resourceKey } from './resource.ts'

/**
 * Which resource an alert is about. Labels are a sender's words: they choose among what the registry knows and make nothing known. The
 * order is published (`docs/reference/alerts.md`), each step is kept for people, and two things with one name are none.
 */

/** A resource that one of the names means, with what it belongs to and runs on. */
export type KnownResource = ResourceRef & {
  kind: InventoryKind
  names: readonly string[]
  /** One key for all names of one thing. */
  canonical: string
  above: readonly { kind: InventoryKind; id: string; names: readonly string[] }[]
}

export type ResourceAttempt = { label: string; name: string; result: 'found' | 'unknown' | 'several' | 'elsewhere' }

export type AlertResource = {
  resource: ResourceRef | null
  /** The label that named it. */
  by: string | null
  tried: ResourceAttempt[]
  /** What an ambiguous name may mean, as keys. */
  candidates: string[]
}

type Labels = Readonly<Record<string, string>>

/** One thing that labels may name: what it is called there, of which kinds it may be, and what else must fit. */
type Sought = {
  label: string
  names: string[]
  kinds: readonly InventoryKind[]
  /** It has to belong to this namespace or cluster, where the alert names one. */
  inside?: 'cluster' | 'machine'
  /** The alert is about this and nothing wider: where it is not known, nothing else is tried. */
  isSubject?: boolean
}

/** Labels that name a machine, the subject's own before the address of the exporter that told of it. */
const subjectLabels = [
  'exported_instance',
  'kubernetes_node',
  'rabbitmq_node',
  'node',
  'node_name',
  'nodename',
  'host_name',
  'hostname',
  'fqdn',
  'host',
] as const
const addressLabels = ['instance', 'target', 'address', 'addr'] as const

/** Jobs whose exporter tells of other machines than its own: its address names nothing. */
const tellsOfOthers = /kube-state-metrics|ksm|cloudwatch|yace|stackdriver|azure|vmware|federat/i
/** Jobs whose exporter tells of the machine it runs on, so that its address names the subject. */
const tellsOfItsMachine = /node|kubelet|cadvisor|windows|telegraf|netdata|systemd|process/i
/** Pods and containers that measure others. */
const isExporter = /exporter|kube-state-metrics|blackbox|pushgateway|prometheus-operator/i
const clusterJobs = /kube-state-metrics|ksm|kubelet|cadvisor/i

/** Every name that could decide, for one look-up in the registry. */
export function namesToLookUp(labels: Labels, rules: readonly ResourceRule[]): string[] {
  const above = ['exported_namespace', 'namespace', 'cluster', 'region'].flatMap((label) => namesOf(labels[label]))
  const machines = [...subjectLabels, ...addressLabels].flatMap((label) => toMachineNames(labels[label] ?? ''))
  return [
    ...new Set([
      ...listSought(labels, rules).flatMap(({ names }) => names),
      ...machines,
      ...above,
      ...jobNames(labels),
    ]),
  ]
}

/** Chooses the resource among what the registry knows under those names. Pure; the same labels and registry give the same answer. */
export function chooseResource(
  labels: Labels,
  rules: readonly ResourceRule[],
  known: readonly KnownResource[],
): AlertResource {
  const byName = new Map<string, KnownResource[]>()
  for (const resource of known)
    for (const name of resource.names) byName.set(name, [...(byName.get(name) ?? []), resource])
  const tried: ResourceAttempt[] = []
  for (const sought of listSought(labels, rules)) {
    const outcome = look(sought, labels, byName)
    if (!outcome) continue
    const isRepeated = outcome.result === 'unknown' && tried.at(-1)?.label === sought.label
    // An address that is no machine is tried as a target as well, with its port: once is enough to read.
    if (!isRepeated) tried.push({ label: sought.label, name: sought.names[0] ?? '', result: outcome.result })
    if (outcome.result === 'found') {
      const { kind, id } = narrowToService(outcome.resource, labels, byName)
      return { resource: { kind, id }, by: sought.label, tried, candidates: [] }
    }
    if (outcome.result === 'several') {
      const candidates = outcome.candidates.map(resourceKey).sort().slice(0, 10)
      return { resource: null, by: null, tried, candidates }
    }
    if (sought.isSubject) break
  }
  return { resource: null, by: null, tried, candidates: [] }
}

/** What the labels may name, in the published order. */
function listSought(labels: Labels, rules: readonly ResourceRule[]): Sought[] {
  const isOfCluster = clusterJobs.test(labels.job ?? '') || 'persistentvolumeclaim' in labels
  const sought: Sought[] = [...listRuled(labels, rules)]
  for (const kind of ['vm', 'node', 'host', 'shard', 'tenant'] as const)
    for (const label of kinds[kind].labels) push(sought, labels, label, { kinds: [kind] })
  const narrow: Sought[] = [...listProxmox(labels), ...listWorkload(labels, isOfCluster)]
  if (isOfCluster) narrow.push(...listPod(labels))
  const machines = 'persistentvolumeclaim' in labels ? [] : listMachine(labels)
  const onMachine = listOnMachine(labels)
  narrow.push(...onMachine, ...machines)
  if (!isOfCluster) narrow.push(...listPod(labels))
  sought.push(...narrow)
  // What holds the subject stands for it where nothing narrower is named, or what is named is an object of the cluster.
  if (isOfCluster || narrow.length === onMachine.length) sought.push(...listHolders(labels))
  return sought
}

function listHolders(labels: Labels): Sought[] {
  const sought: Sought[] = []
  for (const kind of ['namespace', 'cluster', 'region'] as const)
    for (const label of kinds[kind].labels)
      push(sought, labels, label, { kinds: [kind], inside: 'cluster', isSubject: kind === 'namespace' })
  return sought
}

/** Jobs, replica sets and the like are objects of a cluster only beside a namespace: Flink's jobs have a `job_name`, too. */
function listWorkload(labels: Labels, isOfCluster: boolean): Sought[] {
  const sought: Sought[] = []
  if (!isOfCluster && !('namespace' in labels) && !('deployment' in labels) && !('statefulset' in labels)) return sought
  for (const label of kinds.workload.labels)
    push(sought, labels, label, { kinds: ['workload'], inside: 'cluster', isSubject: !isOfCluster })
  return sought
}

function push(sought: Sought[], labels: Labels, label: string, more: Omit<Sought, 'label' | 'names'>): void {
  const names = namesOf(labels[label])
  if (names.length > 0) sought.push({ label, names, ...more })
}

/** What the site's own rules make of a label. */
function listRuled(labels: Labels, rules: readonly ResourceRule[]): Sought[] {
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

/** Proxmox VE's exporter: `id="node/pve-1"`, `id="qemu/101"`. */
function listProxmox(labels: Labels): Sought[] {
  const [, type = '', id = ''] = /^(node|qemu|lxc)\/(.+)$/.exec(labels.id ?? '') ?? []
  if (id === '') return []
  const isSubject = /pve|proxmox/i.test(labels.job ?? '')
  return [{ label: 'id', names: namesOf(id), kinds: type === 'node' ? ['host', 'node'] : ['vm'], isSubject }]
}

/** A pod's alert is about its workload. The pod of an exporter is not what the alert is about. */
function listPod(labels: Labels): Sought[] {
  const pod = labels.exported_pod ?? labels.pod ?? labels.pod_name ?? ''
  if (pod === '' || isExporter.test(pod)) return []
  const names = toWorkloadNames(pod)
  const container = labels.exported_container ?? labels.container
  const ofContainer = container && !isExporter.test(container) && container !== 'POD' ? namesOf(container) : []
  return [
    { label: 'pod', names, kinds: ['workload', 'vm'], inside: 'cluster' },
    ...(ofContainer.length > 0
      ? [
          {
            label: 'container',
            names: ofContainer,
            kinds: ['container'] as const,
            inside: 'cluster' as const,
            isSubject: true,
          },
        ]
      : []),
  ]
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
function listOnMachine(labels: Labels): Sought[] {
  const sought: Sought[] = []
  for (const label of kinds.service_unit.labels)
    push(sought, labels, label, { kinds: ['service_unit'], inside: 'machine' })
  if (/\.(service|socket|timer|mount|target|slice)$/.test(labels.name ?? ''))
    push(sought, labels, 'name', { kinds: ['service_unit'], inside: 'machine' })
  else push(sought, labels, 'name', { kinds: ['container'], inside: 'machine' })
  for (const kind of ['container', 'database'] as const)
    for (const label of kinds[kind].labels) push(sought, labels, label, { kinds: [kind], inside: 'machine' })
  return sought
}

function listMachine(labels: Labels): Sought[] {
  const job = labels.job ?? ''
  const subjects = subjectLabels.flatMap((label): Sought[] => {
    const names = toMachineNames(labels[label] ?? '')
    return names.length === 0 ? [] : [{ label, names, kinds: machineKinds }]
  })
  const last = subjects.at(-1)
  // The exporter's address says where the subject is only where an exporter measures its own machine.
  if (last && !tellsOfItsMachine.test(job) && 'job' in labels) last.isSubject = true
  // An alert about the exporter is about where it runs.
  if (tellsOfOthers.test(job) && !/exporter/i.test(labels.alertname ?? '')) return subjects
  const addresses = addressLabels.flatMap((label): Sought[] => {
    const value = labels[label] ?? ''
    const names = toMachineNames(value)
    const target = value === '' ? [] : [{ label, names: namesOf(value), kinds: ['target'] as const }]
    return names.length === 0 ? [] : [{ label, names, kinds: machineKinds }, ...target]
  })
  return [...subjects, ...addresses]
}

type Outcome =
  | { result: 'found'; resource: KnownResource }
  | { result: 'several'; candidates: KnownResource[] }
  | { result: 'unknown' | 'elsewhere' }

type ByName = ReadonlyMap<string, readonly KnownResource[]>

/** Null where a name of a service or container is no fact about the alert, such as a `name` that means something else. */
function look(sought: Sought, labels: Labels, byName: ByName): Outcome | null {
  for (const name of sought.names) {
    const meant = (byName.get(name) ?? []).filter(({ kind }) => sought.kinds.includes(kind))
    const fitting = meant.filter(
      (resource) => fits(resource, sought, labels, byName) && fitsDomain(resource, name, sought),
    )
    const things = new Map(fitting.map((resource) => [resource.canonical, resource]))
    const [only] = things.values()
    if (only && things.size === 1) return { result: 'found', resource: only }
    if (things.size > 1) return { result: 'several', candidates: [...things.values()] }
    if (meant.length > 0) return { result: 'elsewhere' }
  }
  return { result: 'unknown' }
}

function fits(resource: KnownResource, { inside }: Sought, labels: Labels, byName: ByName): boolean {
  if (inside === 'cluster') {
    const namespace = labels.exported_namespace ?? labels.namespace
    return isBelow(resource, 'namespace', namespace) && isBelow(resource, 'cluster', labels.cluster)
  }
  if (inside !== 'machine') return true
  const machines = namedMachines(labels, byName)
  return resource.above.some((parent) => machines.has(resourceKey(parent)))
}

/** What has no such parent may be anywhere; what has one is where the alert says. */
function isBelow(resource: KnownResource, kind: InventoryKind, name: string | undefined): boolean {
  if (!name || resource.kind === kind) return true
  const parents = resource.above.filter((parent) => parent.kind === kind)
  return parents.length === 0 || parents.some((parent) => parent.names.includes(name.toLowerCase()))
}

function namedMachines(labels: Labels, byName: ByName): Set<string> {
  const found = [...subjectLabels, ...addressLabels].flatMap((label) =>
    toMachineNames(labels[label] ?? '').flatMap((name) => (byName.get(name) ?? []).filter(isMachine)),
  )
  return new Set(found.map(resourceKey))
}

const isMachine = ({ kind }: KnownResource): boolean => (machineKinds as readonly string[]).includes(kind)

/** `web-1.example.com` is not the `web-1` that is known as `web-1.example.net`. */
function fitsDomain(resource: KnownResource, name: string, { names }: Sought): boolean {
  const [full = ''] = names
  if (name === full || !full.startsWith(`${name}.`) || !isMachine(resource)) return true
  return !resource.names.some((each) => each.startsWith(`${name}.`) && each !== full)
}

/** A service on the machine that bears the name of the job: what the job measures. Jobs that measure machines name none. */
function narrowToService(found: KnownResource, labels: Labels, byName: ByName): KnownResource {
  const job = (labels.job ?? '').toLowerCase()
  if (!isMachine(found) || job === '' || /node|kubelet|cadvisor|windows|blackbox|icmp|ping/.test(job)) return found
  const on = jobNames(labels).flatMap((name) =>
    (byName.get(name) ?? []).filter(
      ({ kind, above }) =>
        (kind === 'service_unit' || kind === 'database' || kind === 'container') &&
        above.some((parent) => resourceKey(parent) === resourceKey(found)),
    ),
  )
  const things = new Map(on.map((resource) => [resource.canonical, resource]))
  const [only] = things.values()
  return only && things.size === 1 ? only : found
}

/** A job and what it measures: `redis` of `redis-exporter`. */
function jobNames({ job = '' }: Labels): string[] {
  return [...new Set(namesOf(job).flatMap((name) => [name, name.replace(/[-_]exporter$/, '')]))]
}

function namesOf(value: string | undefined): string[] {
  const text = value?.trim().toLowerCase() ?? ''
  return text === '' ? [] : [text]
}

/** Addresses that mean the machine that asks, whichever that is. */
const isNowhere = /^(localhost(\..*)?|127\.[\d.]+|::1|0\.0\.0\.0|::|n\/a|none|unknown|-)$/

/** The name of a machine without scheme, path, port and node prefix (`rabbit@mq-1`), then its first part; none of a loopback address. */
export function toMachineNames(value: string): string[] {
  const text = value
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/[/?#].*$/, '')
    .replace(/^.*@/, '')
  const bare = text
    .replace(/^\[([^\]]+)\](?::\d+)?$/, '$1')
    .replace(/^([^:]+):\d+$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
  if (bare === '' || isNowhere.test(bare)) return []
  const isAddress = /^[\d.]+$/.test(bare) || bare.includes(':')
  const first = isAddress ? bare : (bare.split('.')[0] ?? bare)
  return first === bare || first === '' ? [bare] : [bare, first]
}
