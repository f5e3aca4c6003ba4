import { z } from 'zod'

/** Identifies a session. No two sessions have the same process and the same start. */
export const shopSession = z.object({
  server: z.string(),
  pid: z.number().int(),
  startedAt: z.string(),
  application: z.string(),
})
export type ShopSession = z.infer<typeof shopSession>

export const isSameSession = (a: ShopSession, b: ShopSession): boolean =>
  a.server === b.server && a.pid === b.pid && a.startedAt === b.startedAt
