import type { Db } from '../../db/connect.ts'
import { releaseKey, storeAnswer, takeKey } from '../../db/idempotency-keys.ts'
import { digestOf, sha256 } from '../../domain/digest.ts'
import type { Middleware } from '../deps.ts'
import { Problem } from './problem.ts'

/** The allowed form of `Idempotency-Key`: visible ASCII. */
export const keyShape = /^[\x21-\x7e]{1,255}$/

/** Reads the `Idempotency-Key`. Refuses a key that could not be stored unchanged. */
export function idempotencyKey(header: string): string {
  if (!keyShape.test(header)) {
    throw new Problem(422, 'BAD_IDEMPOTENCY_KEY', 'Idempotency-Key takes 1 to 255 visible ASCII characters.')
  }
  return header
}

/**
 * Returns the digests under which a request's body may be stored: of its canonical form, and of its
 * text, as version 0.2.0 stored it.
 */
function digestsOf(text: string): [stored: string, older: string] {
  const older = sha256(text)
  try {
    return [digestOf(JSON.parse(text)), older]
  } catch {
    return [older, older]
  }
}

/**
 * Carries out a POST with an `Idempotency-Key` once. A repetition with the first body gets the
 * stored response, with another body a 422, and while the first request runs a 409. A 5xx or 429
 * decides nothing, so the key is released for a retry. The retry finds the incident that the first
 * request opened.
 */
export function idempotent(db: Db): Middleware {
  return async (c, next) => {
    const header = c.req.header('idempotency-key')
    if (header === undefined) return await next()
    const key = idempotencyKey(header)
    // Includes the query in the key, because `dry_run=true` changes what the request does.
    const route = `POST ${c.req.path}${new URL(c.req.url).search}`
    const place = { tokenId: c.get('principal').tokenId, route, key }
    const taken = await takeKey(db, place, digestsOf(await c.req.text()))
    if (taken.state === 'busy') {
      const detail = 'A request with this Idempotency-Key is still being processed.'
      throw new Problem(409, 'IN_PROGRESS', detail, { headers: { 'retry-after': '1' } })
    }
    if (taken.state === 'other_body') {
      throw new Problem(
        422,
        'IDEMPOTENCY_KEY_REUSED',
        'This Idempotency-Key was already used with another request body.',
      )
    }
    if (taken.state === 'stored') {
      const { status, response } = taken.answer
      const type = status >= 400 ? 'application/problem+json' : 'application/json'
      return c.body(JSON.stringify(response), status as 200, { 'content-type': type, 'idempotency-replayed': 'true' })
    }
    c.set('once', { place, opened: taken.opened })
    await next()
    if (c.res.status >= 500 || c.res.status === 429) await releaseKey(db, place)
    else await storeAnswer(db, place, { status: c.res.status, response: await c.res.clone().json() })
    return undefined
  }
}
