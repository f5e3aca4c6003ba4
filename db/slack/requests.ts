import { sql } from 'kysely'
import type { Db } from '../connect.ts'

/**
 * Takes a request of Slack's once, whichever process it reaches: false for one that was here before. Remembered for longer
 * than its time is believed either way, whatever the clocks of the processes say.
 */
export async function takeSlackRequest(db: Db, signature: string): Promise<boolean> {
  const taken = await db
    .insertInto('slackRequest')
    .values({ signature })
    .onConflict((conflict) => conflict.column('signature').doNothing())
    .returning('signature')
    .executeTakeFirst()
  if (!taken) return false
  await sql`
    delete from slack_request where signature in (
      select signature from slack_request where received_at < nightshift_now() - interval '1 hour'
      limit 20 for update skip locked)`.execute(db)
  return true
}
