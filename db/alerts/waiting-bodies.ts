import { sql } from 'kysely'
import type { Alert } from '../../domain/alert.ts'
import type { WaitingBodies } from '../../domain/alert-body.ts'
import { cleanse } from '../../safety/redact.ts'
import { inSeconds, now, onceNow } from '../clock.ts'
import { type Db, isTransient, type Trx } from '../connect.ts'
import type { IngestResult } from './alerts.ts'
import { alertsPerTransaction, keyOf, takeCleansed } from './ingest-body.ts'
import { dropOldRefusals, noteRefusedBody } from './refused-bodies.ts'

/**
 * Stores a body whole that is too large to take in while its sender waits, and takes it up in
 * parts: a first part alone would lose the ends behind it. One part at a time over all workers, the
 * oldest body first, so that a sender's words stay in order. A part is taken up and removed in one
 * transaction: a worker that dies leaves it, and nothing counts twice.
 */

/**
 * A part that failed this often goes alert by alert; one that fails alone is named and left out,
 * and holds nobody up.
 */
const maxTries = 3
const retrySeconds = 5
const keptDays = 7

/** Does one of these alerts wait already? What is said of it later has to come after. */
export async function isAnyWaiting(db: Db, alerts: readonly Alert[]): Promise<boolean> {
  const { rows } = await sql<{ isWaiting: boolean }>`
    select is_any_waiting(${alerts.map(keyOf)}::text[]) as is_waiting`.execute(db)
  return rows[0]?.isWaiting === true
}

/** Stores a body for the worker, all of it or nothing. */
export async function storeWaiting(
  db: Db,
  { dialect, sender, alerts }: { dialect: string; sender: string; alerts: readonly Alert[] },
): Promise<{ body: number; parts: number }> {
  const parts = Math.ceil(alerts.length / alertsPerTransaction)
  return await db.transaction().execute(async (trx) => {
    const { id } = await trx
      .insertInto('waitingBody')
      .values({ dialect, sender, alerts: alerts.length, parts, nextAt: now })
      .returning('id')
      .executeTakeFirstOrThrow()
    // Part by part, so that other requests have their turn while a long body is cleansed.
    for (let part = 0; part < parts; part += 1) {
      const own = alerts.slice(part * alertsPerTransaction, (part + 1) * alertsPerTransaction)
      await trx
        .insertInto('waitingPart')
        .values({
          bodyId: id,
          part,
          alerts: JSON.stringify(own.map((alert) => cleanse(alert))),
          keys: own.map(keyOf),
        })
        .execute()
    }
    return { body: id, parts }
  })
}

/**
 * Takes the next part up. Null: none waits, another worker is at one, or a failed one is not due.
 * Throws the cause once it is noted: the part stays.
 */
export async function takeNextPart(db: Db): Promise<IngestResult[] | null> {
  let next: NextPart | null = null
  try {
    return await db.transaction().execute(async (trx) => {
      next = await lockNext(trx)
      if (!next) return null
      const own = next.failures < maxTries ? next.alerts : next.alerts.slice(0, 1)
      const taken = await takeCleansed(trx, own)
      const refused = taken.filter(({ outcome }) => outcome === 'refused')
      if (refused[0]) await noteUnstorable(trx, next, refused[0].reason ?? '')
      await leaveOut(trx, next, { alerts: own.length, refused: refused.length })
      return taken
    })
  } catch (error) {
    if (next) await noteFailure(db, next, error)
    throw error
  }
}

type NextPart = { id: number; part: number; dialect: string; sender: string; failures: number; alerts: Alert[] }

/** Only who holds the lock of all bodies takes a part. */
async function lockNext(trx: Trx): Promise<NextPart | null> {
  const { rows } = await sql<{ isOwn: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('waiting_body', 0)) as is_own`.execute(trx)
  if (!rows[0]?.isOwn) return null
  const body = await trx
    .selectFrom('waitingBody')
    .innerJoin('waitingPart', 'waitingPart.bodyId', 'waitingBody.id')
    .select(['id', 'part', 'dialect', 'sender', 'failures', 'waitingPart.alerts'])
    .select(sql<boolean>`next_at <= nightshift_now()`.as('isDue'))
    .orderBy('id')
    .orderBy('part')
    .limit(1)
    .executeTakeFirst()
  return body?.isDue ? body : null
}

/** Removes what is done with from the front of the part. The body ends with its last part. */
async function leaveOut(trx: Trx, { id, part, alerts }: NextPart, done: { alerts: number; refused: number }) {
  const rest = alerts.slice(done.alerts)
  if (rest.length > 0) {
    await trx
      .updateTable('waitingPart')
      .set({ alerts: JSON.stringify(rest) })
      .where('bodyId', '=', id)
      .where('part', '=', part)
      .execute()
  } else {
    await trx.deleteFrom('waitingPart').where('bodyId', '=', id).where('part', '=', part).execute()
  }
  await sql`
    update waiting_body set refused = refused + ${done.refused}, next_at = nightshift_now(), taken_at = nightshift_now(),
      failures = ${rest.length > 0 ? maxTries : 0},
      ended_at = case when exists (select from waiting_part where body_id = ${id}) then null else nightshift_now() end
    where id = ${id}`.execute(trx)
}

/**
 * Counts a failed try, unless another worker did. An alert is never left out for what a later try
 * can tell.
 */
async function noteFailure(db: Db, next: NextPart, error: unknown): Promise<void> {
  const failures = next.failures + 1
  const isGivenUp = failures > maxTries && !isTransient(error)
  await db
    .transaction()
    .execute(async (trx) => {
      const noted = await trx
        .updateTable('waitingBody')
        .set({ failures: Math.min(failures, maxTries), nextAt: inSeconds(retrySeconds) })
        .where('id', '=', next.id)
        .where('failures', '=', next.failures)
        .returning('id')
        .executeTakeFirst()
      if (!noted || !isGivenUp) return
      await noteUnstorable(trx, next, (error as Error).message)
      await leaveOut(trx, next, { alerts: 1, refused: 1 })
    })
    // The database may be what is away.
    .catch(() => undefined)
}

async function noteUnstorable(trx: Trx, { sender, dialect }: NextPart, reason: string): Promise<void> {
  await noteRefusedBody(trx, { sender, dialect, code: 'UNSTORABLE', reason })
}

/** What waits to be taken up, since when, and how long nothing of it was. */
export async function waitingBodies(db: Db): Promise<WaitingBodies> {
  const { rows } = await sql<WaitingBodies>`
    select count(distinct body.id)::int as bodies, coalesce(sum(jsonb_array_length(part.alerts)), 0)::int as alerts,
      coalesce(extract(epoch from ${onceNow} - min(body.received_at)), 0)::float8 as oldest_seconds,
      coalesce(extract(epoch from ${onceNow} - greatest(min(body.received_at), (select max(taken_at) from waiting_body))), 0)::float8
        as idle_seconds
    from waiting_body body join waiting_part part on part.body_id = body.id`.execute(db)
  return rows[0]!
}

/** Forgets bodies that were taken up long ago. */
export async function dropOldBodies(db: Db): Promise<void> {
  await sql`
    delete from waiting_body where ended_at < ${onceNow} - make_interval(days => ${keptDays})`.execute(db)
  await dropOldRefusals(db)
}
