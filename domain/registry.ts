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

/** What the inventory knows, each with a descriptor in `domain/kinds.ts`. */
export const inventoryKind = z.enum(inventoryKinds)

export const resourceKind = z.enum([...inventoryKind.options, 'incident', 'proposal'])
export type ResourceKind = z.infer<typeof resourceKind>

export const resourceRef = z.object({ kind: resourceKind, id: z.string() })
export type ResourceRef = z.infer<typeof resourceRef>

/** A resource in a sentence: `node web-1`, and `host-osl-1` where the id names the kind. */
export function nameResource({ kind, id }: ResourceRef): string {
  return id.toLowerCase().startsWith(kind) ? id : `${kind.replaceAll('_', ' ')} ${id}`
}

/** The one spelling of a resource in leases, digests and look-ups: `shard:db-osl-1`. */
export function resourceKey(ref: ResourceRef): string {
  return `${ref.kind}:${ref.id}`
}

/**
 * A resource's state as code compares it: health, a sentence for people, and the few fields that
 * change only when something happened.
 */
export const resourceState = z.object({
  health: z.enum(['nominal', 'degraded', 'unknown']),
  observed: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
})
export type ResourceState = z.infer<typeof resourceState>

/** Names the first difference between the sight and a mark's; null where there is none. */
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

/**
 * The one key of a thing to which `same_as` gives several names: that of the first kind, then the
 * first by text.
 */
export function keysOfGroups(pairs: readonly { left: string; right: string }[]): Map<string, string> {
  const parent = new Map<string, string>()
  const find = (key: string): string => {
    let root = key
    for (let up = parent.get(root); up !== undefined && up !== root; up = parent.get(root)) root = up
    // All on the way get the root: a chain may be 100,000 long.
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
 * The same where something is allowed by it: names that would make two machines of a kind one are
 * not joined.
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

/** The registry as the vicinity reads it. Both answers come from sources with authority alone. */
type RelationReader = {
  otherNames(ref: ResourceRef): Promise<readonly ResourceRef[]>
  /** All that one step along a relation leads to. */
  stepFrom(from: readonly ResourceRef[], step: RelationStep): Promise<readonly ResourceRef[]>
}

/**
 * Resources that belong together with one: its other names, and the ends of its kind's paths from
 * any of them. Reversible writes there run unasked.
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

/** `kind:id` as a reference, or null. */
export function parseResourceKey(text: string): ResourceRef | null {
  const at = text.indexOf(':')
  const kind = inventoryKind.safeParse(text.slice(0, at))
  const id = text.slice(at + 1)
  return at > 0 && kind.success && idPattern.test(id) ? { kind: kind.data, id } : null
}

/** Things on one side of a resource: those on which something fires first, the rest as a number. */
export const near = z.object({
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

/**
 * A resource's names as alerts are matched: lower case, each once; a full host name also by its
 * first part.
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

/** `web-1` of `web-1.example.com`, `nginx` of `nginx.service`; none of an address. */
function shortNames(text: string): string[] {
  const unit = /^(.+)\.service$/.exec(text)?.[1]
  if (unit) return [unit]
  const first = text.split('.')[0] ?? ''
  return isAddress(text) || first === text || first === '' ? [] : [first]
}
