import { z } from 'zod'
import { isAddress, toOneAddress } from './alert-machines.ts'
import {
  canonicalOrder,
  type InventoryKind,
  idPattern,
  inventoryKinds,
  kinds,
  relationKinds,
  type Step,
} from './kinds.ts'
import type { Inventory } from './platform.ts'
import type { Site, SiteFile } from './site.ts'

/** What the inventory knows, each with a descriptor in `domain/kinds.ts`. */
export const inventoryKind = z.enum(inventoryKinds)

export const resourceKind = z.enum([...inventoryKind.options, 'incident', 'proposal'])
export type ResourceKind = z.infer<typeof resourceKind>

export const resourceRef = z.object({ kind: resourceKind, id: z.string() })
export type ResourceRef = z.infer<typeof resourceRef>

/** A resource in a sentence: `node web-1`, and `host-osl-1` where the id says of what kind it is. */
export function nameResource({ kind, id }: ResourceRef): string {
  return id.toLowerCase().startsWith(kind) ? id : `${kind.replaceAll('_', ' ')} ${id}`
}

/** The one spelling of a resource in leases, digests and look-ups: `shard:db-osl-1`. */
export function resourceKey(ref: ResourceRef): string {
  return `${ref.kind}:${ref.id}`
}

/**
 * How a resource is now, as far as code compares it: its health, a sentence for people, and the few fields that change only
 * when something happened to it.
 */
export const resourceState = z.object({
  health: z.enum(['nominal', 'degraded', 'unknown']),
  observed: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
})
export type ResourceState = z.infer<typeof resourceState>

/** How what is seen now differs from what a mark stored, naming the first difference; null where it does not. */
export function differenceOf(stored: ResourceState, now: ResourceState, isSameResource: boolean): string | null {
  if (now.health === 'unknown') return `it could not be read: ${now.observed}`
  if (stored.health !== now.health) return `it was ${stored.health} and is ${now.health} (${now.observed})`
  // A mark on a type covers other resources: of those only the health is comparable.
  if (!isSameResource) return null
  for (const name of new Set([...Object.keys(stored.fields), ...Object.keys(now.fields)])) {
    const [before, after] = [stored.fields[name] ?? null, now.fields[name] ?? null]
    if (before !== after) return `${name} was ${String(before)} and is ${String(after)}`
  }
  return null
}

/** The one key of each thing that `same_as` gives several names: that of the kind which stands first, then the first by its text. */
export function keysOfGroups(pairs: readonly { left: string; right: string }[]): Map<string, string> {
  const parent = new Map<string, string>()
  const find = (key: string): string => {
    let root = key
    while (parent.get(root) !== undefined && parent.get(root) !== root) root = parent.get(root) as string
    parent.set(key, root)
    return root
  }
  for (const { left, right } of pairs) {
    const [first, second] = [find(left), find(right)]
    if (first === second) continue
    const isFirst = rankOf(first) < rankOf(second) || (rankOf(first) === rankOf(second) && first < second)
    parent.set(isFirst ? second : first, isFirst ? first : second)
  }
  return new Map([...parent.keys()].map((key) => [key, find(key)]))
}

const rankOf = (key: string): number => canonicalOrder.indexOf(key.slice(0, key.indexOf(':')) as InventoryKind)

/** The registry as the vicinity reads it. Both answers come from sources with authority alone. */
type RelationReader = {
  otherNames(ref: ResourceRef): Promise<readonly ResourceRef[]>
  /** All that one step along a relation leads to. */
  stepFrom(from: readonly ResourceRef[], step: Step): Promise<readonly ResourceRef[]>
}

/**
 * What belongs together with a resource: its other names, and where the paths of its kind's descriptor lead from any of them. A
 * reversible write there runs unasked.
 */
export async function nearOf(ref: ResourceRef, reader: RelationReader): Promise<ResourceRef[]> {
  if (ref.kind === 'incident' || ref.kind === 'proposal') return []
  const same = await reader.otherNames(ref)
  const near: ResourceRef[] = [...same]
  for (const start of [ref, ...same]) {
    if (start.kind === 'incident' || start.kind === 'proposal') continue
    for (const path of kinds[start.kind].near) near.push(...(await walk(start, path, reader)))
  }
  const byKey = new Map(near.map((each) => [resourceKey(each), each]))
  byKey.delete(resourceKey(ref))
  return [...byKey.values()]
}

async function walk(
  start: ResourceRef,
  path: readonly Step[],
  { stepFrom }: RelationReader,
): Promise<readonly ResourceRef[]> {
  let at: readonly ResourceRef[] = [start]
  for (const step of path) {
    if (at.length === 0) return []
    at = await stepFrom(at, step)
  }
  return at
}

/**
 * Who may say what there is. `platform`, `import` and `enrolment` speak for the site's administrator: what they relate counts for the
 * vicinity of an incident, in which reversible writes run unasked. What others list (a Prometheus) is known and shown, and widens nothing.
 */
export type RegistrySource = { name: string; hasAuthority: boolean }

export const platformSource: RegistrySource = { name: 'platform', hasAuthority: true }
/** Groups, nodes and hosts of a site without a platform. */
export const siteSource: RegistrySource = { name: 'site', hasAuthority: true }
export const importSource: RegistrySource = { name: 'import', hasAuthority: true }

const attribute = z.union([z.string().max(500), z.number(), z.boolean(), z.null()])
export const attributes = z.record(z.string().max(100), attribute)
export type Attributes = z.infer<typeof attributes>

/** A resource as one source describes it. `aliases`: other names, host names and addresses that alerts may use. */
type DeclaredResource = {
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

const listedRelation = z.object({
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
const surroundingsOfResource = z.object({ needs: near, neededBy: near })
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
