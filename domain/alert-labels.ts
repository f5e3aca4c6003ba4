/**
 * Interprets the names of labels. Senders choose the names, but put the words of a label in the
 * same order: `vcenter.host.name`, `Hostname` and `agent_hostname` name a host. `secret_namespace`
 * names a namespace, but not the namespace of the sender.
 */

export type AlertLabels = Readonly<Record<string, string>>

const ofKubernetes =
  /^(?:k8s|kubernetes)_(pod|namespace|ns|node|container|cluster|deployment|statefulset|daemonset|replicaset|cronjob|job)(?:_name)?$/
/**
 * Kinds of resources whose OpenTelemetry label (`k8s.pod.name`) takes precedence over the label of
 * the scrape target (`pod`).
 */
const saidByItself = ['pod', 'namespace', 'node', 'container']

/**
 * Normalizes the name of a label: lower case, `_` between words, and the plain name instead of the
 * name in OpenTelemetry.
 */
export function toPlainLabel(label: string): string {
  const plain = label.toLowerCase().replace(/[^a-z0-9]+/g, '_')
  const object = ofKubernetes.exec(plain)?.[1]?.replace(/^ns$/, 'namespace').replace(/^job$/, 'job_name')
  if (object === undefined) return plain
  return saidByItself.includes(object) ? `exported_${object}` : object
}

/**
 * Maps labels to their plain names. If two labels have the same plain name, the label that is
 * spelled like the plain name wins.
 */
export function toPlainLabels(labels: AlertLabels): { plain: AlertLabels; written: ReadonlyMap<string, string> } {
  const written = new Map<string, string>()
  for (const label of Object.keys(labels).sort()) {
    const name = toPlainLabel(label)
    if (labels[label]?.trim() && (label === name || !written.has(name))) written.set(name, label)
  }
  return { plain: Object.fromEntries([...written].map(([name, label]) => [name, labels[label] as string])), written }
}

/**
 * Words before the last word of a label's name. They show that the label names a machine that is
 * not the subject: the master of a replica, a peer, or a server that the subject uses.
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
/**
 * Last words of labels that name a cluster. Labels such as `kafka_cluster` are left out: they name
 * the cluster of a program, which may differ from the cluster of the program's machines.
 */
const endsInCluster = /^cluster$|(?:^|_)cluster_name$/
const endsInGuest = /^vmname$|_(?:vm|vm_name)$/
/** Labels for the namespace of the alert's subject, as opposed to the namespace of the exporter. */
const isOfSubject = /^(?:exported|secret|dest|destination|target|pvc|claim|object|involved_object)_namespace$/

/**
 * Lists, in alphabetical order, labels whose name matches `ends` and that name no machine other
 * than the subject's.
 */
const labelsThat = (labels: AlertLabels, ends: RegExp): string[] =>
  Object.keys(labels)
    .filter((name) => ends.test(name) && !saysOther(name))
    .sort()

export const qualifiedMachines = (labels: AlertLabels): string[] => {
  // Accepts `zk_host` only if the scrape job measures ZooKeeper itself. Otherwise `zk_host` names a
  // server that the subject uses.
  const isOfZookeeper = /zk|zookeeper/i.test(labels.job ?? '')
  return labelsThat(labels, endsInMachine).filter((name) => isOfZookeeper || name !== 'zk_host')
}
export const qualifiedAddresses = (labels: AlertLabels): string[] => labelsThat(labels, endsInAsked)
export const qualifiedGuests = (labels: AlertLabels): string[] => labelsThat(labels, endsInGuest)
export const clusterLabels = (labels: AlertLabels): string[] => labelsThat(labels, endsInCluster)

/** Returns the label with the subject's namespace, `exported_namespace` first. */
export const subjectNamespace = (labels: AlertLabels): string | undefined =>
  Object.keys(labels)
    .filter((name) => isOfSubject.test(name))
    .sort((a, b) => Number(b.startsWith('exported')) - Number(a.startsWith('exported')) || (a < b ? -1 : 1))[0]

/**
 * A label that names a machine although its words do not show this. `source`: where this use of the
 * label is documented.
 */
type NamingLabel = {
  label: string
  source: string
  /** Another label that must be on the alert too. */
  beside?: string
  /**
   * Used only if the exporter measures machines other than its own. Otherwise the label names a
   * container, unit or sensor.
   */
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
