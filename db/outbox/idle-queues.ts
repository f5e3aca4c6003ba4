import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../connect.ts'
import { readAddresses } from './address-queues.ts'

/**
 * Seconds after which a queue without activity counts as idle. A worker checks each queue every
 * second, and the queue of a slow receiver has a lease.
 */
const idleSeconds = 180
/**
 * Seconds after which a queue with a delayed page counts as idle. Shorter than `idleSeconds`,
 * because the page has already been delayed.
 */
const idlePageSeconds = 60

/**
 * Messages that no worker takes. `since`: when the first message was due. `pages`: how many of the
 * messages are delayed pages.
 */
export type IdleQueues = { messages: number; pages: number; since: string }

/**
 * Finds messages that have been due for three minutes (a page for one minute), in queues that no
 * worker touched in this time. Null if there are no such messages.
 */
export async function findIdleQueues(db: Db): Promise<IdleQueues | null> {
  const [messages, pages] = [
    await untouchedSince(db, idleSeconds, sql`hold_until is null`),
    await untouchedSince(db, idlePageSeconds, sql`hold_until is not null`),
  ]
  const idle = [...messages, ...pages]
  if (idle.length === 0) return null
  const count = (late: typeof idle) => late.reduce((sum, each) => sum + each.messages, 0)
  return {
    messages: count(idle),
    pages: count(pages),
    since: idle.map(({ since }) => since).toSorted()[0] as string,
  }
}

async function untouchedSince(db: Db, seconds: number, which: RawBuilder<unknown>) {
  const then = sql`(select nightshift_now()) - make_interval(secs => ${seconds})`
  const { rows: late } = await sql<{ destination: string; messages: number; since: string }>`
    select destination, count(*)::int as messages, min(next_at) as since from delivery
    where status in ('pending', 'sending') and next_at < ${then} and coalesce(leased_until, next_at) < ${then} and ${which}
    group by destination`.execute(db)
  if (late.length === 0) return []
  const { rows: touched } = await sql<{ address: string }>`
    select address from outbox_address where ready_at > ${then}
    union all select 'slack' from slack_channel where ready_at > ${then}`.execute(db)
  const addresses = await readAddresses(db)
  const addressOf = (destination: string) => (destination.startsWith('slack.') ? 'slack' : addresses(destination))
  return late.filter(({ destination }) => !touched.some(({ address }) => address === addressOf(destination)))
}
