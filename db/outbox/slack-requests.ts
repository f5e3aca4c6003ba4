import { sql } from 'kysely'
import { countAttempt, type RateLimit } from '../access/rate-limits.ts'
import type { Db } from '../connect.ts'
import { recordAudit, recordSecurityEvent } from '../log/audit.ts'

/**
 * Accepts a request of Slack or PagerDuty only once over all processes: false for a repeat. A
 * request is remembered for longer than its time stamp is accepted, even if clocks differ.
 */
export async function takeRequest(db: Db, signature: string): Promise<boolean> {
  const taken = await db
    .insertInto('slackRequest')
    .values({ signature })
    .onConflict((conflict) => conflict.column('signature').doNothing())
    .returning('signature')
    .executeTakeFirst()
  if (!taken) return false
  await sql`
    delete from slack_request where signature in (
      select signature from slack_request where received_at < nightshift_now() - interval '1 hour' limit 20)`.execute(
    db,
  )
  return true
}

/**
 * Records a suspicious request on the incident whose approval the request names, otherwise in the
 * audit log. The number of records is limited against floods.
 */
export async function suspectSlackRequest(
  db: Db,
  approvalId: string | null,
  event: { code: string; subject: string; detail: string; address: string; network: string },
  limit: RateLimit,
): Promise<void> {
  const { code, subject, detail, address, network } = event
  await db.transaction().execute(async (trx) => {
    const approval = approvalId
      ? await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
      : undefined
    if (approval) return await recordSecurityEvent(trx, approval.incidentId, { code, door: 'slack', subject, detail })
    if ((await countAttempt(trx, `slack:${network}`, limit)).over) return
    const what = `security.${code.toLowerCase()}` as const
    await recordAudit(trx, { who: 'unknown', what, subject, detail, address })
  })
}
