import { sql } from 'kysely'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { DueDelivery } from './deliveries.ts'

/** Seconds for which a call of Slack may lease the channel: its own 10 s, and time for the rows. */
const leaseSeconds = 30

/**
 * Sets Slack's channel from now on. `channel` is null if there is none: messages that are due for
 * Slack are then never sent. The setting of the worker that started last applies.
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
        response: 'Slack is no longer configured',
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
 * Takes Slack's channel and the oldest message that is due for it. Null if no message is due, or if
 * the channel is not ready. One message is sent at a time over all processes, so that a thread has
 * only one first message, and Slack's limit of one message per second is kept.
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
          // Puts questions first, so that they do not wait behind other messages in a storm of
          // alerts.
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

/** Merges updates of one Slack message, because an update reads the rows when it is sent. */
async function joinSame(trx: Trx, { id, incidentId, destination, notification }: DueDelivery): Promise<void> {
  if (destination === 'slack.tell') return
  await trx
    .updateTable('delivery')
    .set({ status: 'sent', response: 'sent together with another message', finishedAt: now })
    .where('incidentId', '=', incidentId)
    .where('destination', '=', destination)
    .where('notification', '=', JSON.stringify(notification))
    .where('status', '=', 'pending')
    .where('id', '!=', id)
    .execute()
}

/**
 * Releases Slack's channel, which is ready again after that many seconds. Does nothing if the lease
 * has expired.
 */
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
