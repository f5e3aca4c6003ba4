/** What the inventory knows. This file holds plain words: the page imports it without a parser. */
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
 * A relation between two resources, read from left to right: a VM `runs_on` a host, a node
 * `belongs_to` a shard. `same_as`: two names of one thing. `linked_to`: no direction.
 */
export const relationKinds = ['belongs_to', 'runs_on', 'depends_on', 'linked_to', 'watches', 'same_as'] as const
export type RelationKind = (typeof relationKinds)[number]

/** The relations whose left end cannot do without the right one. */
export const needingKinds = ['belongs_to', 'runs_on', 'depends_on'] as const satisfies RelationKind[]

/** One step along a relation: `out` from its left end to its right one, `in` the other way. */
export type RelationStep = { go: 'out' | 'in'; along: RelationKind; to: InventoryKind }

/** What shared code knows of a kind. A new kind is one entry here. */
type KindDescriptor = {
  plural: string
  /** What it may belong to or run on. It distinguishes several things with one name. */
  parents: readonly InventoryKind[]
  /** Labels by which alerts name it, most precise first, as in `docs/reference/ingest.md`. */
  labels: readonly string[]
  /** An answer about its state is good for this long. */
  freshSeconds: number
  /** Its vicinity: a reversible write there runs unasked, so only what belongs together is near. */
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
  // A label `service` names the one that is scraped, which is the exporter's.
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

/** What an inventory may be asked to hold as an id: no "/", since an id is a part of a path. */
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/

/** Things with an address: an alert names them by label, host name, FQDN or address. */
export const machineKinds = ['vm', 'node', 'host'] as const satisfies readonly InventoryKind[]

/**
 * Relations with one value, by the kind on the left: a VM is on one host. Not here: a database has
 * replicas, one service id may stand for several machines, a machine may be in clusters of several
 * systems.
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
  // Read from both ends and along chains: of one thing there is one node, one VM and one host.
  same_as: Object.fromEntries(inventoryKinds.map((kind) => [kind, machineKinds])),
}

/** The kinds of which something of this kind has one at most along a relation. */
export const onceAlong = (from: InventoryKind, relation: RelationKind): readonly InventoryKind[] =>
  functions[relation]?.[from] ?? []

/** What stands beside a choice of groups: it is a choice of authority. */
export const sayVicinity = (of: string, neighbours: number): string =>
  `A reversible write on ${neighbours === 1 ? 'the one neighbour' : `${neighbours} neighbours`} of ${of} may run unasked in an incident about it, where its tool is trusted to act.`

/**
 * Kinds that are looked at through platform or cluster first, where a device's command would do to
 * begin with.
 */
const seenFromAbove: readonly InventoryKind[] = [
  ...(['region', 'shard', 'tenant', 'host', 'vm'] as const),
  ...(['cluster', 'namespace', 'volume_claim', 'cluster_service', 'ingress'] as const),
]

/** Kinds that tools on devices look at first. */
export const onMachines = inventoryKinds.filter((kind) => !seenFromAbove.includes(kind))
/** The same without kinds of which a source sees the inside: a database server, a cluster. */
export const outsideSources = onMachines.filter((kind) => kind !== 'database' && kind !== 'workload')

/** The kind of two names that stands first here keys the thing for leases and looks. */
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
