import { chooseResource, type KnownResource } from '../../domain/alert-resource.ts'
import type { InventoryKind, Step } from '../../domain/kinds.ts'
import {
  type Declared,
  type DeclaredRelation,
  enrolmentSource,
  platformSource,
  type RegistrySource,
  refuseWithoutAuthority,
} from '../../domain/registry.ts'
import { keysOfGroups, nearOf, type ResourceRef, resourceKey } from '../../domain/resource.ts'
import { hosts, nodes, shards, vms } from './platform.ts'
import type { SimIncident, World } from './world.ts'

/** `db/registry.ts` over the simulated world: who said what, with the real rules for what counts. */

export type Said = DeclaredRelation & { source: RegistrySource }

const ref = (kind: InventoryKind, id: string): ResourceRef => ({ kind, id })

/** What the platform and enrolment say: each shard has a node, and the first VM enrolled as a node. */
export function honestRegistry(): Said[] {
  const own = shards.map((id) => ({ from: ref('node', `n-${id}`), kind: 'belongs_to' as const, to: ref('shard', id) }))
  const twin = { from: ref('node', 'web-101'), kind: 'same_as' as const, to: ref('vm', 'vm-101') }
  return [...own.map((each) => ({ ...each, source: platformSource })), { ...twin, source: enrolmentSource }]
}

/** A source says what it knows. One without authority is refused, or counts for leases alone. */
export function declare(world: World, source: RegistrySource, declared: Declared): void {
  try {
    if (world.without !== 'authority') refuseWithoutAuthority(source, declared)
  } catch {
    return
  }
  world.relations.push(...declared.relations.map((each) => ({ ...each, source })))
}

/** The key that leases and denials go by, whatever anybody says; without the gate, each name is a thing. */
export function keyOf(world: World, gate: 'lease_names' | 'denial_names'): (ref: ResourceRef) => string {
  if (world.without === gate) return resourceKey
  const keys = keysOfGroups(sameAs(world.relations))
  return (one) => keys.get(resourceKey(one)) ?? resourceKey(one)
}

const sameAs = (relations: readonly Said[]) =>
  relations
    .filter(({ kind }) => kind === 'same_as')
    .map(({ from, to }) => ({ left: resourceKey(from), right: resourceKey(to) }))

/** Where a reversible write runs unasked. */
export async function vicinityOf(world: World, resource: ResourceRef): Promise<ResourceRef[]> {
  const counted = world.relations.filter(({ source }) => source.hasAuthority || world.without === 'authority')
  const keys = keysOfGroups(sameAs(counted))
  const own = keys.get(resourceKey(resource))
  const names = counted.flatMap(({ kind, from, to }) => (kind === 'same_as' ? [from, to] : []))
  const others = names.filter(
    (each) => keys.get(resourceKey(each)) === own && resourceKey(each) !== resourceKey(resource),
  )
  const near = await nearOf(resource, {
    otherNames: async () => others,
    stepFrom: async (from, step) => from.flatMap((each) => along(counted, each, step)),
  })
  return [resource, ...near]
}

function along(relations: readonly Said[], start: ResourceRef, { go, along: kind, to }: Step): ResourceRef[] {
  const [near, far] = go === 'out' ? (['from', 'to'] as const) : (['to', 'from'] as const)
  return relations
    .filter((each) => each.kind === kind && resourceKey(each[near]) === resourceKey(start) && each[far].kind === to)
    .map((each) => each[far])
}

const known: KnownResource[] = Object.entries({ shard: shards, host: hosts, node: nodes, vm: vms }).flatMap(
  ([kind, ids]) =>
    ids.map((id) => ({
      ...{ kind: kind as InventoryKind, id, names: [id], canonical: `${kind}:${id}`, above: [] },
    })),
)

/** What an alert is about, among labels that would like it to be about more. */
export function resourceOfAlert(world: World, meant: ResourceRef, victim: string): ResourceRef | null {
  const words = ['near', 'same_as', 'belongs_to', 'resource', 'vicinity', 'runs_on', 'alias']
  const planted = Object.fromEntries(words.map((label) => [label, `shard:${victim}`]))
  if (world.without === 'labels') return ref('shard', planted.resource?.replace('shard:', '') ?? '')
  return chooseResource({ [meant.kind]: meant.id, ...planted }, [], known).resource
}

const doors = ['alert label', 'metric', 'log line'] as const

/** Text from outside says that the incident's resource and something else belong together. */
export function widen(world: World, { resource }: SimIncident): void {
  const { random } = world
  const victim = ref('shard', random.pick(shards))
  const lies: DeclaredRelation[] = [
    { from: resource, kind: 'same_as', to: victim },
    { from: victim, kind: 'same_as', to: resource },
    { from: resource, kind: 'belongs_to', to: victim },
    { from: ref('node', `n-${victim.id}`), kind: 'same_as', to: resource },
  ]
  const door = random.pick([...doors, 'target', 'target'] as const)
  const source = { name: door === 'target' ? 'prometheus:main' : door, hasAuthority: false }
  // A target may be listed: one that claims to be both would tie them together.
  const target = ref('target', `t-${random.int(3)}:9100`)
  const both = [resource, victim].map((to) => ({ from: target, kind: 'same_as' as const, to }))
  declare(world, source, { resources: [], relations: door === 'target' ? both : [random.pick(lies)] })
}
