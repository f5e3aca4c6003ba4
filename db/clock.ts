import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'

/**
 * Reads the database's clock, in UTC with microseconds. Decisions use only this clock. Tests can
 * change the clock.
 */
export async function databaseTime(db: Db | Trx): Promise<string> {
  const { now } = await db.selectNoFrom(({ fn }) => fn<string>('nightshift_now').as('now')).executeTakeFirstOrThrow()
  return now
}

/**
 * The database's clock, read once per statement, so that a comparison can use an index. The SQL
 * function alone is volatile and would be called for every row. Serves only reads: a decision under
 * a lock must read the clock once it has the lock.
 */
export const onceNow = sql<string>`(select nightshift_now())`

/**
 * The database's clock as a value of a row. A comparison uses `onceNow` instead, because this
 * function would be called for every row.
 */
export const now = sql<string>`nightshift_now()`

/** A future time by the database's clock, as a value of a row. */
export const inSeconds = (seconds: number) => sql<string>`nightshift_now() + make_interval(secs => ${seconds})`
