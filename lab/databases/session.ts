import { z } from 'zod'

/** A session of the shop. `pid` and `startedAt` together identify it. */
export const shopSession = z.object({
  server: z.string(),
  pid: z.number().int(),
  startedAt: z.string(),
  application: z.string(),
})
export type ShopSession = z.infer<typeof shopSession>

export const isSameSession = (a: ShopSession, b: ShopSession): boolean =>
  a.server === b.server && a.pid === b.pid && a.startedAt === b.startedAt
