import { type AlertLabels, namingLabels, qualifiedAddresses, qualifiedMachines } from './alert-labels.ts'
import { type InventoryKind, kinds, machineKinds } from './kinds.ts'

/** Names of machines, as labels and the registry write them: without scheme, port or path. */

/** Addresses that mean the local machine, or no machine. */
const isNowhere = /^(localhost(\..*)?|ip6-localhost|127\.[\d.]+|::1|0\.0\.0\.0|::|fe80:.*|n\/a|none|null|unknown|-)$/

/**
 * Lists the names of a machine without scheme, path, port and node prefix (`rabbit@mq-1`): the
 * whole name, its first part, and the part before `@` (`ctl-1@ceph`). Empty for a loopback address,
 * and for a number, which is an id or a count.
 */
export function toMachineNames(value: string): string[] {
  const text = value
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\/(?:[^/@]*@)?/i, '')
    .replace(/[/?#].*$/, '')
  const [, before = '', after = text] = /^(.*)@([^@]*)$/.exec(text) ?? []
  const names = namesOfOne(after)
  return names.length === 0 ? [] : [...new Set([...names, ...namesOfOne(before)])]
}

function namesOfOne(text: string): string[] {
  const bare = toOneAddress(
    text
      .replace(/^\[([^\]]+)\](?::\d+)?$/, '$1')
      .replace(/^([^:]*):\d+$/, '$1')
      .replace(/\.$/, '')
      .toLowerCase(),
  )
  if (bare === '' || isNowhere.test(bare) || /^\d+$/.test(bare)) return []
  const first = isAddress(bare) ? bare : (bare.split('.')[0] ?? bare)
  return first === bare || first === '' ? [bare] : [bare, first]
}

export const isAddress = (text: string): boolean => /^[\d.]+$/.test(text) || text.includes(':')

/**
 * Converts each IPv6 address to one form, and an IPv4 address wrapped in IPv6 to IPv4. A text that
 * is no IPv6 address stays unchanged.
 */
export function toOneAddress(text: string): string {
  const plain = text.replace(/%.*$/, '')
  const wrapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1]
  if (wrapped) return wrapped
  if (!/^[0-9a-f:.]+$/.test(plain) || plain.split(':').length < 3) return text
  const url = URL.parse(`http://[${plain}]`)
  return url ? url.hostname.slice(1, -1) : text
}

/** Domains that only an organization's own resolver knows. */
const isPrivateName = /\.(local|localdomain|lan|internal|intra|intranet|private|home|corp|home\.arpa|test)$/

/**
 * Whether the first part of a full name is the machine's own name. True if the first part has a
 * digit, or if the full name is in a private domain. The `api` of `api.github.com` may be the name
 * of some machine only by chance.
 */
export const isOwnName = (full: string, first: string): boolean => /\d/.test(first) || isPrivateName.test(full)

/** Returns the value of a label as a list with one name. Empty if the value is empty. */
export function namesOf(value: string | undefined): string[] {
  const text = value?.trim().toLowerCase() ?? ''
  return text === '' ? [] : [text]
}

/** A resource that labels may name: possible names and kinds, and conditions for accepting it. */
export type Sought = {
  /** The plain name of the label. */
  label: string
  names: string[]
  kinds: readonly InventoryKind[]
  /**
   * The resource must belong to the cluster or namespace that the alert names (`cluster`), or run
   * on the machine that the alert names (`machine`).
   */
  inside?: 'cluster' | 'machine'
  /**
   * The namespace to which the resource must belong. Undefined stands for the namespace of the
   * alert.
   */
  namespace?: string | undefined
  /** The alert is about exactly this resource. If the resource is unknown, the search ends. */
  isSubject?: boolean
  /**
   * The narrowest resource that the alert names. If this resource is unknown, only the namespace,
   * cluster or region that contains it is tried.
   */
  isNarrowest?: boolean
  /** The name may be public. Its first part may then be the name of a machine by chance. */
  isPublic?: boolean
  /** Accepted only for a machine on which a service has the name of the scrape job. */
  needsService?: boolean
  /**
   * If the machine runs exporters that measure other machines, accepted only if a service of the
   * scrape job runs on this machine.
   */
  sparesExporters?: boolean
  /** Accepted only if the exporter is known to measure machines other than its own. */
  isFromExporter?: boolean
  /**
   * Accepted only for a server that is known by this address. Without an address, the name may
   * belong to an object in the server.
   */
  isServer?: boolean
  /** The label seldom names a resource. An attempt with an unknown name is not reported. */
  isSeldom?: boolean
  /** The resource only contains the subject of the alert: a namespace, a cluster or a region. */
  isHolder?: boolean
}

