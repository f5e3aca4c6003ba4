import type { Db } from '../db/connect.ts'
import { releaseKey, storeAnswer, takeKey } from '../db/idempotency.ts'
import { sha256 } from '../domain/digest.ts'
import type { Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/** What an `Idempotency-Key` may be: visible ASCII. */
export const keyShape = /^[\x21-\x7e]{1,255}$/

/** The caller's `Idempotency-Key`, or null. A key that could not be stored as it is would be no key. */
export function idempotencyKey(header: string | undefined): string | null {
  if (header === undefined) return null
  if (!keyShape.test(header)) {
    throw new Problem(422, 'BAD_IDEMPOTENCY_KEY', 'Idempotency-Key takes 1 to 255 visible ASCII characters.')
  }
  return header
}

/**
 * A POST with an `Idempotency-Key` is done once: the same body gets the stored answer, another body a 422, one that is still
 * at work a 409. A fault of ours (5xx) is no answer: the key is given back.
 */
export function idempotent(db: Db): Middleware {
  return async (c, next) => {
    const key = idempotencyKey(c.req.header('idempotency-key'))
    if (key === null) return await next()
    // With its query, which may say that nothing is to be done.
    const route = `POST ${c.req.path}${new URL(c.req.url).search}`
    const place = { tokenId: c.get('principal').tokenId, route, key }
    const taken = await takeKey(db, place, sha256(await c.req.text()))
    if (taken.state === 'busy') {
      const detail = 'A request with this Idempotency-Key is still at work.'
      throw new Problem(409, 'IN_PROGRESS', detail, { headers: { 'retry-after': '1' } })
    }
    if (taken.state === 'other_body') {
      throw new Problem(422, 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with another body.')
    }
    if (taken.state === 'stored') {
      const { status, response } = taken.answer
      const type = status >= 400 ? 'application/problem+json' : 'application/json'
      return c.body(JSON.stringify(response), status as 200, { 'content-type': type, 'idempotency-replayed': 'true' })
    }
    await next()
    if (c.res.status >= 500) await releaseKey(db, place)
    else await storeAnswer(db, place, { status: c.res.status, response: await c.res.clone().json() })
    return undefined
  }
}
