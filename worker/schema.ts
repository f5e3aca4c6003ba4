import type { Db } from '../db/connect.ts'
import { newerSchema } from '../migrations/migrate.ts'

const everyMs = 15_000

/**
 * Looks now and then whether a newer build made the schema one that this build may not run on, and
 * says so once. Answers how to stop.
 */
export function watchSchema(db: Db, onRefused: (why: string) => void): () => void {
  const timer = setInterval(async () => {
    // A database that is away says nothing: what needs it waits by itself.
    const why = await newerSchema(db).catch(() => null)
    if (why === null) return
    clearInterval(timer)
    onRefused(why)
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