/**
 * Labels with the machine that an exporter queried, if the exporter queries machines other than its
 * own.
 */
const askedLabels = ['target', 'server', 'addr', 'address', 'server_id', 'url'] as const
/** Labels of a pushed or federated sample, which name the machine that the sample came from. */
const exportedLabels = ['exported_instance', 'exported_node', 'exported_hostname', 'exported_host'] as const
const ownLabels = ['node', 'node_name', 'nodename', 'host_name', 'hostname', 'fqdn', 'host'] as const
const plainLabels: readonly string[] = [...exportedLabels, ...ownLabels]
export const machineLabels = [...exportedLabels, ...askedLabels, ...ownLabels, 'instance'] as const

/**
 * Matches scrape jobs of exporters that measure machines other than their own. `portsOfOthers`
 * matches the default ports of these exporters.
 */
const tellsOfOthers =
  /(?:^|[^a-z])(?:kube-state-metrics|ksm|cloudwatch|yace|stackdriver|azure|vmware|federate?|federation|push|pushed|pushgateway|statsd|graphite|collectd|blackbox|probes?|ping|smokeping|icmp|snmp|junos|ipmi_remote|pve|proxmox|kafka[-_](?:exporter|lag|minion)|burrow|elasticsearch|ceph(?![-_]exporter)|ssl[-_]?exporter)/i
export const measuresOthers = (job: string): boolean => tellsOfOthers.test(job)
/**
 * Exporters that report on a whole cluster. These exporters may run on one of the cluster's
 * machines.
 */
const tellsOfCluster = /kafka|elasticsearch|ceph/i
const portsOfOthers = /:(9091|910[2368]|911[56]|9141|9199|9201|9219|9221|9272|9283|9308|9326|9374|9427)$/
/**
 * Matches alerts about the exporter itself. The subject of such an alert is the machine that the
 * exporter runs on.
 */
const isAboutExporter = /exporter|scrape|reload|target|^(?:instance|endpoint|job|host|node)_?(?:is_?)?down$/i
/**
 * Matches scrape jobs whose exporter measures its own machine, so that the exporter's address names
 * the subject.
 */
export const tellsOfItsMachine =
  /(?:^|[^a-z])(?:nodes?(?![-_.]?(?:js|api|app|red|service|server|web)(?:[^a-z]|$))|nodeexporter|kubelet|cadvisor|windows|netdata|systemd|process(?:es)?|smartctl|zfs)(?:[^a-z]|$)/i
const portsOfItsMachine = /:(9100|9182|9558|9633|19999)$/
/**
 * Matches scrape jobs of web servers. The `host` label of an alert about a web server is the name
 * that a visitor requested.
 */
const servesPages = /nginx|apache|httpd|traefik|caddy|ingress|envoy|php/i
const asksPages = /(?:^|[^a-z])(?:blackbox|probes?|https?|tcp|ssl|tls|certs?|certificates?|icmp|ping|dns)(?:[^a-z]|$)/i

/** Matches labels of a probe, which may name any address on the internet. */
const isOfProbe = /^(?:monitor|probe|check|target|endpoint|site)_/
const isProbe = /(?:^|[^a-z])(?:blackbox|probes?|icmp|ping)(?:[^a-z]|$)/i

/** Whether the exporter runs on the machine that it measures. */
const measuresItsMachine = ({ job = '', instance = '' }: AlertLabels): boolean =>
  job === '' ? portsOfItsMachine.test(instance) : tellsOfItsMachine.test(job)

/**
 * Lists the possible machines of an alert: first the queried machines, then the querying machines,
 * and last the exporter's address if it names the subject or a machine of the measured cluster.
 */
