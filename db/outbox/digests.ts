import { sql } from 'kysely'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { readSettings } from '../settings.ts'
import { enqueueNotification } from './deliveries.ts'

const listed = 50

/**
 * Sends one message to each destination every `escalation.remind` seconds. The message lists
 * incidents that are left to people and still fire: escalated incidents, and incidents that a
 * person closed and that already had one reminder. Leaves out incidents with an owner. Returns how
 * many incidents are listed.
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
        ? 'The alert of one incident that is left to people still fires'
        : `The alerts of ${found.length} incidents that are left to people still fire`
    await enqueueNotification(trx, row, 'digest', text, { page: false, incidents: found })
    return found.length
  })
}

async function isDue(trx: Trx, remindSeconds: number): Promise<boolean> {
  // Makes a second watchdog wait. It then finds no digest due.
  await sql`select pg_advisory_xact_lock(hashtextextended('digest', 0))`.execute(trx)
  const row = await trx
    .selectFrom('digest')
    .select('destination')
    .where('destination', '=', 'people')
    .where('sentAt', '>', sql<string>`nightshift_now() - make_interval(secs => ${remindSeconds})`)
    .executeTakeFirst()
  return row === undefined
}

/**
 * Lists incidents that are left to people and still fire, if their last reminder is at least one
 * interval ago. The closing of an incident counts as its first reminder.
 */
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
