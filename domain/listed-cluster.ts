import type { DeclaredRelation, DeclaredResource, RegistrySource, SourceDeclaration } from './declared-resources.ts'
import { sha256 } from './digest.ts'
import type { InventoryKind } from './kinds.ts'
import { type ResourceRef, ref, resourceKey } from './registry.ts'

/** The contents of a cluster as its source lists them, and their conversion to resources. */

/** A workload by its kind (`Deployment`), namespace and name. */
export type ListedWorkload = { kind: string; namespace: string; name: string }

export type ListedCluster = {
  version: string
  /** Other names by which alerts name the cluster. */
  names: readonly string[]
  nodes: readonly { name: string; addresses: readonly string[] }[]
  namespaces: readonly string[]
  workloads: readonly (ListedWorkload & {
    /** Nodes on which the workload's pods run. */
    nodes: readonly string[]
    claims: readonly string[]
  })[]
  claims: readonly { namespace: string; name: string }[]
  services: readonly { namespace: string; name: string; workloads: readonly ListedWorkload[] }[]
  ingresses: readonly { namespace: string; name: string; services: readonly string[] }[]
  /** Pods and their owners, each with its workload. `goneMs`: when the pod or owner was removed. */
  members: readonly ClusterMember[]
}

export type ClusterMember = {
  uid: string
  namespace: string
  name: string
  workload: ListedWorkload
  goneMs: number | null
}

/**
 * The cluster as a source of the registry. This source has authority, because an administrator
 * connected it and it lists only its own resources. Through an address, a node of the cluster is
 * joined to a known machine.
 */
export const clusterSource = (name: string): RegistrySource => ({ name: `kubernetes:${name}`, hasAuthority: true })

const maxIdCharacters = 128

/**
 * Builds the id of a resource in a cluster: the parts of its name joined by colons. An id that is
 * too long is cut, and a hash is added.
 */
export function clusterId(...parts: readonly string[]): string {
  const id = parts.join(':').replace(/[^A-Za-z0-9._:@-]+/g, '-')
  return id.length <= maxIdCharacters ? id : `${id.slice(0, maxIdCharacters - 13)}-${sha256(id).slice(0, 12)}`
}

export const workloadId = (cluster: string, { kind, namespace, name }: ListedWorkload): string =>
  clusterId(cluster, namespace, kind.toLowerCase(), name)

/**
 * The maximum number of nodes on which a workload is declared to run. A workload on more nodes is
 * declared to run on the cluster.
 */
const maxNodes = 50

/**
 * Converts a cluster to resources. `findMachine`: returns the only machine of the registry with an
 * address. A node of the cluster becomes the known node with its address, if there is one. If two
 * nodes have the address of one machine, neither is joined to the machine.
 */