export function listMachine(labels: AlertLabels): Sought[] {
  const job = labels.job ?? ''
  const exported = exportedLabels.flatMap((label) => toSought(label, labels))
  const qualified = qualifiedMachines(labels)
    .filter((label) => !plainLabels.includes(label))
    .flatMap((label) => toSought(label, labels))
  const asked = [...askedLabels, ...qualifiedAddresses(labels)].flatMap((label) => listAsked(label, labels))
  // Skips the node of a pod: if the pod is unknown, the pod's namespace is the subject, unless the
  // alert is about the node.
  const isOfPod = 'namespace' in labels && 'pod' in labels && !measuresItsMachine(labels) && !isAboutMachine(labels)
  const own = ownLabels
    .filter((label) => (label !== 'host' || !servesPages.test(job)) && !(isOfPod && label.startsWith('node')))
    .flatMap((label) => toSought(label, labels))
    // Prefers the qualified label, which names the queried machine. A plain label on the same alert
    // names the querying machine.
    .map((each) => (qualified.length > 0 ? { ...each, sparesExporters: true } : each))
  const subjects = [...exported, ...qualified, ...asked, ...own]
  const last = own.at(-1) ?? exported.at(-1)
  // Ends the search at the last named machine. The exporter's address is the subject only if the
  // exporter measures its own machine.
  if (last && !measuresItsMachine(labels) && 'job' in labels) last.isNarrowest = true
  const sparesExporters = !measuresItsMachine(labels) && !isAboutItself(labels)
  const instance = toSought('instance', labels).map((each) => ({ ...each, sparesExporters }))
  if (isAddressSubject(labels)) return [...subjects, ...instance]
  if (!tellsOfCluster.test(job)) return subjects
  return [...subjects, ...instance.map((each) => ({ ...each, needsService: true }))]
}

/** Whether a label names a machine other than the exporter's. */
export const namesOther = (labels: AlertLabels): boolean =>
  [...exportedLabels, ...askedLabels, ...qualifiedMachines(labels)].some(
    (label) => toMachineNames(labels[label] ?? '').length > 0,
  )

/**
 * Whether the subject may be unknown to the registry: the target of a probe, a machine that an
 * exporter queries, or a machine on which the exporter itself runs.
 */
export const isElsewhere = (labels: AlertLabels): boolean => {
  const { job = '', instance = '' } = labels
  if (isAboutItself(labels)) return false
  if (instance.includes('://') || isProbe.test(job)) return true
  return (asksOthers(labels) && !tellsOfCluster.test(job)) || (job !== '' && tellsOfItsMachine.test(job))
}

/** Lists the subjects of labels whose words do not show that they name a machine. */
export function listNamed(labels: AlertLabels): Sought[] {
  return namingLabels.flatMap(({ label, beside, isFromExporter = false }) => {
    const value = labels[label] ?? ''
    if ((beside !== undefined && !(beside in labels)) || (label === 'source' && value.includes('://'))) return []
    // Skips the label on an alert with a namespace, because the label then names an object in the
    // namespace.
    const isObject = tellsOfItsMachine.test(labels.job ?? '') || 'namespace' in labels || 'exported_namespace' in labels
    if (isFromExporter && isObject) return []
    const more = { isPublic: true, isFromExporter: isFromExporter && !asksOthers(labels) }
    return toSought(label, labels).map((each) => ({ ...each, ...more }))
  })
}

/**
 * Reads the target that an exporter queried. If that target is an unknown address, the exporter's
 * machine is not the subject.
 */
function listAsked(label: string, labels: AlertLabels): Sought[] {
  const value = labels[label] ?? ''
  const isUrl = value.includes('://')
  if (label === 'server_id' && !isUrl) return []
  // Skips the URL to which Prometheus sends its samples, because the URL is no queried target.
  if (label.endsWith('url') && ('remote_name' in labels || !isUrl)) return []
  const isPlain = (askedLabels as readonly string[]).includes(label)
  const isAddress = isUrl || /^[^\s/]+:\d+$|^[\d.]+$|^[^\s/.]+\.[^\s/.]+\.[^\s/]+$/.test(value)
  const isSubject =
    isPlain && ((isAddress && label !== 'url') || asksOthers(labels) || /telegraf/.test(labels.job ?? ''))
  return toSought(label, labels).map((each, at, all) => (at === all.length - 1 ? { ...each, isSubject } : each))
}

