import { sql } from 'kysely'
import { extendableSeconds, extensionSeconds } from '../../domain/approval.ts'
import { refusalToDecide } from '../access/operators.ts'
import type { Db } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import { recordAudit } from '../log/audit.ts'

type ExtendOutcome =
  | { outcome: 'extended'; expiresAt: string }
  | { outcome: 'not_found' }
  | { outcome: 'forbidden' | 'gone' | 'conflict'; message: string }

/**
 * Extends the time of a pending question by a quarter of an hour, to at most four hours after it
 * was asked. Only a person who may decide the question can extend it. A waiting run follows the row
 * of the approval: when its timer ends, the run reads the row and continues to wait.
 */
export async function extendApproval(
  db: Db,
  person: { operatorId: string; name: string; actor: string },
  approvalId: string,
): Promise<ExtendOutcome> {
  return await db.transaction().execute(async (trx) => {
    const found = await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
    if (!found) return { outcome: 'not_found' }
    const { incidentId } = found
    await lockIncident(trx, incidentId)
    const approval = await trx
      .selectFrom('approval')
      .select(['id', 'incidentId', 'risk', 'targets', 'dryRun', 'status', 'tool'])
      .select(sql<boolean>`expires_at <= nightshift_now()`.as('isLate'))
      .where('id', '=', approvalId)
      .forUpdate()
      .executeTakeFirstOrThrow()
    const refusal = await refusalToDecide(trx, person.operatorId, approval)
    if (refusal) return { outcome: 'forbidden', message: refusal }
    if (approval.status !== 'pending' || approval.isLate) {
      const status = approval.status === 'pending' ? 'expired' : approval.status
      return { outcome: 'gone', message: `${approvalId} is ${status}: only a pending approval gets more time` }
    }
    const extended = await trx
      .updateTable('approval')
      .set({
        expiresAt: sql`least(expires_at + make_interval(secs => ${extensionSeconds}), requested_at + make_interval(secs => ${extendableSeconds}))`,
      })
      .where('id', '=', approvalId)
      .where(sql<boolean>`expires_at < requested_at + make_interval(secs => ${extendableSeconds})`)
      .returning('expiresAt')
      .executeTakeFirst()
    if (!extended) {
      const hours = extendableSeconds / 3600
      return {
        outcome: 'conflict',
        message: `${approvalId} cannot be extended beyond ${hours} hours after the request`,
      }
    }
    const expiresAt = extended.expiresAt as string
    const text = `${person.name} gave ${approvalId} more time: until ${expiresAt}`
    await append(trx, incidentId, null, {
      kind: 'noted',
      actor: person.actor,
      detail: text,
      metadata: { code: 'approval_extended', text, approvalId, expiresAt },
    })
    await recordAudit(trx, { who: person.name, what: 'approval.extended', subject: approvalId, detail: text })
    return { outcome: 'extended', expiresAt }
  })
}
