import { sql } from 'kysely'
import { joinNotifications, type Notification, notification } from '../../domain/notification.ts'
import { now, onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { readAddresses } from './address-queues.ts'
import { enqueueJoined, entryOf } from './deliveries.ts'

/** Maximum number of undelivered messages that one report lists. */
const maxListed = 50

/**
 * Reports undelivered messages in another way: one message to each destination whose address did
 * not fail. A report is never the subject of another report; otherwise two unreachable receivers
 * would report each other for ever. Home and `doctor` also show the undelivered messages. Returns
 * the number of messages that were reported.
 */
export async function tellGivenUp(db: Db): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const lost = await trx
      .selectFrom('delivery')
      .select(['id', 'incidentId', 'destination', 'notification'])
      .where('givenUpAt', 'is not', null)
      .where('toldElsewhereAt', 'is', null)
      .where(sql<boolean>`given_up_at > nightshift_now() - interval '1 day'`)
      // Leaves out reports themselves, and updates of Slack messages, which have no trigger and
      // notify nobody.
      .where(sql<boolean>`notification->>'trigger' != 'undelivered'`)
      .orderBy('id')
      .limit(maxListed)
      .forUpdate()
      .skipLocked()
      .execute()
    const told = lost.flatMap(
      (each) => notification.safeParse({ ...(each.notification as object), url: '' }).data ?? [],
    )
    const [first] = told
    if (!first || !lost[0]) return 0
    const failed = [...new Set(lost.map(({ destination }) => destination))]
    const names = failed.join(', ')
    const text = `${told.length === 1 ? 'A message' : `${told.length} messages`} could not be delivered to ${names}. The page Health shows the answer of the receiver.`
    const joined = joinNotifications(told, 'undelivered', text)
    if (
      !(await enqueueJoined(trx, lost[0].incidentId, joined, {
        told: worstOf(told),
        gone: await goneAddresses(trx, failed),
      }))
    )
      return 0
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

/**
 * Finds the most severe notification, which determines the destinations of a message about several
 * notifications.
 */
function worstOf(told: readonly Notification[]) {
  const worst = (told.find(({ incident }) => incident.severity === 'critical') ?? told[0]) as Notification
  return { ...entryOf(worst), page: told.some(({ page }) => page) }
}

/**
 * Returns the addresses that would fail again. Destinations with any other address can still reach
 * people.
 */
async function goneAddresses(trx: Trx, failed: readonly string[]): Promise<Set<string>> {
  const addressOf = await readAddresses(trx)
  const gone = new Set(failed.map(addressOf))
  // Adds all entries of Slack, because Slack has one channel for all messages.
  if (failed.some((destination) => destination.startsWith('slack.'))) gone.add('slack.tell')
  return gone
}

/** Messages to a destination that reached nobody. `response`: the last response of the receiver. */
export type GivenUp = { destination: string; count: number; response: string }

/** Lists messages of the last day that reached nobody, by destination. */
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

/** Counts messages of the last hour that reached nobody through any destination. */
export async function countUntold(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('delivery')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('givenUpAt', '>', sql<string>`${onceNow} - interval '1 hour'`)
    .where('toldElsewhereAt', 'is', null)
    .executeTakeFirstOrThrow()
  return count
}
