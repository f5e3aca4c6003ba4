import { formatCount } from '../domain/format.ts'
import { type InventoryKind, inventoryKinds, kinds } from '../domain/kinds.ts'

/** What a site has, as far as the prompt says it: counts of the registry, and the names of what an operator connected. Plain data. */
export type SiteFacts = {
  /** Resources that a source lists, by kind. */
  counts: Partial<Record<InventoryKind, number>>
  /** Of the shards: how many hold databases. */
  databaseShards: number
  racks: number
  sources: readonly { name: string; kind: string }[]
  jobs: readonly string[]
  devices: number
}

export const noFacts: SiteFacts = { counts: {}, databaseShards: 0, racks: 0, sources: [], jobs: [], devices: 0 }

/** Names of what an operator connected: the first so many, and how many more there are. */
const mostNames = 8
/** Longer, and a name would be a text. Both kinds of name are held to less where they are declared. */
const mostNameCharacters = 40

/** Database shards with their pairs; shards that serve tenants; else a shard is only the name of a group of nodes. */
const hasTenants = ({ counts }: SiteFacts) => (counts.tenant ?? 0) > 0

/** What the lines of `system.md` may be about at this site, besides kinds: `{replication} …`. */
export function siteTopics(facts: SiteFacts): string[] {
  const shards = facts.databaseShards > 0 || hasTenants(facts)
  return [...(facts.databaseShards > 0 ? ['replication'] : []), ...(shards ? ['shards'] : [])]
}

/**
 * The platform of a site in a few lines: what there is and how many, what hangs together how, where one can read, what can be run. Only
 * counts, and names that were checked where they were declared; 1,500 bytes at most, whatever a site holds. `topics` as for
 * `keepTopics`: null says all.
 */
export function describePlatform(facts: SiteFacts, topics: ReadonlySet<string> | null): string {
  const isAbout = (...kinds: InventoryKind[]) => topics === null || kinds.some((kind) => topics.has(kind))
  const { counts, sources, jobs, devices } = facts
  const hasMembers = (counts.vm ?? 0) > 0
  const lines = [
    describeCounts(facts),
    ...(isAbout('shard', 'node', 'tenant', 'region') ? describeShards(facts) : []),
    ...(hasMembers && isAbout('host', 'vm')
      ? ['Hosts run the VMs; some VMs belong to an ha_group whose members must not share a host.']
      : []),
    `Read: ${namesOf(
      sources.map(({ name, kind }) => `${plain(name)} (${plain(kind)})`),
      'no source of metrics or logs',
    )}.`,
    ...(devices > 0 ? [`${formatCount(devices, 'device')} can be asked and, where a person approves, changed.`] : []),
    ...(jobs.length > 0 ? [`Jobs: ${namesOf(jobs.map(plain), '')}.`] : []),
  ]
  return lines.join('\n')
}

function describeCounts({ counts, racks }: SiteFacts): string {
  const told = inventoryKinds.flatMap((kind) => {
    const count = counts[kind] ?? 0
    if (count === 0) return []
    const one = kind === 'vm' ? 'VM' : kind === 'service_unit' ? 'service' : kind
    const among = kind === 'host' && racks > 1 ? ` in ${racks} racks` : ''
    return [`${count} ${count === 1 ? one : kinds[kind].plural}${among}`]
  })
  return told.length === 0 ? 'Nothing is in the inventory yet.' : `${told.join(', ')}.`
}

function describeShards(facts: SiteFacts): string[] {
  const { counts, databaseShards } = facts
  const others = (counts.shard ?? 0) - databaseShards
  if (databaseShards === 0 && !hasTenants(facts)) return others > 0 ? ['A shard is a group of nodes.'] : []
  const told = [
    'Regions hold shards.',
    ...(databaseShards > 0 ? ['A database shard is a MySQL replication pair: a primary node and a replica.'] : []),
    ...(others > 0 && hasTenants(facts) ? ['A web shard is a set of nodes that serve tenants from CephFS.'] : []),
  ]
  return [told.join(' ')]
}

function namesOf(names: readonly string[], none: string): string {
  if (names.length === 0) return none
  const more = names.length - mostNames
  return `${names.slice(0, mostNames).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** A name and nothing that could be read as a sentence or a line. */
const plain = (name: string): string => name.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, mostNameCharacters)
