import { type AlertLabels, namingLabels, qualifiedAddresses, qualifiedMachines } from './alert-labels.ts'
import { type InventoryKind, kinds, machineKinds } from './kinds.ts'

/** Names of machines, in labels' and the registry's forms: no scheme, port or path. */

/** Addresses that mean the machine that asks, or none. */
const isNowhere = /^(localhost(\..*)?|ip6-localhost|127\.[\d.]+|::1|0\.0\.0\.0|::|fe80:.*|n\/a|none|null|unknown|-)$/

/**
 * Names of a machine without scheme, path, port and node prefix (`rabbit@mq-1`): whole, its first
 * part, and what stands before the sign (`ctl-1@ceph`). None for a loopback address or a number:
 * beside a machine a number is an id or a count.
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

/** One form for each IPv6 address, and for an IPv4 wrapped in one. Other texts stay as they are. */
export function toOneAddress(text: string): string {
  const plain = text.replace(/%.*$/, '')
  const wrapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1]
  if (wrapped) return wrapped
  if (!/^[0-9a-f:.]+$/.test(plain) || plain.split(':').length < 3) return text
  const url = URL.parse(`http://[${plain}]`)
  return url ? url.hostname.slice(1, -1) : text
}

/** Names that only a site's own resolver knows. */
const isPrivateName = /\.(local|localdomain|lan|internal|intra|intranet|private|home|corp|home\.arpa|test)$/

/**
 * Whether the first part of a full name is that machine's name. `api` of `api.github.com` may be
 * some machine's name by chance; a numbered name, or one under a private domain, is meant.
 */
export const isOwnName = (full: string, first: string): boolean => /\d/.test(first) || isPrivateName.test(full)

/** A label's value as the one name that it is; none where it says nothing. */
export function namesOf(value: string | undefined): string[] {
  const text = value?.trim().toLowerCase() ?? ''
  return text === '' ? [] : [text]
}

/** One thing that labels may name: its name there, its possible kinds, and what must fit. */
export type Sought = {
  /** By its plain name. */
  label: string
  names: string[]
  kinds: readonly InventoryKind[]
  /** Belongs to this namespace or cluster, or runs on this machine, where the alert names one. */
  inside?: 'cluster' | 'machine'
  /** The namespace that it has to belong to; without one that of the alert. */
  namespace?: string | undefined
  /** The alert is about this and nothing wider: where it is not known, nothing else is tried. */
  isSubject?: boolean
  /** Nothing narrower follows: where it is not known, only what holds it is tried. */
  isNarrowest?: boolean
  /** A public name of a page or port: a machine may bear its first part by chance. */
  isPublic?: boolean
  /** It counts only where a service runs on it that bears the name of the job. */
  needsService?: boolean
  /** A machine that runs exporters measures others: it is the subject only of what runs on it. */
  sparesExporters?: boolean
  /** It counts only where what told it is known to tell of others. */
  isFromExporter?: boolean
  /**
   * Counts only for a server at this address, where one of its names is an address: its other names
   * are those of what it holds.
   */
  isServer?: boolean
  /** Seldom what the label means: where nothing has that name, it is not told as tried. */
  isSeldom?: boolean
  /** It only holds what the alert is about. */
  isHolder?: boolean
}

/** Labels that an exporter sets for the machine it asked, when it asks others. */
const askedLabels = ['target', 'server', 'addr', 'address', 'server_id', 'url'] as const
/** Labels of a pushed or federated sample, which name the machine that the sample came from. */
const exportedLabels = ['exported_instance', 'exported_node', 'exported_hostname', 'exported_host'] as const
const ownLabels = ['node', 'node_name', 'nodename', 'host_name', 'hostname', 'fqdn', 'host'] as const
const plainLabels: readonly string[] = [...exportedLabels, ...ownLabels]
export const machineLabels = [...exportedLabels, ...askedLabels, ...ownLabels, 'instance'] as const

