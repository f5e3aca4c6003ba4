import type { Db } from '../db/connect.ts'
import { newerSchema } from '../migrations/migrate.ts'

const everyMs = 15_000

/**
 * Checks at intervals whether a newer build changed the schema so that this build may not use the
 * database any more, and reports that change once. Returns a function that stops the checks.
 */
export function watchSchema(db: Db, onRefused: (why: string) => void): () => void {
  const timer = setInterval(async () => {
    // Reports nothing while the database is unreachable: code that uses the database waits for it.
    const why = await newerSchema(db).catch(() => null)
    if (why === null) return
    clearInterval(timer)
    onRefused(why)
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
