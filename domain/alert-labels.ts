/**
 * The meaning of a label's name. A sender sets the labels it likes, and still puts their words
 * together alike: `vcenter.host.name`, `Hostname` and `agent_hostname` end in a host;
 * `secret_namespace` is a namespace, though not the sender's.
 */

export type AlertLabels = Readonly<Record<string, string>>

const ofKubernetes =
  /^(?:k8s|kubernetes)_(pod|namespace|ns|node|container|cluster|deployment|statefulset|daemonset|replicaset|cronjob|job)(?:_name)?$/
/** An object's own words go before a scrape's words on its target: `k8s.pod.name` before `pod`. */
const saidByItself = ['pod', 'namespace', 'node', 'container']

/**
 * A label's name as it is compared: small letters, one sign between words, OpenTelemetry's names as
 * the plain ones.
 */
export function toPlainLabel(label: string): string {
  const plain = label.toLowerCase().replace(/[^a-z0-9]+/g, '_')
  const object = ofKubernetes.exec(plain)?.[1]?.replace(/^ns$/, 'namespace').replace(/^job$/, 'job_name')
  if (object === undefined) return plain
  return saidByItself.includes(object) ? `exported_${object}` : object
}

/** Labels by their plain names, each with its spelling. The plain spelling of two counts. */
export function toPlainLabels(labels: AlertLabels): { plain: AlertLabels; written: ReadonlyMap<string, string> } {
  const written = new Map<string, string>()
  for (const label of Object.keys(labels).sort()) {
    const name = toPlainLabel(label)
    if (labels[label]?.trim() && (label === name || !written.has(name))) written.set(name, label)
  }
  return { plain: Object.fromEntries([...written].map(([name, label]) => [name, labels[label] as string])), written }
}

/**
 * Words before the last one that name somebody else: a replica's master, a peer, a server that is
 * used.
 */
const isOfOthers = new RegExp(
  `(?:^|_)(?:${[
    'master|leader|primary|peer|neighbou?r|next_?hop|gateway|remote|client|upstream|source|src|from|to|dest|destination|dst',
    'controller|alertmanager|prometheus|proxy|previous|old|db|database|redis|cache|mail|smtp|ldap|dns|ntp|nfs|log|syslog|backup|broker',
  ].join('|')})_`,
)
export const saysOther = (label: string): boolean => isOfOthers.test(label)
const endsInMachine = /(?:_|^esx|^guest)(?:host|hostname|host_name|node|node_name|nodename|fqdn|instance)$/
const endsInAsked = /_(?:target|server|addr|address|url)$/
/** `kafka_cluster` and the like are one program's, and may bear a machine cluster's name. */
const endsInCluster = /^cluster$|(?:^|_)cluster_name$/
const endsInGuest = /^vmname$|_(?:vm|vm_name)$/
/** Namespaces of the subject, beside that of what tells. */
const isOfSubject = /^(?:exported|secret|dest|destination|target|pvc|claim|object|involved_object)_namespace$/

/**
 * Labels that name a machine or an address, each with a word before it that says of what; in a
 * fixed order.
 */
const labelsThat = (labels: AlertLabels, ends: RegExp): string[] =>
  Object.keys(labels)
    .filter((name) => ends.test(name) && !saysOther(name))
    .sort()

export const qualifiedMachines = (labels: AlertLabels): string[] => {
  // An address where ZooKeeper is asked is the subject; one where it was asked about others is not.
  const isOfZookeeper = /zk|zookeeper/i.test(labels.job ?? '')
  return labelsThat(labels, endsInMachine).filter((name) => isOfZookeeper || name !== 'zk_host')
}
export const qualifiedAddresses = (labels: AlertLabels): string[] => labelsThat(labels, endsInAsked)
export const qualifiedGuests = (labels: AlertLabels): string[] => labelsThat(labels, endsInGuest)
export const clusterLabels = (labels: AlertLabels): string[] => labelsThat(labels, endsInCluster)

/** The label that says whose namespace it is, where one does: `exported_namespace` first. */
export const subjectNamespace = (labels: AlertLabels): string | undefined =>
  Object.keys(labels)
    .filter((name) => isOfSubject.test(name))
    .sort((a, b) => Number(b.startsWith('exported')) - Number(a.startsWith('exported')) || (a < b ? -1 : 1))[0]

/** Labels that name a machine without a word for it: one fact a sender, with its source. */
type NamingLabel = {
  label: string
  source: string
  /** It counts only beside this label. */
  beside?: string
  /** Counts only where the sender tells of others: else it is a container, unit or sensor. */
  isFromExporter?: true
}

export const namingLabels: readonly NamingLabel[] = [
  { label: 'member_idx', source: 'percona/mongodb_exporter, members of a replica set' },
  { label: 'service_name', beside: 'service_type', source: 'percona/pmm managed/data/alerting-templates' },
  { label: 'ups', source: 'DRuggeri/nut_exporter, mdlayher/apcupsd_exporter' },
  { label: 'sysname', source: 'prometheus/snmp_exporter, SNMPv2-MIB::sysName' },
  { label: 'routerboard_name', source: 'akpw/mktxp README.md' },
  { label: 'device_name', source: 'unpoller/unpoller pkg/promunifi/pdu.go' },
  { label: 'source', source: 'openconfig/gnmic docs/user_guide/outputs/prometheus_output.md' },
  { label: 'name', isFromExporter: true, source: 'unpoller/unpoller, openstack-exporter exporters/ironic.go' },
]
