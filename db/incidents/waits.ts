import { sql } from 'kysely'
import { now, onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'

/** Longer than one try and the longest pause after it: an older note is a dead worker's. */
const freshSeconds = 45

/** What a step of a run can wait for because it does not answer. */
export type WaitedFor = 'core_api' | 'database'

type Run = { incidentId: string; attempt: number }

/** Notes what a run waits for now, at each of its tries; null when it waits no more. */
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

/** What the incident's run waits for, and since when; null where it waits for nothing. */
export async function waitOf(db: Db, incidentId: string): Promise<{ for: WaitedFor; since: string } | null> {
  const row = await db
    .selectFrom('runWait')
    .select(['waitsFor as for', 'since'])
    .where('incidentId', '=', incidentId)
    .where('seenAt', '>', sql<string>`${onceNow} - make_interval(secs => ${freshSeconds})`)
    .executeTakeFirst()
  return row ?? null
}
