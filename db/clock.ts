import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'

/**
 * The database's clock, the only one that decides: UTC, microseconds. A test schema can move it.
 */
export async function databaseTime(db: Db | Trx): Promise<string> {
  const { now } = await db.selectNoFrom(({ fn }) => fn<string>('nightshift_now').as('now')).executeTakeFirstOrThrow()
  return now
}

/**
 * The same clock, read once a statement. Only so does a comparison use an index: the function is
 * volatile and would be called for every row. For reads alone; a decision under a lock reads the
 * clock after the lock.
 */
export const onceNow = sql<string>`(select nightshift_now())`

/**
 * The same clock as a value of a row. In a comparison PostgreSQL would call it for every row: use
 * `onceNow`.
 */
export const now = sql<string>`nightshift_now()`

/** A time ahead by the database's clock, to be written into a row. */
export const inSeconds = (seconds: number) => sql<string>`nightshift_now() + make_interval(secs => ${seconds})`
