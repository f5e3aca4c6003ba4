import { sql } from 'kysely'
import { joinNotifications, type Notification, notification } from '../../domain/notification.ts'
import { now, onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { readAddresses } from './address-queues.ts'
import { enqueueJoined } from './deliveries.ts'
import { destinations } from './destinations.ts'

/** As many as one message lists. */
const maxListed = 50

/**
 * Tells by another way what reached nobody: one message to each destination whose address is not among those that failed. Such a message is
 * never the subject of another, so that two receivers that are both gone do not report each other for ever. What no other way can tell stands
 * on Home and in `doctor`, as all of it does. Answers how many messages it was about.
 */
export async function tellGivenUp(db: Db): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const lost = await trx
      .selectFrom('delivery')
      .select(['id', 'incidentId', 'destination', 'notification'])
      .where('givenUpAt', 'is not', null)
      .where('toldElsewhereAt', 'is', null)
      .where(sql<boolean>`given_up_at > nightshift_now() - interval '1 day'`)
      // What only brings a message of Slack up to date has no trigger, and tells nobody anything.
      .where(sql<boolean>`notification->>'trigger' != 'undelivered'`)
      .orderBy('id')
      .limit(maxListed)
      .forUpdate()
      .skipLocked()
      .execute()
    const told = lost.flatMap(
      (each) => notification.safeParse({ ...(each.notification as object), url: '' }).data ?? [],
    )
    const joined = told.length > 0 && worstOf(told)
    const entries = joined ? await otherWays(trx, [...new Set(lost.map(({ destination }) => destination))], joined) : []
    const row = entries.length > 0 && lost[0] ? await lockIncident(trx, lost[0].incidentId) : null
    if (!row) return 0
    const names = [...new Set(lost.map(({ destination }) => destination))].join(', ')
    const text = `${told.length === 1 ? 'A message' : `${told.length} messages`} could not be delivered to ${names}. Health says what the receiver answered.`
    await enqueueJoined(trx, row.id, joinNotifications(told, 'undelivered', text), entries)
    await trx
      .updateTable('delivery')
      .set({ toldElsewhereAt: now })
      .where(
        'id',
        'in',
        lost.map(({ id }) => id),
      )
      .execute()
    return told.length
  })
}

/** What of several decides whom they go to: the first is about an incident of the worst severity. */
function worstOf(told: readonly Notification[]) {
  const { incident } = (told.find((each) => each.incident.severity === 'critical') ?? told[0]) as Notification
  const { id: incidentId, severity, type: incidentType } = incident
  return { incidentId, severity, incidentType, page: told.some(({ page }) => page) }
}

/** Destinations that reach people at other addresses than those that failed. */
async function otherWays(trx: Trx, failed: readonly string[], told: ReturnType<typeof worstOf>): Promise<string[]> {
  const addressOf = await readAddresses(trx)
  const gone = new Set(failed.map(addressOf))
  // Slack has one channel for all messages.
  if (failed.some((destination) => destination.startsWith('slack.'))) gone.add('slack.tell')
  const ways: string[] = []
  for (const { entriesFor } of destinations) ways.push(...(await entriesFor(trx, 'undelivered', told, gone)))
  return ways
}

/** `response`: what the receiver answered last. */
export type GivenUp = { destination: string; count: number; response: string }

/** What reached nobody within a day, by destination. */
export async function givenUpLately(db: Db): Promise<GivenUp[]> {
  return await db
    .selectFrom('delivery')
    .select('destination')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .select(sql<string>`coalesce((array_agg(response order by id desc))[1], '')`.as('response'))
    .where('givenUpAt', '>', sql<string>`${onceNow} - interval '1 day'`)
    .groupBy('destination')
    .orderBy('destination')
    .execute()
}

/** How many messages of the last hour reached nobody, also by no other way. */
export async function countUntold(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('delivery')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('givenUpAt', '>', sql<string>`${onceNow} - interval '1 hour'`)
    .where('toldElsewhereAt', 'is', null)
    .executeTakeFirstOrThrow()
  return count
}
