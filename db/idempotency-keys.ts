import { type ExpressionBuilder, sql } from 'kysely'
import { now } from './clock.ts'
import type { Db, Trx } from './connect.ts'
import type { Database } from './tables.ts'

export type IdempotencyKey = { tokenId: string; route: string; key: string }
const isKey =
  ({ tokenId, route, key }: IdempotencyKey) =>
  (row: ExpressionBuilder<Database, 'idempotency'>) =>
    row.and({ tokenId, route, key })

type StoredAnswer = { status: number; response: unknown }

/**
 * Takes an idempotency key for one request. `taken`: the caller runs the request and then calls
 * `storeAnswer`. `opened`: the incident that an earlier request with the key opened before its
 * process died. `stored`: an earlier request was answered, and its response is returned again.
 * `busy`: an earlier request is still running. `other_body`: the key was used with another request
 * body. The first digest is stored; a stored row may have any of the given digests.
 */
export async function takeKey(
  db: Db,
  key: IdempotencyKey,
  [bodyDigest, ...olderDigests]: readonly [string, ...string[]],
): Promise<
  | { state: 'taken'; opened: string | null }
  | { state: 'stored'; answer: StoredAnswer }
  | { state: 'busy' }
  | { state: 'other_body' }
> {
  const taken = await db
    .insertInto('idempotency')
    .values({ ...key, bodyDigest, status: null, response: null })
    .onConflict((conflict) => conflict.columns(['tokenId', 'route', 'key']).doNothing())
    .returning('key')
    .executeTakeFirst()
  if (taken) return { state: 'taken', opened: null }
  const row = await db
    .selectFrom('idempotency')
    .select(['bodyDigest', 'status', 'response'])
    // Lets the next request with the key try after a minute, because a process that died leaves the
    // key unanswered.
    .select(sql<boolean>`created_at < nightshift_now() - interval '1 minute'`.as('abandoned'))
    .where(isKey(key))
    .executeTakeFirst()
  if (!row) return { state: 'busy' }
  if (![bodyDigest, ...olderDigests].includes(row.bodyDigest)) return { state: 'other_body' }
  if (row.status !== null) return { state: 'stored', answer: { status: row.status, response: row.response } }
  if (!row.abandoned) return { state: 'busy' }
  const again = await db
    .updateTable('idempotency')
    .set({ createdAt: now })
    .where(isKey(key))
    .where('status', 'is', null)
    .where(sql<boolean>`created_at < nightshift_now() - interval '1 minute'`)
    .returning(openedBy)
    .executeTakeFirst()
  return again ? { state: 'taken', ...again } : { state: 'busy' }
}

/** The incident that the key's request opened. The key's row stores it until the response. */
const openedBy = sql<string | null>`case when status is null then response->>'opened' end`.as('opened')

/**
 * Records the incident that a request opens under the request's key, in the transaction that opens
 * it, so that a repeat finds the incident. False if another request was faster.
 */
export async function noteOpened(trx: Trx, key: IdempotencyKey, opened: string): Promise<boolean> {
  const noted = await trx
    .updateTable('idempotency')
    .set({ response: JSON.stringify({ opened }) })
    .where(isKey(key))
    .where('status', 'is', null)
    .where('response', 'is', null)
    .returning('key')
    .executeTakeFirst()
  return noted !== undefined
}

export async function storeAnswer(db: Db, key: IdempotencyKey, answer: StoredAnswer): Promise<void> {
  await db
    .updateTable('idempotency')
    .set({ status: answer.status, response: JSON.stringify(answer.response ?? null) })
    .where(isKey(key))
    .execute()
}

/**
 * Releases a key so that the request may be repeated. A key whose request opened an incident keeps
 * the incident, so that the repeat finds it.
 */
export async function releaseKey(db: Db, key: IdempotencyKey): Promise<void> {
  await db
    .updateTable('idempotency')
    .set({ createdAt: sql<string>`nightshift_now() - interval '2 minutes'` })
    .where(isKey(key))
    .where('status', 'is', null)
    .where('response', 'is not', null)
    .execute()
  await db
    .deleteFrom('idempotency')
    .where(isKey(key))
    .where('status', 'is', null)
    .where('response', 'is', null)
    .execute()
}

/** Deletes stored responses after 30 days, for which the API promises to keep them. */
export async function dropOldAnswers(db: Db): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('createdAt', '<', sql<string>`nightshift_now() - interval '30 days'`)
    .execute()
}
