/**
 * Kinds of resources in the inventory. The file has no zod schemas, so that the web page can import
 * it.
 */
export const inventoryKinds = [
  'region',
  'shard',
  'node',
  'tenant',
  'host',
  'vm',
  'cluster',
  'namespace',
  'workload',
  'volume_claim',
  'cluster_service',
  'ingress',
  'container',
  'service_unit',
  'database',
  'device',
  'target',
] as const
export type InventoryKind = (typeof inventoryKinds)[number]

/**
 * Relations between two resources, read from left to right: a VM `runs_on` a host, a node
 * `belongs_to` a shard. `same_as`: two names of one resource. `linked_to` has no direction.
 */
export const relationKinds = ['belongs_to', 'runs_on', 'depends_on', 'linked_to', 'watches', 'same_as'] as const
export type RelationKind = (typeof relationKinds)[number]

/** Relations in which the left resource needs the right resource. */
export const needingKinds = ['belongs_to', 'runs_on', 'depends_on'] as const satisfies RelationKind[]

/**
 * One step along a relation. `out`: from the left end to the right. `in`: from the right end to the
 * left.
 */
export type RelationStep = { go: 'out' | 'in'; along: RelationKind; to: InventoryKind }

/** Properties of a kind of resource. A new kind needs one entry here. */
type KindDescriptor = {
  plural: string
  /**
   * Kinds to which a resource of this kind may belong, or on which it may run. The parent
   * distinguishes resources of this kind that have one name.
   */
  parents: readonly InventoryKind[]
  /**
   * Labels by which alerts name a resource of this kind, the most precise first, as in
   * `docs/reference/ingest.md`.
   */
  labels: readonly string[]
  /** Seconds for which a read of the resource's state stays valid. */
  freshSeconds: number
  /**
   * Paths to the resources in the vicinity, where reversible writes run automatically. Resources
   * that are on no path do not belong to the vicinity.
   */
  near: readonly (readonly RelationStep[])[]
}

const minuteSeconds = 60

