import { getConnInfo } from '@hono/node-server/conninfo'
import type { Context } from './hono.ts'

/** Who is at the other end of the socket. Headers that claim another address are not believed: anybody can send them. */
export function addressOf(c: Context): string {
  // Without a socket, as when a test asks the app itself, there is nobody to name.
  if (!(c.env as { incoming?: unknown } | undefined)?.incoming) return 'unknown'
  return getConnInfo(c).remote.address ?? 'unknown'
}
