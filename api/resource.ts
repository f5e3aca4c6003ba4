import { z } from '@hono/zod-openapi'
import type { Health } from '../domain/platform.ts'

export const resourceParams = z.object({ id: z.string().min(1).max(100) })

/** Set where the platform could not be asked: nothing is known of its health, and no old answer stands in for it. */
export const staleFlag = { stale: z.literal(true).optional() }

/** A resource with the health it has now, or `unknown`. What it was an hour ago is no answer to how it is. */
export function withHealth<T extends { status: Health }>(resource: T, { stale }: { stale: boolean }) {
  if (!stale) return resource
  const unknown = { ...resource, status: 'unknown' as const, stale: true as const }
  return 'reason' in resource ? { ...unknown, reason: 'the platform cannot be reached' } : unknown
}
