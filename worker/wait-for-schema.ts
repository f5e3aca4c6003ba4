import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Db } from '../db/connect.ts'
import { olderSchema } from '../migrations/migrate.ts'

const lookEveryMs = 1_000

/**
 * Waits until the database answers and has every migration of this build. On an older schema each
 * step of a run would fail, until the run is lost. Logs each reason once.
 */
export async function waitForSchema(db: Db, log: Logger, everyMs = lookEveryMs): Promise<void> {
  for (let said: string | null = null; ; await sleep(everyMs)) {
    const trouble = await olderSchema(db).catch((error) => `the database does not answer: ${(error as Error).message}`)
    if (trouble === null) return
    if (trouble !== said) log.warn(`the worker does not start work yet: ${trouble}`)
    said = trouble
  }
}
