import type { Db, Trx } from '../connect.ts'
import { refusalToDecide } from '../operators.ts'
import type { ApprovalRow } from '../tables.ts'

type Asked = Pick<ApprovalRow, 'id' | 'incidentId' | 'risk'>

/** Did this person ask for the run whose critical action is asked about? Then somebody else has to agree. */
export async function isOwnRun(db: Db | Trx, operatorId: string, approval: Asked): Promise<boolean> {
  if (approval.risk !== 'critical') return false
  const { requestedBy } = await db
    .selectFrom('incident')
    .select('requestedBy')
    .where('id', '=', approval.incidentId)
    .executeTakeFirstOrThrow()
  return requestedBy === operatorId
}

/**
 * How many people approve this now. Weighed at every use: the yes of a person who has been disabled, or may no longer decide it,
 * does not count. A no counts whatever became of its person.
 */
export async function countVotes(db: Db | Trx, approval: Asked): Promise<number> {
  const votes = await db
    .selectFrom('approvalDecision')
    .select('operatorId')
    .where('approvalId', '=', approval.id)
    .where('decision', '=', 'approve')
    .execute()
  let count = 0
  for (const { operatorId } of votes) {
    if (await refusalToDecide(db as Db, operatorId, approval)) continue
    if (await isOwnRun(db, operatorId, approval)) continue
    count += 1
  }
  return count
}