export function clusterToDeclared(
  cluster: string,
  listed: ListedCluster,
  findMachine: (address: string) => ResourceRef | null,
): SourceDeclaration {
  const own = ref('cluster', cluster)
  const nodes = joinNodes(cluster, listed.nodes, findMachine)
  const inNamespace = (namespace: string) => ref('namespace', clusterId(cluster, namespace))
  const named = (kind: InventoryKind, namespace: string, name: string) => ref(kind, clusterId(cluster, namespace, name))
  const ofWorkload = (each: ListedWorkload) => ref('workload', workloadId(cluster, each))
  const resources: DeclaredResource[] = [
    { ...own, kind: 'cluster', name: cluster, aliases: listed.names, attributes: { version: listed.version } },
    ...nodes.map(({ id, name, addresses }) => ({ kind: 'node' as const, id, name, aliases: addresses })),
    ...listed.namespaces.map((name) => ({ kind: 'namespace' as const, id: inNamespace(name).id, name })),
    ...listed.workloads.map((each) => ({
      kind: 'workload' as const,
      id: ofWorkload(each).id,
      name: each.name,
      attributes: { kind: each.kind },
    })),
    ...listed.claims.map(
      ({ namespace, name }) => ({ ...named('volume_claim', namespace, name), name }) as DeclaredResource,
    ),
    ...listed.services.map(
      ({ namespace, name }) => ({ ...named('cluster_service', namespace, name), name }) as DeclaredResource,
    ),
    ...listed.ingresses.map(
      ({ namespace, name }) => ({ ...named('ingress', namespace, name), name }) as DeclaredResource,
    ),
  ]
  const idOfNode = new Map(nodes.map(({ name, id }) => [name, id]))
  const onNode = (name: string) => {
    const id = idOfNode.get(name)
    return id === undefined ? [] : [ref('node', id)]
  }
  const relations: DeclaredRelation[] = [
    ...nodes.map(({ id }) => relate(ref('node', id), 'belongs_to', own)),
    ...nodes.flatMap(({ id, machine }) => (machine ? [relate(ref('node', id), 'runs_on', machine)] : [])),
    ...listed.namespaces.map((name) => relate(inNamespace(name), 'belongs_to', own)),
    ...listed.workloads.flatMap((each) => [
      relate(ofWorkload(each), 'belongs_to', inNamespace(each.namespace)),
      ...each.nodes
        .slice(0, maxNodes)
        .flatMap(onNode)
        .map((node) => relate(ofWorkload(each), 'runs_on', node)),
      ...each.claims.map((claim) =>
        relate(ofWorkload(each), 'depends_on', named('volume_claim', each.namespace, claim)),
      ),
    ]),
    ...listed.claims.map(({ namespace, name }) =>
      relate(named('volume_claim', namespace, name), 'belongs_to', inNamespace(namespace)),
    ),
    ...listed.services.flatMap(({ namespace, name, workloads }) => [
      relate(named('cluster_service', namespace, name), 'belongs_to', inNamespace(namespace)),
      ...workloads.map((each) => relate(named('cluster_service', namespace, name), 'depends_on', ofWorkload(each))),
    ]),
    ...listed.ingresses.flatMap(({ namespace, name, services }) => [
      relate(named('ingress', namespace, name), 'belongs_to', inNamespace(namespace)),
      ...services.map((service) =>
        relate(named('ingress', namespace, name), 'depends_on', named('cluster_service', namespace, service)),
      ),
    ]),
  ]
  const known = new Set(resources.map(({ kind, id }) => resourceKey({ kind, id })))
  // Leaves out relations to a resource that does not exist, because an ingress may name a service
  // that does not exist.
  const isThere = ({ from, to, kind }: DeclaredRelation) =>
    known.has(resourceKey(from)) && (kind !== 'depends_on' || known.has(resourceKey(to)))
  return { resources, relations: relations.filter(isThere) }
}

const relate = (from: ResourceRef, kind: DeclaredRelation['kind'], to: ResourceRef): DeclaredRelation => ({
  from,
  kind,
  to,
})

/**
 * Finds for each node of the cluster its id and its machine. The id is the id of a known node with
 * the node's address, otherwise an id in the cluster. The machine is the guest or host with the
 * node's address.
 */
function joinNodes(
  cluster: string,
  nodes: ListedCluster['nodes'],
  findMachine: (address: string) => ResourceRef | null,
): { id: string; name: string; addresses: string[]; machine: ResourceRef | null }[] {
  const found = nodes.map(({ name, addresses }) => {
    const machines = new Map(
      addresses.flatMap((each) => findMachine(each) ?? []).map((each) => [resourceKey(each), each]),
    )
    const [machine] = machines.values()
    return { name, addresses: [...addresses], machine: machines.size === 1 && machine ? machine : null }
  })
  const claims = new Map<string, number>()
  for (const { machine } of found)
    if (machine) claims.set(resourceKey(machine), (claims.get(resourceKey(machine)) ?? 0) + 1)
  return found.map(({ name, addresses, machine }) => {
    const proven = machine && claims.get(resourceKey(machine)) === 1 ? machine : null
    const isNode = proven?.kind === 'node'
    return { id: isNode ? proven.id : clusterId(cluster, name), name, addresses, machine: isNode ? null : proven }
  })
}
