import { z } from 'zod'

/** A session for ever: no other has its process and its beginning. */
export const databaseSession = z.object({
  server: z.string(),
  pid: z.number().int(),
  startedAt: z.string(),
  application: z.string(),
})
export type DatabaseSession = z.infer<typeof databaseSession>

export const isSameSession = (a: DatabaseSession, b: DatabaseSession): boolean =>
  a.server === b.server && a.pid === b.pid && a.startedAt === b.startedAt