const asksOthers = ({ job = '', instance = '' }: AlertLabels): boolean =>
  tellsOfOthers.test(job) || portsOfOthers.test(instance)

const isAboutMachine = ({ alertname = '' }: AlertLabels): boolean => /node|host|machine|kernel|reboot/i.test(alertname)

const isAboutItself = (labels: AlertLabels): boolean => {
  const { alertname = '' } = labels
  if (/exporter/i.test(alertname)) return !namesOther(labels)
  return isAboutExporter.test(alertname) && Object.keys(labels).every((label) => saysNothing.has(label))
}

/**
 * Whether `instance` names the subject. For an exporter that measures other machines, true in three
 * cases: the alert is about the exporter; `instance` is the queried target (of a probe whose
 * exporter's address is not on the alert); or the target is the exporter's own machine.
 */
function isAddressSubject(labels: AlertLabels): boolean {
  const { job = '', instance = '' } = labels
  if (!asksOthers(labels)) return true
  const isAsked = !portsOfOthers.test(instance) && /blackbox|probe|ping|icmp|snmp|junos|ipmi|pve|proxmox|ssl/i.test(job)
  if (isAsked || bearsNameOf(job, instance)) return true
  if ([...askedLabels, 'host'].some((label) => labels[label] && toMachineNames(labels[label]).length === 0)) return true
  return isAboutItself(labels)
}

/**
 * Whether the instance and the scrape job begin with the same word: `kafka-2` and `kafka-exporter`.
 * The exporter then runs on a machine of the cluster that it measures.
 */
function bearsNameOf(job: string, instance: string): boolean {
  const [word = ''] = /^[a-z]+/.exec(instance.toLowerCase()) ?? []
  const [subject = ''] = /^[a-z]+/.exec(job.toLowerCase()) ?? []
  if (word.length < 2 || subject.length < 2) return false
  return subject.startsWith(word) || word.startsWith(subject) || (word === 'es' && /search/.test(subject))
}

/** Labels that every scrape target has, so that these labels do not name the subject. */
export const saysNothing: ReadonlySet<string> = new Set(
  'alertname alertgroup job instance severity priority team env environment region dc datacenter site zone cluster prometheus replica prometheus_replica monitor receiver service namespace pod container endpoint scheme metrics_path incident_type'.split(
    ' ',
  ),
)

function toSought(label: string, labels: AlertLabels): Sought[] {
  const value = labels[label] ?? ''
  const names = toMachineNames(value)
  const preferred = (['host', 'node'] as const).find((kind) => kinds[kind].labels.includes(label))
  const isPublic = isPublicName(label, labels)
  const machine: Sought = { label, names, kinds: [...machineKinds, 'device'], isPublic }
  // Tries an address with its port as a scrape target too, because the address may belong to no
  // machine.
  const target: Sought = { label, names: namesOf(value), kinds: ['target'] }
  if (names.length === 0) return []
  if (isAddressLabel(label)) return [machine, target]
  return preferred ? [{ label, names, kinds: [preferred] }, machine] : [machine]
}

const isAddressLabel = (label: string): boolean =>
  label === 'instance' ||
  (askedLabels as readonly string[]).includes(label) ||
  qualifiedAddresses({ [label]: '' }).length > 0

/**
 * Whether a name may be public: a queried target, an address with a scheme, a web port, or a name
 * without a port if no exporter on the named machine measures this machine. A scraped
 * `api.osl.example.com:9100` belongs to the installation.
 */
function isPublicName(label: string, labels: AlertLabels): boolean {
  const [value, job] = [labels[label] ?? '', labels.job ?? '']
  if (!isAddressLabel(label)) return isOfProbe.test(label)
  if (label !== 'instance' || value.includes('://') || /:(80|443)$/.test(value)) return true
  return asksPages.test(job) || !(/:\d+$/.test(value) || tellsOfItsMachine.test(job))
}
