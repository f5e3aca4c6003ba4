import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import { type Principal, permissionsOf, typesOf } from '../../domain/operator.ts'
import type { Db } from '../connect.ts'
import { typeOfApproval } from '../incident-type.ts'
import { refusalToDecide } from '../operators.ts'

type MintOutcome =
  | { outcome: 'minted'; token: string; approvalId: string; incidentId: string; expiresAt: string }
  | { outcome: 'not_found' | 'forbidden' | 'gone'; message: string }

/**
 * A decision token: 256 bits for one signed-in person and one pending approval, stored as a hash and used once. The plain
 * token is in this answer and nowhere else.
 */
export async function mintDecisionToken(db: Db, principal: Principal, approvalId: string): Promise<MintOutcome> {
  const { operatorId } = principal
  if (operatorId === null || !permissionsOf(principal).includes('decide')) {
    return { outcome: 'forbidden', message: `${principal.name} (${principal.role}) may not decide approvals` }
  }
  const row = await db.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirst()
  if (!row) return { outcome: 'not_found', message: `there is no approval ${approvalId}` }
  const types = typesOf(principal)
  if (types && !types.includes((await typeOfApproval(db, approvalId)) ?? '')) {
    return {
      outcome: 'forbidden',
      message: `this token of ${principal.name} is for incidents of type ${types.join(', ')}`,
    }
  }
  const refusal = await refusalToDecide(db, operatorId, row)
  if (refusal) return { outcome: 'forbidden', message: refusal }
  const token = randomBytes(32).toString('base64url')
  const minted = await db
    .insertInto('decisionToken')
    .columns(['sha256', 'approvalId', 'operatorId', 'expiresAt'])
    .expression(
      db
        .selectFrom('approval')
        .select([
          sql<string>`${sha256(token)}`.as('sha256'),
          'id',
          sql<string>`${operatorId}`.as('operatorId'),
          'expiresAt',
        ])
        .where('id', '=', approvalId)
        .where('status', '=', 'pending')
        .where('expiresAt', '>', sql<string>`nightshift_now()`),
    )
    .returning('expiresAt')
    .executeTakeFirst()
  if (!minted) return { outcome: 'gone', message: `${approvalId} is ${row.status} and cannot be decided any more` }
  return { outcome: 'minted', token, approvalId, incidentId: row.incidentId, expiresAt: minted.expiresAt }
}
