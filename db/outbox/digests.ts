import { sql } from 'kysely'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { readSettings } from '../settings.ts'
import { enqueueNotification, hasDestination } from './deliveries.ts'

const listed = 50

/**
 * One message to each destination, every `escalation.remind` seconds, that lists what people have and still fires: escalated
 * incidents, and those a person closed and was reminded of once. Nothing that somebody took is in it. Answers how many
 * incidents it lists.
 */
export async function sendDigests(db: Db): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const remindSeconds = (await readSettings(trx)).value<number>('escalation.remind')
    if (!(await isDue(trx, remindSeconds))) return 0
    const found = await stillFiring(trx, remindSeconds)
    const [first] = found
    if (first === undefined) return 0
    await trx
      .insertInto('digest')
      .values({ destination: 'people', sentAt: now })
      .onConflict((conflict) => conflict.column('destination').doUpdateSet({ sentAt: now }))
      .execute()
    const row = await lockIncident(trx, first.id)
    if (!row) return 0
    const text =
      found.length === 1
        ? 'One incident that people have still fires'
        : `${found.length} incidents that people have still fire`
    await enqueueNotification(trx, row, 'digest', text, { page: false, incidents: found })
    return found.length
  })
}

/** So long after a page that was not needed, so that a night's are one message in the morning. */
const sparedHours = 4

/**
 * One message to each destination that lists the pages that were not needed, some hours after the first of them. Where no way out takes it,
 * they stand on Reports alone. Answers how many it lists.
 */
export async function sendSpared(db: Db): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    // Two watchdogs at once: the second waits here, and then finds nothing left to say.
    await sql`select pg_advisory_xact_lock(hashtextextended('spared', 0))`.execute(trx)
    if (!(await hasDestination(trx, 'spared'))) return 0
    const found = await untoldSpared(trx)
    const [first] = found
    if (first === undefined || !found.some(({ isDue }) => isDue)) return 0
    const row = await lockIncident(trx, first.id)
    if (!row) return 0
    const incidents = found.map(({ isDue: _, ...incident }) => incident)
    const text = `${found.length === 1 ? 'One page was' : `${found.length} pages were`} not sent: the repair held and the alert ended while it waited`
    await enqueueNotification(trx, row, 'spared', text, { incidents })
    await trx
      .updateTable('delivery')
      .set({ toldElsewhereAt: now })
      .where('releasedWhy', '=', 'repaired')
      .where(
        'incidentId',
        'in',
        found.map(({ id }) => id),
      )
      .execute()
    return found.length
  })
}

async function untoldSpared(trx: Trx) {
  return await trx
    .selectFrom('incident')
    .innerJoin('delivery', 'delivery.incidentId', 'incident.id')
    .select(['incident.id', 'title', 'severity', 'incident.status', 'incident.createdAt as since'])
    .select(
      sql<boolean>`bool_or(released_at <= (select nightshift_now()) - make_interval(hours => ${sparedHours}))`.as(
        'isDue',
      ),
    )
    .where('releasedWhy', '=', 'repaired')
    .where('toldElsewhereAt', 'is', null)
    .groupBy('incident.id')
    .orderBy('incident.createdAt')
    .limit(listed)
    .execute()
}

async function isDue(trx: Trx, remindSeconds: number): Promise<boolean> {
  // Two watchdogs at once: the second waits here, and then finds that it is not due.
  await sql`select pg_advisory_xact_lock(hashtextextended('digest', 0))`.execute(trx)
  const row = await trx
    .selectFrom('digest')
    .select('destination')
    .where('destination', '=', 'people')
    .where('sentAt', '>', sql<string>`nightshift_now() - make_interval(secs => ${remindSeconds})`)
    .executeTakeFirst()
  return row === undefined
}

/** Closed and told of for at least one interval: the closing itself was the first message. */
async function stillFiring(trx: Trx, remindSeconds: number) {
  return await trx
    .selectFrom('incident')
    .select(['id', 'title', 'severity', 'status', 'createdAt as since'])
    .where('ownerId', 'is', null)
    .where((where) =>
      where.or([
        where('status', '=', 'escalated'),
        where.and([
          where('status', '=', 'resolved'),
          where('closedBy', '=', 'person'),
          where('remindedAt', 'is not', null),
        ]),
      ]),
    )
    .where(
      sql<boolean>`coalesce(reminded_at, closed_at) <= (select nightshift_now()) - make_interval(secs => ${remindSeconds})`,
    )
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('alert')
          .select('alert.id')
          .whereRef('alert.incidentId', '=', 'incident.id')
          .where('alert.status', '=', 'firing'),
      ),
    )
    .orderBy(sql`case severity when 'critical' then 0 when 'warning' then 1 else 2 end`)
    .orderBy('createdAt')
    .limit(listed)
    .execute()
}
