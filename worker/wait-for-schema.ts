import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Db } from '../db/connect.ts'
import { olderSchema } from '../migrations/migrate.ts'

const lookEveryMs = 1_000

/**
 * Waits until the database answers and no migration of this build is missing. On an older schema
 * each step of a run would fail, and be tried again, until the run is lost. Says what it waits for,
 * once a reason.
 */
export async function waitForSchema(db: Db, log: Logger, everyMs = lookEveryMs): Promise<void> {
  for (let said: string | null = null; ; await sleep(everyMs)) {
    const trouble = await olderSchema(db).catch((error) => `the database does not answer: ${(error as Error).message}`)
    if (trouble === null) return
    if (trouble !== said) log.warn(`the worker takes nothing up yet: ${trouble}`)
    said = trouble
  }
}