/** Exporters that tell of other machines than theirs, by job and by default port. */
const tellsOfOthers =
  /(?:^|[^a-z])(?:kube-state-metrics|ksm|cloudwatch|yace|stackdriver|azure|vmware|federate?|federation|push|pushed|pushgateway|statsd|graphite|collectd|blackbox|probes?|ping|smokeping|icmp|snmp|junos|ipmi_remote|pve|proxmox|kafka[-_](?:exporter|lag|minion)|burrow|elasticsearch|ceph(?![-_]exporter)|ssl[-_]?exporter)/i
export const measuresOthers = (job: string): boolean => tellsOfOthers.test(job)
/** Exporters of a whole cluster, which may run on one of its machines. */
const tellsOfCluster = /kafka|elasticsearch|ceph/i
const portsOfOthers = /:(9091|910[2368]|911[56]|9141|9199|9201|9219|9221|9272|9283|9308|9326|9374|9427)$/
/** An alert about the exporter itself is about where it runs. */
const isAboutExporter = /exporter|scrape|reload|target|^(?:instance|endpoint|job|host|node)_?(?:is_?)?down$/i
/** Jobs whose exporter tells of the machine it runs on, so that its address names the subject. */
export const tellsOfItsMachine =
  /(?:^|[^a-z])(?:nodes?(?![-_.]?(?:js|api|app|red|service|server|web)(?:[^a-z]|$))|nodeexporter|kubelet|cadvisor|windows|netdata|systemd|process(?:es)?|smartctl|zfs)(?:[^a-z]|$)/i
const portsOfItsMachine = /:(9100|9182|9558|9633|19999)$/
/** Servers of pages: their `host` is the name that a visitor asked for. */
const servesPages = /nginx|apache|httpd|traefik|caddy|ingress|envoy|php/i
const asksPages = /(?:^|[^a-z])(?:blackbox|probes?|https?|tcp|ssl|tls|certs?|certificates?|icmp|ping|dns)(?:[^a-z]|$)/i

/** A name that a probe was given is one of the whole world. */
const isOfProbe = /^(?:monitor|probe|check|target|endpoint|site)_/
const isProbe = /(?:^|[^a-z])(?:blackbox|probes?|icmp|ping)(?:[^a-z]|$)/i

/** Whether the address of what told it is that of the machine which it measures. */
const measuresItsMachine = ({ job = '', instance = '' }: AlertLabels): boolean =>
  job === '' ? portsOfItsMachine.test(instance) : tellsOfItsMachine.test(job)

/**
 * Takes what was asked before what asks, and the exporter's address last, if it measures its own
 * machine.
 */
export function listMachine(labels: AlertLabels): Sought[] {
  const job = labels.job ?? ''
  const exported = exportedLabels.flatMap((label) => toSought(label, labels))
  const qualified = qualifiedMachines(labels)
    .filter((label) => !plainLabels.includes(label))
    .flatMap((label) => toSought(label, labels))
  const asked = [...askedLabels, ...qualifiedAddresses(labels)].flatMap((label) => listAsked(label, labels))
  // A pod that is not known stands for its namespace, not for its node, unless the alert is about
  // the node.
  const isOfPod = 'namespace' in labels && 'pod' in labels && !measuresItsMachine(labels) && !isAboutMachine(labels)
  const own = ownLabels
    .filter((label) => (label !== 'host' || !servesPages.test(job)) && !(isOfPod && label.startsWith('node')))
    .flatMap((label) => toSought(label, labels))
    // A qualified label names what was asked; the plain one beside it, where it was asked from.
    .map((each) => (qualified.length > 0 ? { ...each, sparesExporters: true } : each))
  const subjects = [...exported, ...qualified, ...asked, ...own]
  const last = own.at(-1) ?? exported.at(-1)
  // The exporter's address is the subject's only where an exporter measures its own machine.
  if (last && !measuresItsMachine(labels) && 'job' in labels) last.isNarrowest = true
  const sparesExporters = !measuresItsMachine(labels) && !isAboutItself(labels)
  const instance = toSought('instance', labels).map((each) => ({ ...each, sparesExporters }))
  if (isAddressSubject(labels)) return [...subjects, ...instance]
  if (!tellsOfCluster.test(job)) return subjects
  return [...subjects, ...instance.map((each) => ({ ...each, needsService: true }))]
}

