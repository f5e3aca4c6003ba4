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
 * Stores a request body that is too large to process during its request, and processes it in parts.
 * The whole body is stored first, because with its first part alone, ends in later parts would be
 * lost. Over all workers only one part is processed at a time, the oldest body first, so that the
 * order of a sender is kept. A part is processed and removed in one transaction. If a worker dies,
 * the part therefore stays, and no alert counts twice.
 */

/**
 * Attempts after which the alerts of a part are processed one by one. An alert that fails alone is
 * reported and left out, so that it does not block the remaining alerts.
 */
const maxTries = 3
const retrySeconds = 5
const keptDays = 7

/**
 * Whether one of these alerts is in a body that waits, so that later requests about it must wait
 * too.
 */
export async function isAnyWaiting(db: Db, alerts: readonly Alert[]): Promise<boolean> {
  const { rows } = await sql<{ isWaiting: boolean }>`
    select is_any_waiting(${alerts.map(keyOf)}::text[]) as is_waiting`.execute(db)
  return rows[0]?.isWaiting === true
}

/** Stores a request body for the worker, completely or not at all. */
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
    // Removes secrets part by part, so that the process can answer requests in between.
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
 * Processes the next part of a body that waits. Null if no part waits, if another worker has a
 * part, or if a part that failed is not due yet. On an error, records the cause and throws it; the
 * part stays.
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

/** Returns the next part of a body. Null if another transaction has the one lock for all bodies. */
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

/** Removes processed alerts from the beginning of a part. A body ends with its last part. */
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
 * Counts a failed attempt to process a part, unless another worker already counted it. Never leaves
 * out an alert for a fault that may be temporary.
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
    // Ignores an error of this write, because the database itself may be unavailable.
    .catch(() => undefined)
}

async function noteUnstorable(trx: Trx, { sender, dialect }: NextPart, reason: string): Promise<void> {
  await noteRefusedBody(trx, { sender, dialect, code: 'UNSTORABLE', reason })
}

/**
 * Counts the bodies that wait, with the age of the oldest body and the time since a part was last
 * processed.
 */
export async function waitingBodies(db: Db): Promise<WaitingBodies> {
  const { rows } = await sql<WaitingBodies>`
    select count(distinct body.id)::int as bodies, coalesce(sum(jsonb_array_length(part.alerts)), 0)::int as alerts,
      coalesce(extract(epoch from ${onceNow} - min(body.received_at)), 0)::float8 as oldest_seconds,
      coalesce(extract(epoch from ${onceNow} - greatest(min(body.received_at), (select max(taken_at) from waiting_body))), 0)::float8
        as idle_seconds
    from waiting_body body join waiting_part part on part.body_id = body.id`.execute(db)
  return rows[0]!
}

/** Deletes the rows of bodies that were processed long ago. */
export async function dropOldBodies(db: Db): Promise<void> {
  await sql`
    delete from waiting_body where ended_at < ${onceNow} - make_interval(days => ${keptDays})`.execute(db)
  await dropOldRefusals(db)
}
