import { sql } from 'kysely'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { DueDelivery } from './deliveries.ts'

/** How long one call may hold the channel: its own 10 s and room for the rows. */
const leaseSeconds = 30

/**
 * Sets where people are notified from now on; null: nowhere, and what is due for Slack never goes
 * out. The worker that starts last is right.
 */
export async function useSlackChannel(db: Db, channel: string | null): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx
      .updateTable('slackChannel')
      .set({ active: false })
      .where('active', '=', true)
      .where(sql<boolean>`channel is distinct from ${channel}`)
      .execute()
    if (channel !== null) {
      await trx
        .insertInto('slackChannel')
        .values({ channel, active: true })
        .onConflict((conflict) => conflict.column('channel').doUpdateSet({ active: true }))
        .execute()
      return
    }
    await trx
      .updateTable('delivery')
      .set({
        status: 'dropped',
        response: 'Slack is configured no more',
        leasedUntil: null,
        finishedAt: now,
      })
      .where('destination', 'like', 'slack.%')
      .where('status', 'in', ['pending', 'sending'])
      .execute()
  })
}

export type LeasedChannel = { channel: string; until: string; delivery: DueDelivery }

/**
 * Takes the channel and what is due for it, oldest first; null when there is none or it is not
 * ready. One at a time over all processes: a thread has one first message, and Slack's one message
 * a second is kept.
 */
export async function leaseSlackChannel(db: Db): Promise<LeasedChannel | null> {
  return await db.transaction().execute(async (trx) => {
    const free = await trx
      .selectFrom('slackChannel')
      .select('channel')
      .where('active', '=', true)
      .where('readyAt', '<=', now)
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()
    if (!free) return null
    const until = sql<string>`nightshift_now() + make_interval(secs => ${leaseSeconds})`
    const delivery = await trx
      .updateTable('delivery')
      .set({ status: 'sending', leasedUntil: until })
      .where('id', '=', (eb) =>
        eb
          .selectFrom('delivery')
          .select('id')
          .where('destination', 'like', 'slack.%')
          .where('nextAt', '<=', now)
          .where((where) =>
            where.or([
              where('status', '=', 'pending'),
              where.and([where('status', '=', 'sending'), where('leasedUntil', '<=', now)]),
            ]),
          )
          // In a storm of alerts a question does not wait behind news of what is known already.
          .orderBy(sql`array_position(array['slack.tell', 'slack.card'], destination)`)
          .orderBy('nextAt')
          .orderBy('id')
          .limit(1)
          .forUpdate(),
      )
      .returning(['id', 'messageId', 'destination', 'incidentId', 'attempt', 'notification', 'createdAt'])
      .executeTakeFirst()
    if (!delivery) return null
    await joinSame(trx, delivery)
    const leased = await trx
      .updateTable('slackChannel')
      .set({ readyAt: until })
      .where('channel', '=', free.channel)
      .returning(['channel', 'readyAt'])
      .executeTakeFirstOrThrow()
    return { channel: leased.channel, until: leased.readyAt, delivery }
  })
}

/** What brings the same message up to date is done by one of them: it reads the rows after this. */
async function joinSame(trx: Trx, { id, incidentId, destination, notification }: DueDelivery): Promise<void> {
  if (destination === 'slack.tell') return
  await trx
    .updateTable('delivery')
    .set({ status: 'sent', response: 'told together with another', finishedAt: now })
    .where('incidentId', '=', incidentId)
    .where('destination', '=', destination)
    .where('notification', '=', JSON.stringify(notification))
    .where('status', '=', 'pending')
    .where('id', '!=', id)
    .execute()
}

/** Lets the channel go, ready again after that many seconds; an expired lease holds nothing. */
export async function releaseSlackChannel(
  trx: Trx,
  { channel, until }: { channel: string; until: string },
  seconds: number,
): Promise<void> {
  await trx
    .updateTable('slackChannel')
    .set({ readyAt: sql`nightshift_now() + make_interval(secs => ${seconds})` })
    .where('channel', '=', channel)
    .where('readyAt', '=', until)
    .execute()
}
