import { sql } from 'kysely'
import type { Notification } from '../../domain/notification.ts'
import type { StatusPart } from '../../domain/status.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { enqueueJoined } from './deliveries.ts'
import { releaseAllPages } from './release-pages.ts'

/** People hear of a loss when a second look, a minute later, finds it too: a restart is no loss. */
const toldAfterSeconds = 45
/** No process has found it lost for so long: it is done again. */
const doneAfterSeconds = 150

/**
 * Tells by every way which duties are lost, once a loss, and when they are done again. Every API
 * process calls it once a minute with its findings: a loss holds while one of them sees it. Answers
 * what was told now.
 */
export async function tellLostDuties(db: Db, lost: readonly StatusPart[]): Promise<string[]> {
  return await db.transaction().execute(async (trx) => {
    // One process at a time, so that two do not tell the same.
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
      const title = await tell(trx, `${name} is back`, 'It does its job again.', false)
      if (title !== null) told.push(title)
    }
    return told
  })
}

/** Losses of now that were there a minute ago and not told. */
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

/** Forgets what nobody finds lost any more. Answers those that people were told of. */
async function doneAgain(trx: Trx): Promise<string[]> {
  const gone = await trx
    .deleteFrom('lostDuty')
    .where('seenAt', '<', sql<string>`nightshift_now() - make_interval(secs => ${doneAfterSeconds})`)
    .returning(['name', 'toldAt'])
    .execute()
  return gone.filter(({ toldAt }) => toldAt !== null).map(({ name }) => name)
}

/**
 * Carried by the newest incident, since a message of the outbox belongs to one; its words are about
 * Nightshift alone. Null where it reaches nobody yet, without an incident or a destination: it goes
 * out later.
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
