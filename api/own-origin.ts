import type { Context } from './hono.ts'
import { Problem } from './problem.ts'

/** Where this server is reached: as the request names it, or as `PUBLIC_URL` does where a proxy ends TLS. */
export function ownOrigins(c: Context, publicUrl: string | null): string[] {
  const asked = new URL(c.req.url).origin
  return publicUrl ? [asked, new URL(publicUrl).origin] : [asked]
}

/**
 * A browser says which page a request comes from. What a cookie vouches for must come from a page of ours: one that says
 * nothing is refused like a foreign one.
 */
export function requireOwnOrigin(c: Context, publicUrl: string | null): void {
  const origin = c.req.header('origin')
  if (origin !== undefined && ownOrigins(c, publicUrl).includes(origin)) return
  throw new Problem(
    403,
    'FOREIGN_ORIGIN',
    'This was not sent by a page of this server. Open the page here and repeat it.',
  )
}
