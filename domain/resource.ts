import { z } from 'zod'

export const resourceKind = z.enum(['region', 'shard', 'node', 'tenant', 'host', 'vm', 'incident', 'proposal'])
export type ResourceKind = z.infer<typeof resourceKind>

export const resourceRef = z.object({ kind: resourceKind, id: z.string() })
export type ResourceRef = z.infer<typeof resourceRef>

/** The one spelling of a resource in leases, digests and look-ups: `shard:db-osl-1`. */
export function resourceKey(ref: ResourceRef): string {
  return `${ref.kind}:${ref.id}`
}
