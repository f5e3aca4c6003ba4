import { sql } from 'kysely'
import { slotWithinSeconds } from '../../domain/page-gate.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { isHeld, releasePage } from './page-hold.ts'

/** Releases delayed pages when their time is over, or because Nightshift itself does not work. */

const perRound = 100

/** Whether no run took the incident of a page in time. */
const isNobodys = sql<boolean>`(incident.status = 'open'
  and incident.created_at <= (select nightshift_now()) - make_interval(secs => ${slotWithinSeconds}))`
const isTimeOver = sql<boolean>`(hold_until <= ${onceNow})`

/**
 * Releases pages whose incident no run took in time, and records the pages that were sent because
 * their delay was over. A round waits for no lock, and an error in one incident delays no other
 * incident. Returns how many pages were released.
 */
export async function releaseDuePages(db: Db): Promise<number> {
  const due = await db
    .selectFrom('delivery')
    .innerJoin('incident', 'incident.id', 'delivery.incidentId')
    .select('delivery.incidentId')
    .distinct()
    .where(isHeld)
    .where((where) => where.or([isTimeOver, isNobodys]))
    .limit(perRound)
    .execute()
  const failures: unknown[] = []
  for (const { incidentId } of due)
    await db
      .transaction()
      .execute((trx) => releaseByClock(trx, incidentId))
      .catch((error) => failures.push(error))
  if (failures.length > 0) throw failures[0]
  return due.length
}

async function releaseByClock(trx: Trx, incidentId: string): Promise<void> {
  const row = await trx
    .selectFrom('incident')
    .select(isNobodys.as('isNobodys'))
    .where('id', '=', incidentId)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
  if (!row) return
  const over = await trx
    .selectFrom('delivery')
    .select('id')
    .where('incidentId', '=', incidentId)
    .where(isHeld)
    .where(isTimeOver)
    .limit(1)
    .executeTakeFirst()
  if (over) await release(trx, incidentId, 'time')
  else if (row.isNobodys) await release(trx, incidentId, 'no_slot')
}

/** Releases all delayed pages, because a vital part failed. The caller reports the failure. */
export async function releaseAllPages(trx: Trx): Promise<void> {
  const held = await trx.selectFrom('delivery').select('incidentId').distinct().where(isHeld).execute()
  if (held.length === 0) return
  const ids = held.map(({ incidentId }) => incidentId)
  await trx.selectFrom('incident').select('id').where('id', 'in', ids).orderBy('id').forUpdate().execute()
  for (const id of ids) await release(trx, id, 'duty')
}

/**
 * Releases the page of an incident and records this in the log. Takes the incident's lock before
 * the lock of its messages.
 */
export async function release(trx: Trx, incidentId: string, why: Parameters<typeof releasePage>[2]): Promise<void> {
  const held = await trx
    .selectFrom('delivery')
    .select('id')
    .where('incidentId', '=', incidentId)
    .where(isHeld)
    .limit(1)
    .executeTakeFirst()
  if (!held) return
  await trx.selectFrom('incident').select('id').where('id', '=', incidentId).forUpdate().execute()
  const note = await releasePage(trx, incidentId, why)
  if (note) await append(trx, incidentId, null, note)
}
