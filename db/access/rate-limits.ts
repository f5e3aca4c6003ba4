import { sql } from 'kysely'
import type { Db } from '../connect.ts'

export type RateLimit = { attempts: number; seconds: number }

/**
 * The count of attempts. `first`: the attempt is the first over the limit. Only this attempt is
 * logged.
 */
type AttemptCount = { over: false } | { over: true; first: boolean; retryAfterSeconds: number }

/**
 * Counts an attempt by the database's clock, so that two API processes share one count. Writes
 * nothing for an attempt over the limit, so that a flood of attempts causes only reads.
 */
export async function countAttempt(db: Db, subject: string, limit: RateLimit): Promise<AttemptCount> {
  const before = await db
    .selectFrom('attempt')
    .select(secondsLeft.as('seconds'))
    .where('subject', '=', subject)
    .where('count', '>', limit.attempts)
    .where('resetsAt', '>', sql<string>`nightshift_now()`)
    .executeTakeFirst()
  if (before) return { over: true, first: false, retryAfterSeconds: Math.max(1, before.seconds) }
  const ends = sql<string>`nightshift_now() + make_interval(secs => ${limit.seconds})`
  const now = await db
    .insertInto('attempt')
    .values({ subject, count: 1, resetsAt: ends })
    .onConflict((conflict) =>
      conflict.column('subject').doUpdateSet({
        count: sql<number>`case when attempt.resets_at <= nightshift_now() then 1 else attempt.count + 1 end`,
        resetsAt: sql<string>`case when attempt.resets_at <= nightshift_now() then ${ends} else attempt.resets_at end`,
      }),
    )
    .returning(['count', secondsLeft.as('seconds')])
    .executeTakeFirstOrThrow()
  if (now.count === 1) await forgetOld(db)
  if (now.count <= limit.attempts) return { over: false }
  return { over: true, first: now.count === limit.attempts + 1, retryAfterSeconds: Math.max(1, now.seconds) }
}

/** Resets the count of attempts of a subject. */
export async function forgetAttempts(db: Db, subject: string): Promise<void> {
  await db.deleteFrom('attempt').where('subject', '=', subject).execute()
}

const secondsLeft = sql<number>`ceil(extract(epoch from attempt.resets_at - nightshift_now()))::int`

/**
 * Deletes a few old counts in each call, so that a sender that changes addresses cannot fill the
 * table.
 */
async function forgetOld(db: Db): Promise<void> {
  await sql`
    delete from attempt where subject in (
      select subject from attempt where resets_at < nightshift_now() - interval '1 hour'
      limit 20 for update skip locked)`.execute(db)
}
