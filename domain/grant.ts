import { z } from 'zod'
import { resourceRef } from './registry.ts'

/**
 * A request for a standing approval of exactly one action, for at most 8 hours. Allowed only for
 * tools that code marks as suitable.
 */
export const grantWish = z.strictObject({
  uses: z.number().int().min(1).max(20),
  hours: z.number().min(0.25).max(8),
})

export type GrantWish = z.infer<typeof grantWish>

export const standingGrant = z.object({
  id: z.string(),
  approvalId: z.string(),
  tool: z.string(),
  targets: z.array(resourceRef),
  uses: z.number().int(),
  usesLeft: z.number().int(),
  grantedBy: z.string(),
  grantedAt: z.string(),
  expiresAt: z.string(),
  revokedAt: z.string().nullable(),
})

export type StandingGrant = z.infer<typeof standingGrant>
