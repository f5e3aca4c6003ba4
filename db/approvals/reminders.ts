import { sql } from 'kysely'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { tellAsked } from './ask.ts'

/** Parts of the time to decide after which people are reminded of a question. */
const remindAfter = [0.5, 0.9]

/**
 * Sends reminders of pending questions. Each reminder is sent once over all workers. Returns how
 * many reminders were sent.
 */
export async function remindPending(db: Db): Promise<number> {
  let reminded = 0
  for (const [index, part] of remindAfter.entries()) {
    await db.transaction().execute(async (trx) => {
      const due = await trx
        .updateTable('approval')
        .set({ reminded: index + 1 })
        .where('status', '=', 'pending')
        .where('announced', '=', true)
        .where('reminded', '<=', index)
        .where('expiresAt', '>', now)
        .where(sql<boolean>`nightshift_now() >= requested_at + (expires_at - requested_at) * ${part}::float8`)
        .returning('id')
        .execute()
      for (const { id } of due) await tellAsked(trx, id, index + 1)
      reminded += due.length
    })
  }
  return reminded
}
