import { sql } from 'kysely'
import type { Notification } from '../../domain/notification.ts'
import type { StatusPart } from '../../domain/status.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { enqueueJoined } from './deliveries.ts'
import { releaseAllPages } from './release-pages.ts'

/**
 * Seconds of a failure until people are notified. A check a minute after the first must fail too:
 * by then a restart is over.
 */
const toldAfterSeconds = 45
/** Seconds without a failed check after which the part counts as working again. */
const doneAfterSeconds = 150

/**
 * Reports failed vital parts to every destination, once for each failure, and reports when they
 * work again. Every API process calls this function once a minute with its findings. A failure
 * lasts while at least one process finds it. Returns the titles of the new reports.
 */
export async function tellLostDuties(db: Db, lost: readonly StatusPart[]): Promise<string[]> {
  return await db.transaction().execute(async (trx) => {
    // Takes a lock, so that two processes do not report one failure twice.
    await sql`select pg_advisory_xact_lock(hashtextextended('lost duties', 0))`.execute(trx)
    for (const { name } of lost)
      await trx
        .insertInto('lostDuty')
        .values({ name, since: now, seenAt: now })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ seenAt: now }))
        .execute()
    if (lost.length > 0) await releaseAllPages(trx)
    const isNew = new Set(await newlyLost(trx, lost))
    const told: string[] = []
    for (const { name, detail, remedy } of lost.filter((part) => isNew.has(part.name))) {
      const title = await tell(trx, `${name} is lost`, remedy ? `${detail} To do: ${remedy}.` : detail, true)
      if (title === null) continue
      await trx.updateTable('lostDuty').set({ toldAt: now }).where('name', '=', name).execute()
      told.push(title)
    }
    for (const name of await doneAgain(trx)) {
      const title = await tell(trx, `${name} is back`, 'This part works again.', false)
      if (title !== null) told.push(title)
    }
    return told
  })
}

/** Lists current failures that existed a minute ago and were not reported yet. */
async function newlyLost(trx: Trx, lost: readonly StatusPart[]): Promise<string[]> {
  if (lost.length === 0) return []
  const rows = await trx
    .selectFrom('lostDuty')
    .select('name')
    .where(
      'name',
      'in',
      lost.map(({ name }) => name),
    )
    .where('toldAt', 'is', null)
    .where('since', '<', sql<string>`nightshift_now() - make_interval(secs => ${toldAfterSeconds})`)
    .execute()
  return rows.map(({ name }) => name)
}

/** Deletes failures that no process finds any more. Returns the failures that were reported. */
async function doneAgain(trx: Trx): Promise<string[]> {
  const gone = await trx
    .deleteFrom('lostDuty')
    .where('seenAt', '<', sql<string>`nightshift_now() - make_interval(secs => ${doneAfterSeconds})`)
    .returning(['name', 'toldAt'])
    .execute()
  return gone.filter(({ toldAt }) => toldAt !== null).map(({ name }) => name)
}

/**
 * Sends a message about Nightshift itself. Every message of the outbox belongs to an incident, so
 * this one is stored with the newest incident. Null if there is no incident or no destination yet;
 * the message is then sent later.
 */
async function tell(trx: Trx, what: string, reason: string, page: boolean): Promise<string | null> {
  const title = `Nightshift: ${what}`
  const carrier = await trx.selectFrom('incident').select('id').orderBy('createdAt', 'desc').limit(1).executeTakeFirst()
  if (!carrier) return null
  const told: Notification = {
    trigger: 'duty',
    incident: {
      id: carrier.id,
      type: 'nightshift',
      severity: page ? 'critical' : 'info',
      status: 'open',
      title,
      resource: null,
    },
    reason,
    approval: null,
    page,
    alertsFiring: 0,
    incidents: [],
    lines: [],
    url: '',
    at: new Date().toISOString(),
    headHash: null,
  }
  return (await enqueueJoined(trx, carrier.id, told)) ? title : null
}
