import { sql } from 'kysely'
import { now, onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'

/**
 * Seconds for which a note that a run waits is valid: longer than one attempt of a step and the
 * longest pause after it.
 */
const freshSeconds = 45

/** Services that a step of a run can wait for. */
export type WaitedFor = 'core_api' | 'database'

type Run = { incidentId: string; attempt: number }

/**
 * Records what a run waits for, at each attempt of a step. `waitsFor` is null when the run no
 * longer waits.
 */
export async function noteWait(db: Db, { incidentId, attempt }: Run, waitsFor: WaitedFor | null): Promise<void> {
  if (waitsFor === null) {
    await db.deleteFrom('runWait').where('incidentId', '=', incidentId).where('attempt', '=', attempt).execute()
    return
  }
  await db
    .insertInto('runWait')
    .values({ incidentId, attempt, waitsFor })
    .onConflict((conflict) =>
      conflict.column('incidentId').doUpdateSet({
        attempt,
        waitsFor,
        seenAt: now,
        since: sql<string>`case when run_wait.attempt = ${attempt} and run_wait.waits_for = ${waitsFor}
          and run_wait.seen_at > nightshift_now() - make_interval(secs => ${freshSeconds})
          then run_wait.since else nightshift_now() end`,
      }),
    )
    .execute()
}

/** Reads what the run of an incident waits for, and since when; null if it does not wait. */
export async function waitOf(db: Db, incidentId: string): Promise<{ for: WaitedFor; since: string } | null> {
  const row = await db
    .selectFrom('runWait')
    .select(['waitsFor as for', 'since'])
    .where('incidentId', '=', incidentId)
    .where('seenAt', '>', sql<string>`${onceNow} - make_interval(secs => ${freshSeconds})`)
    .executeTakeFirst()
  return row ?? null
}
