import { z } from 'zod'
import { isAddress, toOneAddress } from './alert-machines.ts'
import type { DeclaredResource } from './declared-resources.ts'
import {
  canonicalOrder,
  type InventoryKind,
  idPattern,
  inventoryKinds,
  kinds,
  machineKinds,
  type RelationStep,
  relationKinds,
} from './kinds.ts'

/** Kinds of resources in the inventory. Each kind has a descriptor in `domain/kinds.ts`. */
export const inventoryKind = z.enum(inventoryKinds)

export const resourceKind = z.enum([...inventoryKind.options, 'incident', 'proposal'])
export type ResourceKind = z.infer<typeof resourceKind>

export const resourceRef = z.object({ kind: resourceKind, id: z.string() })
export type ResourceRef = z.infer<typeof resourceRef>

/** Names a resource: `node web-1`, or `host-osl-1` if the id already contains the kind. */
export function nameResource({ kind, id }: ResourceRef): string {
  return id.toLowerCase().startsWith(kind) ? id : `${kind.replaceAll('_', ' ')} ${id}`
}

/** Formats the key of a resource for leases, digests and look-ups: `shard:db-osl-1`. */
export function resourceKey(ref: ResourceRef): string {
  return `${ref.kind}:${ref.id}`
}

/**
 * The state of a resource in the form that code compares: health, a sentence for people, and the
 * few fields that change only with an event.
 */
export const resourceState = z.object({
  health: z.enum(['nominal', 'degraded', 'unknown']),
  observed: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
})
export type ResourceState = z.infer<typeof resourceState>

/** Describes the first difference between two states of a resource; null if they are equal. */
export function differenceOf(stored: ResourceState, now: ResourceState, isSameResource: boolean): string | null {
  if (now.health === 'unknown') return `the resource could not be read: ${now.observed}`
  if (stored.health !== now.health) return `the resource was ${stored.health} and is ${now.health} (${now.observed})`
  // Compares only the health if an incident type is marked as expected, because the mark then
  // applies to several resources.
  if (!isSameResource) return null
  for (const name of new Set([...Object.keys(stored.fields), ...Object.keys(now.fields)])) {
    const [before, after] = [stored.fields[name] ?? null, now.fields[name] ?? null]
    if (before !== after) return `${name} was ${String(before)} and is ${String(after)}`
  }
  return null
}

/** Chooses one key for names that `same_as` joins: by the first kind, then alphabetically. */
export function keysOfGroups(pairs: readonly { left: string; right: string }[]): Map<string, string> {
  const parent = new Map<string, string>()
  const find = (key: string): string => {
    let root = key
    for (let up = parent.get(root); up !== undefined && up !== root; up = parent.get(root)) root = up
    // Gives all names on the path the root directly, because a chain of names may be 100,000 long.
    for (let at = key; at !== root; ) {
      const up = parent.get(at) as string
      parent.set(at, root)
      at = up
    }
    parent.set(root, root)
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

/**
 * Chooses keys like `keysOfGroups`, for decisions about writes. Names that would join two machines
 * of one kind stay separate.
 */
export function keysOfThings(pairs: readonly { left: string; right: string }[]): Map<string, string> {
  const groups = keysOfGroups(pairs)
  const seen = new Set<string>()
  const torn = new Set<string>()
  for (const [key, group] of groups) {
    const kind = key.slice(0, key.indexOf(':'))
    if (!isMachine(kind)) continue
    if (seen.has(`${kind} ${group}`)) torn.add(group)
    seen.add(`${kind} ${group}`)
  }
  return new Map([...groups].map(([key, group]) => [key, torn.has(group) ? key : group]))
}

const isMachine = (kind: string): boolean => (machineKinds as readonly string[]).includes(kind)

const rankOf = (key: string): number => canonicalOrder.indexOf(key.slice(0, key.indexOf(':')) as InventoryKind)

/** Reads the registry to find a vicinity. The functions use only sources with authority. */
type RelationReader = {
  otherNames(ref: ResourceRef): Promise<readonly ResourceRef[]>
  /** Lists the resources one step along a relation. */
  stepFrom(from: readonly ResourceRef[], step: RelationStep): Promise<readonly ResourceRef[]>
}

/**
 * Lists the vicinity of a resource: its other names, and the resources at the end of its kind's
 * paths from any of its names. Reversible writes on the vicinity run automatically.
 */
export async function resourcesNear(ref: ResourceRef, reader: RelationReader): Promise<ResourceRef[]> {
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
  path: readonly RelationStep[],
  { stepFrom }: RelationReader,
): Promise<readonly ResourceRef[]> {
  let at: readonly ResourceRef[] = [start]
  for (const step of path) {
    if (at.length === 0) return []
    at = await stepFrom(at, step)
  }
  return at
}

const attribute = z.union([z.string().max(500), z.number(), z.boolean(), z.null()])
export const attributes = z.record(z.string().max(100), attribute)
export type Attributes = z.infer<typeof attributes>

export const ref = (kind: InventoryKind, id: string): ResourceRef => ({ kind, id })

/** Parses `kind:id`; null for any other text. */
export function parseResourceKey(text: string): ResourceRef | null {
  const at = text.indexOf(':')
  const kind = inventoryKind.safeParse(text.slice(0, at))
  const id = text.slice(at + 1)
  return at > 0 && kind.success && idPattern.test(id) ? { kind: kind.data, id } : null
}

/**
 * Resources on one side of a resource. Resources with firing alerts come first; resources that are
 * not listed are counted in `total`.
 */
export const near = z.object({
  items: z.array(
    z.object({
      key: z.string(),
      /** The relation, such as `runs_on`, read from the dependent resource. */
      relation: z.enum(relationKinds),
      /** How many alerts on the resource fire now. */
      firing: z.number().int(),
    }),
  ),
  total: z.number().int(),
})

/**
 * Lists the names of a resource in the form in which alerts are matched: in lower case, each once,
 * and a full host name also by its first part.
 */
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

/**
 * Shortens `web-1.example.com` to `web-1`, and `nginx.service` to `nginx`. Empty for an address.
 */
function shortNames(text: string): string[] {
  const unit = /^(.+)\.service$/.exec(text)?.[1]
  if (unit) return [unit]
  const first = text.split('.')[0] ?? ''
  return isAddress(text) || first === text || first === '' ? [] : [first]
}
