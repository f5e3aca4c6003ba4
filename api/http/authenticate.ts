import { principalOf } from '../../db/access/principals.ts'
import { principalOfSession } from '../../db/access/sessions.ts'
import type { Db } from '../../db/connect.ts'
import type { Principal } from '../../domain/permissions.ts'
import { type Context, getOwnOrigins, type Middleware } from '../deps.ts'
import { Problem } from './problem.ts'
import { afterFailure } from './rate-limits.ts'
import { sessionCookie } from './session-cookie.ts'

/**
 * Finds the principal by bearer token, or by the cookie of a signed-in browser, which has the
 * rights of its token. Token and cookie are looked up by hash, so that the duration reveals
 * nothing.
 */
export function authenticate(db: Db, publicUrl: string | null = null): Middleware {
  return async (c, next) => {
    const header = c.req.header('authorization')
    const { principal, browser } = header
      ? { principal: await bearer(db, header), browser: false }
      : { principal: await signedIn(db, c, publicUrl), browser: true }
    if (!principal) {
      // Does not count an expired cookie as an attempt, because a page that is open overnight sends
      // its cookie repeatedly.
      const flood = header ? await afterFailure(db, c) : null
      if (flood) throw flood
      const detail = header
        ? 'This token is unknown, expired or revoked.'
        : 'Send a token: Authorization: Bearer …, or sign in.'
      throw new Problem(401, 'UNAUTHENTICATED', detail, { headers: { 'www-authenticate': 'Bearer' } })
    }
    c.set('principal', principal)
    c.set('browser', browser)
    c.set('judged', null)
    c.set('once', null)
    await next()
  }
}

async function bearer(db: Db, header: string): Promise<Principal | null> {
  const [, token] = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i.exec(header) ?? []
  // Looks up every token, so that a malformed token takes as long as a wrong token.
  return await principalOf(db, token ?? '')
}

/**
 * Returns the principal of the session cookie, or null. A request that changes something must come
 * from this origin.
 */
export async function signedIn(db: Db, c: Context, publicUrl: string | null): Promise<Principal | null> {
  const cookie = sessionCookie(c, publicUrl)
  const principal = cookie ? await principalOfSession(db, cookie) : null
  if (principal && !['GET', 'HEAD'].includes(c.req.method)) requireOwnOrigin(c, publicUrl)
  return principal
}

/**
 * Refuses a request that no browser sent from this origin. A missing `Origin` counts as a foreign
 * origin.
 */
export function requireOwnOrigin(c: Context, publicUrl: string | null): void {
  const origin = c.req.header('origin')
  if (origin !== undefined && getOwnOrigins(c, publicUrl).includes(origin)) return
  throw new Problem(
    403,
    'FOREIGN_ORIGIN',
    'This request did not come from a page of this server. Open the page on this server and repeat the request.',
  )
}