export const kinds: Readonly<Record<InventoryKind, KindDescriptor>> = {
  region: { plural: 'regions', parents: [], labels: ['region'], freshSeconds: 60 * minuteSeconds, near: [] },
  shard: {
    plural: 'shards',
    parents: ['region'],
    labels: ['shard'],
    freshSeconds: minuteSeconds,
    near: [[{ go: 'in', along: 'belongs_to', to: 'node' }], [{ go: 'in', along: 'belongs_to', to: 'tenant' }]],
  },
  node: {
    plural: 'nodes',
    parents: ['shard', 'cluster', 'host', 'vm'],
    labels: ['node'],
    freshSeconds: minuteSeconds,
    near: [
      [{ go: 'out', along: 'belongs_to', to: 'shard' }],
      [
        { go: 'out', along: 'belongs_to', to: 'shard' },
        { go: 'in', along: 'belongs_to', to: 'node' },
      ],
    ],
  },
  tenant: {
    plural: 'tenants',
    parents: ['shard'],
    labels: ['tenant'],
    freshSeconds: minuteSeconds,
    near: [[{ go: 'out', along: 'belongs_to', to: 'shard' }]],
  },
  host: {
    plural: 'hosts',
    parents: ['region'],
    labels: ['host'],
    freshSeconds: minuteSeconds,
    near: [
      [{ go: 'in', along: 'runs_on', to: 'vm' }],
      [{ go: 'out', along: 'linked_to', to: 'host' }],
      [{ go: 'in', along: 'linked_to', to: 'host' }],
    ],
  },
  vm: {
    plural: 'VMs',
    parents: ['host'],
    labels: ['vm', 'vm_name'],
    freshSeconds: minuteSeconds,
    near: [[{ go: 'out', along: 'runs_on', to: 'host' }]],
  },
  cluster: { plural: 'clusters', parents: [], labels: ['cluster'], freshSeconds: 60 * minuteSeconds, near: [] },
  namespace: {
    plural: 'namespaces',
    parents: ['cluster'],
    labels: ['exported_namespace', 'namespace'],
    freshSeconds: 60 * minuteSeconds,
    near: [],
  },
  workload: {
    plural: 'workloads',
    parents: ['namespace', 'cluster'],
    labels: ['deployment', 'statefulset', 'daemonset', 'workload', 'replicaset', 'cronjob', 'job_name'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  volume_claim: {
    plural: 'volume claims',
    parents: ['namespace', 'cluster'],
    labels: ['persistentvolumeclaim'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  // Leaves out the label `service`, because it names the scraped service, which is the service of
  // the exporter.
  cluster_service: {
    plural: 'services of clusters',
    parents: ['namespace', 'cluster'],
    labels: ['exported_service'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  ingress: {
    plural: 'ingresses',
    parents: ['namespace', 'cluster'],
    labels: ['exported_ingress', 'ingress'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  container: {
    plural: 'containers',
    parents: ['node', 'host', 'vm', 'workload'],
    labels: ['container_name'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  service_unit: {
    plural: 'services',
    parents: ['node', 'host', 'vm'],
    labels: ['systemd_unit', 'unit', 'service_name'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  database: {
    plural: 'databases',
    parents: ['service_unit', 'container', 'node', 'host', 'vm'],
    labels: ['datname', 'database', 'schema'],
    freshSeconds: minuteSeconds,
    near: [],
  },
  device: { plural: 'devices', parents: ['node', 'host', 'vm'], labels: [], freshSeconds: minuteSeconds, near: [] },
  target: {
    plural: 'targets',
    parents: ['node', 'host', 'vm', 'service_unit', 'container'],
    labels: [],
    freshSeconds: 5 * minuteSeconds,
    near: [],
  },
}

/** The form of an id. Contains no "/", because an id is a part of a path. */
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/

/** Kinds of machines with an address. Alerts name one by label, host name, FQDN or address. */
export const machineKinds = ['vm', 'node', 'host'] as const satisfies readonly InventoryKind[]

/**
 * Relations with at most one value for a resource of the kind at the left end. For example, a VM
 * runs on one host. Not included: a database has replicas, a service id may stand for several
 * machines, and a machine may be in several clusters.
 */
const functions: Partial<Record<RelationKind, Partial<Record<InventoryKind, readonly InventoryKind[]>>>> = {
  belongs_to: {
    shard: ['region'],
    node: ['shard'],
    tenant: ['shard'],
    host: ['region'],
    namespace: ['cluster'],
    workload: ['namespace'],
    volume_claim: ['namespace'],
    cluster_service: ['namespace'],
    ingress: ['namespace'],
    container: ['workload'],
  },
  runs_on: { vm: ['host'], node: ['host', 'vm'], container: machineKinds, device: machineKinds },
  // Applies from both ends and along chains: a resource is `same_as` at most one node, one VM and
  // one host.
  same_as: Object.fromEntries(inventoryKinds.map((kind) => [kind, machineKinds])),
}

/** Lists the kinds at the right end of a relation of which `from` has at most one. */
export const onceAlong = (from: InventoryKind, relation: RelationKind): readonly InventoryKind[] =>
  functions[relation]?.[from] ?? []

/**
 * Formats the note beside a choice of groups. The choice determines on which resources a write may
 * run automatically.
 */
export const sayVicinity = (of: string, neighbours: number): string =>
  `A reversible write on ${neighbours === 1 ? 'the one neighbour' : `${neighbours} neighbours`} of ${of} may run without asking in an incident about it, if its tool is trusted to act.`

/**
 * Kinds whose state is read through the platform or cluster first, although a command on a device
 * might also work.
 */
const seenFromAbove: readonly InventoryKind[] = [
  ...(['region', 'shard', 'tenant', 'host', 'vm'] as const),
  ...(['cluster', 'namespace', 'volume_claim', 'cluster_service', 'ingress'] as const),
]

/** Kinds for whose incidents the tools on devices are offered first. */
export const onMachines = inventoryKinds.filter((kind) => !seenFromAbove.includes(kind))
/**
 * Kinds of `onMachines` without a database server and a workload in a cluster, which a source reads
 * from inside.
 */
export const outsideSources = onMachines.filter((kind) => kind !== 'database' && kind !== 'workload')

/**
 * The order of kinds for a resource with several names. The name whose kind comes first in this
 * list is the key of the resource for leases and reads.
 */
export const canonicalOrder: readonly InventoryKind[] = [
  'vm',
  'host',
  'node',
  'workload',
  'volume_claim',
  'cluster_service',
  'ingress',
  'container',
  'service_unit',
  'database',
  'shard',
  'tenant',
  'namespace',
  'cluster',
  'region',
  'device',
  'target',
]
