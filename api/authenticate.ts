import type { Db } from '../db/connect.ts'
import { principalOf } from '../db/tokens.ts'
import type { Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/**
 * Finds who asks. The token is looked up by its hash, so that how long it takes tells nothing about how much of it is right.
 */
export function authenticate(db: Db): Middleware {
  return async (c, next) => {
    const [, token] = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i.exec(c.req.header('authorization') ?? '') ?? []
    const principal = token ? await principalOf(db, token) : null
    if (!principal) {
      const detail = token ? 'This token is unknown, expired or revoked.' : 'Send a token: Authorization: Bearer …'
      throw new Problem(401, 'UNAUTHENTICATED', detail, { headers: { 'www-authenticate': 'Bearer' } })
    }
    c.set('principal', principal)
    c.set('judged', null)
    await next()
  }
}
