import type { Db } from '../db/connect.ts'
import { principalOfSession } from '../db/sessions.ts'
import { principalOf } from '../db/tokens.ts'
import type { Principal } from '../domain/operator.ts'
import { afterFailure } from './attempts.ts'
import type { Context, Middleware } from './hono.ts'
import { requireOwnOrigin } from './own-origin.ts'
import { Problem } from './problem.ts'
import { sessionCookie } from './session-cookie.ts'

/**
 * Finds who asks: by a bearer token, or by the cookie of a signed-in browser, which stands for its token and no more. Both are
 * looked up by their hash, so that how long it takes tells nothing about how much of it is right.
 */
export function authenticate(db: Db, publicUrl: string | null = null): Middleware {
  return async (c, next) => {
    const header = c.req.header('authorization')
    const { principal, browser } = header
      ? { principal: await bearer(db, header), browser: false }
      : { principal: await signedIn(db, c, publicUrl), browser: true }
    if (!principal) {
      // A cookie that has run out is no try: a page left open over night asks with it again and again.
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
    await next()
  }
}

async function bearer(db: Db, header: string): Promise<Principal | null> {
  const [, token] = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i.exec(header) ?? []
  // Looked up whatever it is: what could never be a token takes as long as one that is wrong.
  return await principalOf(db, token ?? '')
}

/** The person of the session's cookie. What changes something must come from a page of ours. */
export async function signedIn(db: Db, c: Context, publicUrl: string | null): Promise<Principal | null> {
  const cookie = sessionCookie(c, publicUrl)
  const principal = cookie ? await principalOfSession(db, cookie) : null
  if (principal && !['GET', 'HEAD'].includes(c.req.method)) requireOwnOrigin(c, publicUrl)
  return principal
}
