import { z } from 'zod'
import { inventoryKinds } from './kinds.ts'

/** What the inventory knows, each with a descriptor in `domain/kinds.ts`. */
export const inventoryKind = z.enum(inventoryKinds)

export const resourceKind = z.enum([...inventoryKind.options, 'incident', 'proposal'])
export type ResourceKind = z.infer<typeof resourceKind>

export const resourceRef = z.object({ kind: resourceKind, id: z.string() })
export type ResourceRef = z.infer<typeof resourceRef>

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