/** Whether a label names another machine than the one that the exporter runs on. */
export const namesOther = (labels: AlertLabels): boolean =>
  [...exportedLabels, ...askedLabels, ...qualifiedMachines(labels)].some(
    (label) => toMachineNames(labels[label] ?? '').length > 0,
  )

/** Whether nothing known holds the subject: a probe's target, a machine measured from within. */
export const isElsewhere = (labels: AlertLabels): boolean => {
  const { job = '', instance = '' } = labels
  if (isAboutItself(labels)) return false
  if (instance.includes('://') || isProbe.test(job)) return true
  return (asksOthers(labels) && !tellsOfCluster.test(job)) || (job !== '' && tellsOfItsMachine.test(job))
}

/** What labels name whose words do not say that they name a machine. */
export function listNamed(labels: AlertLabels): Sought[] {
  return namingLabels.flatMap(({ label, beside, isFromExporter = false }) => {
    const value = labels[label] ?? ''
    if ((beside !== undefined && !(beside in labels)) || (label === 'source' && value.includes('://'))) return []
    // In a namespace a name is that of an object there.
    const isObject = tellsOfItsMachine.test(labels.job ?? '') || 'namespace' in labels || 'exported_namespace' in labels
    if (isFromExporter && isObject) return []
    const more = { isPublic: true, isFromExporter: isFromExporter && !asksOthers(labels) }
    return toSought(label, labels).map((each) => ({ ...each, ...more }))
  })
}

/**
 * A target that an exporter asked. Where it is an unknown address, the exporter's machine is not
 * the subject.
 */
function listAsked(label: string, labels: AlertLabels): Sought[] {
  const value = labels[label] ?? ''
  const isUrl = value.includes('://')
  if (label === 'server_id' && !isUrl) return []
  // Where Prometheus sends its samples to is not what it asked.
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
 * Whether `instance` names the subject. With an exporter of others it does where the alert is about
 * the exporter, where the instance is what was asked (a probe without its exporter's address), or
 * where the target is said to be the exporter's own machine.
 */
function isAddressSubject(labels: AlertLabels): boolean {
  const { job = '', instance = '' } = labels
  if (!asksOthers(labels)) return true
  const isAsked = !portsOfOthers.test(instance) && /blackbox|probe|ping|icmp|snmp|junos|ipmi|pve|proxmox|ssl/i.test(job)
  if (isAsked || bearsNameOf(job, instance)) return true
  if ([...askedLabels, 'host'].some((label) => labels[label] && toMachineNames(labels[label]).length === 0)) return true
  return isAboutItself(labels)
}

/** `kafka-2` for the job `kafka-exporter`: an exporter that runs on a machine of its cluster. */
function bearsNameOf(job: string, instance: string): boolean {
  const [word = ''] = /^[a-z]+/.exec(instance.toLowerCase()) ?? []
  const [subject = ''] = /^[a-z]+/.exec(job.toLowerCase()) ?? []
  if (word.length < 2 || subject.length < 2) return false
  return subject.startsWith(word) || word.startsWith(subject) || (word === 'es' && /search/.test(subject))
}

/** Labels that any target has, whatever it tells of. */
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
  // An address that is no machine is tried as a target as well, with its port.
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
 * Whether a name may belong to the whole world: a target, an address with a scheme, a port of
 * pages, or a name without a port that nothing measures from within. `api.osl.example.com:9100`, as
 * scraped, is the site's.
 */
function isPublicName(label: string, labels: AlertLabels): boolean {
  const [value, job] = [labels[label] ?? '', labels.job ?? '']
  if (!isAddressLabel(label)) return isOfProbe.test(label)
  if (label !== 'instance' || value.includes('://') || /:(80|443)$/.test(value)) return true
  return asksPages.test(job) || !(/:\d+$/.test(value) || tellsOfItsMachine.test(job))
}
