import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'

/**
 * Reads the database's clock, in UTC with microseconds. Only this clock is used for decisions.
 * Tests can change it.
 */
export async function databaseTime(db: Db | Trx): Promise<string> {
  const { now } = await db.selectNoFrom(({ fn }) => fn<string>('nightshift_now').as('now')).executeTakeFirstOrThrow()
  return now
}

/**
 * The database's clock, read once per statement, so that a comparison can use an index. The
 * function itself is volatile and would be called for every row. Use this only for reads; a
 * decision under a lock reads the clock after it has the lock.
 */
export const onceNow = sql<string>`(select nightshift_now())`

/**
 * The database's clock as a value of a row. Use `onceNow` in a comparison, which would otherwise
 * call the function for every row.
 */
export const now = sql<string>`nightshift_now()`

/** A future time by the database's clock, for a row. */
export const inSeconds = (seconds: number) => sql<string>`nightshift_now() + make_interval(secs => ${seconds})`
