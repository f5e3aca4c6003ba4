import { sql } from 'kysely'
import type { Db } from './connect.ts'

/** Runs work in at most one process. Returns null at once if work with this name runs. */
export async function withAdvisoryLock<T>(db: Db, name: string, work: () => Promise<T>): Promise<T | null> {
  return await db.connection().execute(async (connection) => {
    const { rows } = await sql<{ taken: boolean }>`
      select pg_try_advisory_lock(hashtextextended(${name}, 0)) as taken`.execute(connection)
    if (!rows[0]?.taken) return null
    try {
      return await work()
    } finally {
      await sql`select pg_advisory_unlock(hashtextextended(${name}, 0))`.execute(connection)
    }
  })
}
