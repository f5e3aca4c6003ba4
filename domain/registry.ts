import { z } from 'zod'
import { isAddress, toOneAddress } from './alert-machines.ts'
import { type InventoryKind, idPattern, relationKinds } from './kinds.ts'
import type { Inventory } from './platform.ts'
import { inventoryKind, type ResourceRef, resourceState } from './resource.ts'
import type { Site, SiteFile } from './site.ts'

/**
 * Who may say what there is. `platform`, `import` and `enrolment` speak for the site's administrator: what they relate counts for the
 * vicinity of an incident, in which reversible writes run unasked. What others list (a Prometheus) is known and shown, and widens nothing.
 */
export type RegistrySource = { name: string; hasAuthority: boolean }

export const platformSource: RegistrySource = { name: 'platform', hasAuthority: true }
/** Groups, nodes and hosts of a site without a platform. */
export const siteSource: RegistrySource = { name: 'site', hasAuthority: true }
export const importSource: RegistrySource = { name: 'import', hasAuthority: true }
export const enrolmentSource: RegistrySource = { name: 'enrolment', hasAuthority: true }

const attribute = z.union([z.string().max(500), z.number(), z.boolean(), z.null()])
export const attributes = z.record(z.string().max(100), attribute)
export type Attributes = z.infer<typeof attributes>

/** A resource as one source describes it. `aliases`: other names, host names and addresses that alerts may use. */
export type DeclaredResource = {
  kind: z.infer<typeof inventoryKind>
  id: string
  name?: string
  aliases?: readonly string[]
  attributes?: Attributes
}

export type DeclaredRelation = { from: ResourceRef; kind: (typeof relationKinds)[number]; to: ResourceRef }

/** What a source knows, as a whole: what it no longer lists, it no longer says. */
export type Declared = { resources: readonly DeclaredResource[]; relations: readonly DeclaredRelation[] }

/** What has no authority may say where its targets are. Were it to list a machine, a write could name what nobody vouched for. */
export function refuseWithoutAuthority({ name, hasAuthority }: RegistrySource, declared: Declared): void {
  if (hasAuthority) return
  const isTarget = ({ kind }: { kind: string }): boolean => kind === 'target'
  if (!declared.resources.every(isTarget) || !declared.relations.every(({ from }) => isTarget(from)))
    throw new Error(`${name} may list targets only, and relate them`)
}

const ref = (kind: InventoryKind, id: string): ResourceRef => ({ kind, id })
const belongs = (from: ResourceRef, to: ResourceRef): DeclaredRelation => ({ from, kind: 'belongs_to', to })

/** What a platform lists. State that changes by the minute stays in its own tables. */
export function toDeclared({ regions, shards, nodes, tenants, hosts, vms, links }: Inventory): Declared {
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
    ...hosts.map(({ id, rack, ramMib, cpuMc }) => ({ kind: 'host' as const, id, attributes: { rack, ramMib, cpuMc } })),
    ...vms.map(({ id, haGroup, priority }) => ({ kind: 'vm' as const, id, attributes: { haGroup, priority } })),
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

/** Groups, nodes and hosts of a site without a platform. */
export function siteToDeclared({ groups, nodes, hosts }: Site): Declared {
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

/** The resources and relations of a file of the inventory, whose names were checked when it was parsed. */
export function fileToDeclared({ resources, relations }: Pick<SiteFile, 'resources' | 'relations'>): Declared {
  return {
    resources,
    relations: relations.map(({ from, kind, to }) => ({
      from: parseResourceKey(from) as ResourceRef,
      kind,
      to: parseResourceKey(to) as ResourceRef,
    })),
  }
}

/** `kind:id` as a reference, or null. */
export function parseResourceKey(text: string): ResourceRef | null {
  const at = text.indexOf(':')
  const kind = inventoryKind.safeParse(text.slice(0, at))
  const id = text.slice(at + 1)
  return at > 0 && kind.success && idPattern.test(id) ? { kind: kind.data, id } : null
}

/** A resource as the API lists it. */
export const listedResource = z.object({
  kind: inventoryKind,
  id: z.string(),
  name: z.string(),
  aliases: z.array(z.string()),
  /** The key that all names of one thing share. */
  canonical: z.string(),
  sources: z.array(z.string()),
  seenAt: z.string(),
  /** No source has listed it for a day. */
  isStale: z.boolean(),
})
export type ListedResource = z.infer<typeof listedResource>

export const listedRelation = z.object({
  from: z.string(),
  kind: z.enum(relationKinds),
  to: z.string(),
  source: z.string(),
  /** Its source may widen what runs unasked. */
  hasAuthority: z.boolean(),
})
export type ListedRelation = z.infer<typeof listedRelation>

/** Things on one side of a resource: those on which something fires first, the rest as a number. */
const near = z.object({
  items: z.array(
    z.object({
      key: z.string(),
      /** As `runs_on`, read from the one that needs. */
      relation: z.enum(relationKinds),
      /** Alerts that fire on it now. */
      firing: z.number().int(),
    }),
  ),
  total: z.number().int(),
})
/** What a resource runs on, belongs to or depends on, and what does so with it. */
export const surroundingsOfResource = z.object({ needs: near, neededBy: near })
export type ResourceSurroundings = z.infer<typeof surroundingsOfResource>

/** A resource as the API shows it: who says what of it, what it hangs together with, what fires on it, its incidents. */
export const shownResource = listedResource.extend({
  firstSeenAt: z.string(),
  said: z.array(z.object({ source: z.string(), seenAt: z.string(), name: z.string(), attributes })),
  /** How it is now, where its kind has a state that code can read; else `unknown`. */
  state: resourceState,
  /** Other names of the same thing. */
  sameAs: z.array(z.string()),
  relations: z.array(listedRelation),
  /** For a picture; left out with `brief`. */
  around: surroundingsOfResource.optional(),
  alerts: z.array(
    z.object({ name: z.string(), status: z.string(), startsAt: z.string(), incidentId: z.string().nullable() }),
  ),
  incidents: z.array(z.object({ id: z.string(), title: z.string(), status: z.string(), createdAt: z.string() })),
  /** What an operator declared to bring it back to its wanted state. */
  jobs: z.array(z.object({ name: z.string(), about: z.string() })).optional(),
})
export type ShownResource = z.infer<typeof shownResource>

/** Names of a resource as alerts are matched with them: lower case, each once; a full host name also by its first part. */
export function toMatchedNames({
  id,
  name,
  aliases = [],
}: Pick<DeclaredResource, 'id' | 'name' | 'aliases'>): string[] {
  const plain = [id, name ?? id, ...aliases]
    .map((text) => toOneAddress(text.trim().toLowerCase()))
    .filter((text) => text !== '')
  return [...new Set(plain.flatMap((text) => [text, ...shortNames(text)]))]
}

/** `web-1` of `web-1.example.com`, `nginx` of `nginx.service`; none of an address. */
function shortNames(text: string): string[] {
  const unit = /^(.+)\.service$/.exec(text)?.[1]
  if (unit) return [unit]
  const first = text.split('.')[0] ?? ''
  return isAddress(text) || first === text || first === '' ? [] : [first]
}
