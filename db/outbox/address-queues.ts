import { sql } from 'kysely'
import { addressOf, destinationPrefix, isReadable } from '../../domain/destination.ts'
import { sha256 } from '../../domain/digest.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { systemScope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import type { DueDelivery } from './deliveries.ts'
import { listDestinations } from './destination-rows.ts'

/**
 * Queues messages by address, because the limit of a receiver applies to everything that is sent to
 * its address, whatever the name of the destination. One message is sent at a time over all
 * processes: the most severe first, then the oldest.
 */

/** Seconds for which a worker may lease an address: the receiver's 30 s, and time for the rows. */
const leaseSeconds = 45
/** Seconds of waiting after which messages are sent together. */
const maxAloneSeconds = 120
/** Maximum number of messages in one digest. */
const maxTogether = 50

/** `address`: a digest, because the address itself may contain a credential or a subscription. */
export type AddressQueue = { address: string; destinations: string[] }

/** Whether messages to this address keep their order within an incident. */
const isThreaded = (address: string) => /^(pagerduty|email)\./.test(address)
/**
 * Whether messages to this address are always sent alone, because an event at PagerDuty applies
 * only to its own incident.
 */
const isAlwaysAlone = (address: string) => address.startsWith('pagerduty.')

/**
 * Lists queues in which a message is due. A webhook without an address also has a queue, so that
 * its messages can be dropped.
 */
export async function dueQueues(db: Db): Promise<AddressQueue[]> {
  const due = await db
    .selectFrom('delivery')
    .select('destination')
    .distinct()
    .where((where) => where.or(['webhook.%', 'push.%', 'to.%'].map((prefix) => where('destination', 'like', prefix))))
    .where('status', 'in', ['pending', 'sending'])
    .where('nextAt', '<=', now)
    .execute()
  const findAddress = await readAddresses(db)
  const queues = Map.groupBy(due, ({ destination }) => findAddress(destination))
  return [...queues].map(([address, rows]) => ({ address, destinations: rows.map(({ destination }) => destination) }))
}

/** Returns a function that gives the current address of each destination. */
export async function readAddresses(db: Db | Trx): Promise<(destination: string) => string> {
  const settings = await readSettings(db)
  const routed = new Map(
    (await listDestinations(systemScope(db))).filter(isReadable).map((each) => {
      // Uses the URL for a webhook and for Teams, whatever their names.
      const kind = each.kind === 'pagerduty' || each.kind === 'email' ? each.kind : 'url'
      return [`${destinationPrefix}${each.name}`, `${kind}.${sha256(addressOf(each))}`]
    }),
  )
  return (destination) => {
    const known = routed.get(destination)
    if (known) return known
    const url = destination.startsWith('webhook.') ? settings.value<string | null>(`${destination}.url`) : null
    return url ? `url.${sha256(url)}` : destination
  }
}

/**
 * The messages to send now: one message, or all messages that have waited too long to be sent
 * alone.
 */
type LeasedQueue = { address: string; until: string; deliveries: DueDelivery[] }

/**
 * Takes an address and its next message. Null if no message is due, if the receiver asked to wait,
 * or if another process holds the address.
 */
export async function leaseQueue(db: Db, { address, destinations }: AddressQueue): Promise<LeasedQueue | null> {
  return await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('outboxAddress')
      .values({ address })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const free = await trx
      .selectFrom('outboxAddress')
      .select('address')
      .where('address', '=', address)
      .where('readyAt', '<=', now)
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()
    if (!free) return null
    const due = await dueFor(trx, destinations, isThreaded(address))
    const chosen = isAlwaysAlone(address) ? due.slice(0, 1).map(({ id }) => id) : togetherOrAlone(due)
    if (chosen.length === 0) return null
    const until = sql<string>`nightshift_now() + make_interval(secs => ${leaseSeconds})`
    const deliveries = await trx
      .updateTable('delivery')
      .set({ status: 'sending', leasedUntil: until })
      .where('id', 'in', chosen)
      .returning(['id', 'messageId', 'destination', 'incidentId', 'attempt', 'notification', 'createdAt'])
      .execute()
    const leased = await trx
      .updateTable('outboxAddress')
      .set({ readyAt: until })
      .where('address', '=', address)
      .returning('readyAt')
      .executeTakeFirstOrThrow()
    const order = new Map(chosen.map((id, at) => [id, at]))
    deliveries.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
    return { address, until: leased.readyAt, deliveries }
  })
}

type Waiting = { id: number; isLate: boolean; isAlone: boolean }

async function dueFor(trx: Trx, destinations: readonly string[], inOrder: boolean): Promise<Waiting[]> {
  return await trx
    .selectFrom('delivery')
    .$if(inOrder, (query) => query.where(isFirstOfIncident))
    .select('id')
    .select(
      sql<boolean>`coalesce(released_at, hold_until, created_at) < nightshift_now() - make_interval(secs => ${maxAloneSeconds})`.as(
        'isLate',
      ),
    )
    .select(sql<boolean>`notification->>'trigger' in ('approval', 'morning', 'hand_over')`.as('isAlone'))
    .where('destination', 'in', destinations)
    .where('nextAt', '<=', now)
    .where((where) =>
      where.or([
        where('status', '=', 'pending'),
        where.and([where('status', '=', 'sending'), where('leasedUntil', '<=', now)]),
      ]),
    )
    .orderBy(
      sql`array_position(array['critical', 'warning', 'info'], notification->'incident'->>'severity') nulls last`,
    )
    .orderBy('createdAt')
    .orderBy('id')
    .limit(4 * maxTogether)
    .forUpdate()
    .execute()
}

/** Whether no earlier message about this incident, or its retry, is still waiting. */
const isFirstOfIncident = sql<boolean>`not exists (
  select 1 from delivery as earlier
  where earlier.incident_id = delivery.incident_id and earlier.destination = delivery.destination
    and earlier.status in ('pending', 'sending') and earlier.id <> delivery.id
    and (earlier.created_at, earlier.message_id) < (delivery.created_at, delivery.message_id))`

/**
 * Selects the messages to send now. Questions and cards are sent alone, because readers need their
 * texts and links.
 */
function togetherOrAlone(due: readonly Waiting[]): number[] {
  const [first] = due
  if (!first) return []
  const isForDigest = (each: Waiting) => each.isLate && !each.isAlone
  return isForDigest(first)
    ? due
        .filter(isForDigest)
        .slice(0, maxTogether)
        .map(({ id }) => id)
    : [first.id]
}

/**
 * Ends the lease on an address, and sends nothing to it for that many seconds. Does nothing if the
 * lease has expired.
 */
export async function releaseQueue(trx: Trx, { address, until }: LeasedQueue, seconds: number): Promise<void> {
  await trx
    .updateTable('outboxAddress')
    .set({ readyAt: sql`nightshift_now() + make_interval(secs => ${seconds})` })
    .where('address', '=', address)
    .where('readyAt', '=', until)
    .execute()
}
