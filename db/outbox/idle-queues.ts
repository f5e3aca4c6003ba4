import { sql } from 'kysely'
import type { Db } from '../connect.ts'
import { readAddresses } from './address-queues.ts'

/** A worker looks once a second; a receiver that takes its time has the queue under a lease. */
const idleSeconds = 180

/** Messages that nobody takes, with when the first of them was due. */
export type IdleQueues = { messages: number; since: string }

/** What is due for three minutes in queues that no worker has touched meanwhile; null where there is nothing. */
export async function findIdleQueues(db: Db): Promise<IdleQueues | null> {
  const long = sql`nightshift_now() - make_interval(secs => ${idleSeconds})`
  const { rows: late } = await sql<{ destination: string; messages: number; since: string }>`
    select destination, count(*)::int as messages, min(next_at) as since from delivery
    where status in ('pending', 'sending') and next_at < ${long} and coalesce(leased_until, next_at) < ${long}
    group by destination`.execute(db)
  if (late.length === 0) return null
  const { rows: touched } = await sql<{ address: string }>`
    select address from outbox_address where ready_at > ${long}
    union all select 'slack' from slack_channel where ready_at > ${long}`.execute(db)
  const addresses = await readAddresses(db)
  const addressOf = (destination: string) => (destination.startsWith('slack.') ? 'slack' : addresses(destination))
  const idle = late.filter(({ destination }) => !touched.some(({ address }) => address === addressOf(destination)))
  if (idle.length === 0) return null
  return {
    messages: idle.reduce((sum, { messages }) => sum + messages, 0),
    since: idle.map(({ since }) => since).toSorted()[0] as string,
  }
}
