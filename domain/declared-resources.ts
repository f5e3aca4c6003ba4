import type { z } from 'zod'
import type { relationKinds } from './kinds.ts'
import type { Inventory } from './platform.ts'
import { type Attributes, type inventoryKind, parseResourceKey, type ResourceRef, ref } from './registry.ts'
import type { Site, SiteFile } from './site.ts'

/**
 * Sources of the registry. `platform`, `import` and `enrolment` have the authority of the
 * administrator: their relations define the vicinity of an incident, in which reversible writes run
 * automatically. Entries of all other sources, such as a Prometheus, are known and shown, but do
 * not extend a vicinity.
 */
export type RegistrySource = { name: string; hasAuthority: boolean }

export const platformSource: RegistrySource = { name: 'platform', hasAuthority: true }

/** The source for groups, nodes and hosts that people enter if there is no platform. */
export const siteSource: RegistrySource = { name: 'site', hasAuthority: true }

export const importSource: RegistrySource = { name: 'import', hasAuthority: true }

/** A resource as a source declares it. `aliases`: other names and addresses that alerts use. */
export type DeclaredResource = {
  kind: z.infer<typeof inventoryKind>
  id: string
  name?: string
  aliases?: readonly string[]
  attributes?: Attributes
}

export type DeclaredRelation = { from: ResourceRef; kind: (typeof relationKinds)[number]; to: ResourceRef }

/** Everything that a source declares. An entry that it no longer declares is withdrawn. */
export type SourceDeclaration = { resources: readonly DeclaredResource[]; relations: readonly DeclaredRelation[] }

/**
 * Throws if a source without authority declares more than its targets and, for a database, its own
 * server, which an administrator connected under the server's name. If the source could list a
 * machine, a write could name a machine that nobody confirmed.
 */
export function refuseWithoutAuthority({ name, hasAuthority }: RegistrySource, declared: SourceDeclaration): void {
  if (hasAuthority) return
  const isOwn = ({ kind, id }: ResourceRef): boolean =>
    kind === 'target' || (kind === 'database' && name.endsWith(`:${id}`))
  if (!declared.resources.every(isOwn) || !declared.relations.every(({ from }) => isOwn(from)))
    throw new Error(`${name} may only list targets and its own server, and relations of these resources`)
}

const belongs = (from: ResourceRef, to: ResourceRef): DeclaredRelation => ({ from, kind: 'belongs_to', to })

/**
 * Converts the inventory of a platform. State that changes by the minute is stored in separate
 * tables.
 */
export function toDeclared({ regions, shards, nodes, tenants, hosts, vms, links }: Inventory): SourceDeclaration {
  const resources: DeclaredResource[] = [
    ...regions.map(({ id }) => ({ kind: 'region' as const, id })),
    ...shards.map(({ id, role }) => ({ kind: 'shard' as const, id, attributes: { role } })),
    ...nodes.map(({ id, hostname, ip, role }) => ({
      kind: 'node' as const,
      id,
      name: hostname,
      aliases: ip === '' ? [] : [ip],
      attributes: { role, ip },
    })),
    ...tenants.map(({ id, name }) => ({ kind: 'tenant' as const, id, name })),
    ...hosts.map(({ id, name = id, aliases = [], rack, ramMib, cpuMc, fenced }) => {
      const fencing = fenced && { fencedBy: fenced.by, fencedAt: fenced.at }
      return { kind: 'host' as const, id, name, aliases, attributes: { rack, ramMib, cpuMc, ...fencing } }
    }),
    ...vms.map(({ id, name = id, aliases = [], haGroup, priority, restartsElsewhere }) => {
      const restarts = restartsElsewhere && { restartsElsewhere }
      return { kind: 'vm' as const, id, name, aliases, attributes: { haGroup, priority, ...restarts } }
    }),
  ]
  const relations: DeclaredRelation[] = [
    ...shards.map(({ id, region }) => belongs(ref('shard', id), ref('region', region))),
    ...nodes.map(({ id, shard }) => belongs(ref('node', id), ref('shard', shard))),
    ...tenants.map(({ id, shard }) => belongs(ref('tenant', id), ref('shard', shard))),
    ...hosts.map(({ id, region }) => belongs(ref('host', id), ref('region', region))),
    ...vms.flatMap(({ id, host }) =>
      host === null ? [] : [{ from: ref('vm', id), kind: 'runs_on' as const, to: ref('host', host) }],
    ),
    ...links.map(({ a, b }) => ({ from: ref('host', a), kind: 'linked_to' as const, to: ref('host', b) })),
  ]
  return { resources, relations }
}

/** Converts groups, nodes and hosts that people entered. */
export function siteToDeclared({ groups, nodes, hosts }: Site): SourceDeclaration {
  const regions = [...new Set([...groups, ...hosts].map(({ region }) => region))].sort()
  return {
    resources: [
      ...regions.map((id) => ({ kind: 'region' as const, id })),
      ...groups.map(({ id, role }) => ({ kind: 'shard' as const, id, attributes: { role } })),
      ...nodes.map(({ id, hostname, ip }) => ({
        kind: 'node' as const,
        id,
        name: hostname ?? id,
        aliases: ip === '' ? [] : [ip],
        attributes: { ip },
      })),
      ...hosts.map(({ id, rack, ramMib, cpuMc }) => ({
        kind: 'host' as const,
        id,
        attributes: { rack, ramMib, cpuMc },
      })),
    ],
    relations: [
      ...groups.map(({ id, region }) => belongs(ref('shard', id), ref('region', region))),
      ...nodes.map(({ id, group }) => belongs(ref('node', id), ref('shard', group))),
      ...hosts.map(({ id, region }) => belongs(ref('host', id), ref('region', region))),
    ],
  }
}

/**
 * Converts the resources and relations of an inventory file. The parser of the file has already
 * checked the names.
 */
export function fileToDeclared({ resources, relations }: Pick<SiteFile, 'resources' | 'relations'>): SourceDeclaration {
  return {
    resources,
    relations: relations.map(({ from, kind, to }) => ({
      from: parseResourceKey(from) as ResourceRef,
      kind,
      to: parseResourceKey(to) as ResourceRef,
    })),
  }
}
