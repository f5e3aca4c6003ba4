import { sql } from 'kysely'
import type { ApprovalStatus } from '../../domain/approval.ts'
import { systemActor } from '../../domain/event.ts'
import { refusalToDecide } from '../access/operators.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import type { ApprovalRow } from '../tables.ts'

/**
 * Expires an approval whose time to decide is over, by the database's clock, in one statement.
 * False if it was decided before.
 */
export async function expirePending(
  trx: Trx,
  approval: { id: string; incidentId: string; callId: string },
): Promise<boolean> {
  const expired = await trx
    .updateTable('approval')
    .set({ status: 'expired', decidedAt: now })
    .where('id', '=', approval.id)
    .where('status', '=', 'pending')
    .where('expiresAt', '<=', now)
    .returning('decidedAt')
    .executeTakeFirst()
  if (!expired) return false
  await append(trx, approval.incidentId, null, {
    kind: 'approval_expired',
    actor: systemActor,
    detail: 'Nobody decided in time',
    metadata: { approvalId: approval.id, callId: approval.callId, decidedAt: expired.decidedAt },
  })
  return true
}

/**
 * Reads the status of an approval for a run that wakes up. Expires the approval if its time to
 * decide is over, and returns how long a pending approval still has, by the database's clock. Marks
 * a decision as read, so that the tick need not wake the run.
 */
export async function readDecision(
  db: Db,
  approvalId: string,
): Promise<{ status: ApprovalStatus; remainingMs: number; incidentId: string } | null> {
  return await db.transaction().execute(async (trx) => {
    const found = await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
    if (!found) return null
    await lockIncident(trx, found.incidentId)
    const approval = await trx
      .selectFrom('approval')
      .selectAll()
      .select(
        sql<number>`greatest(0, extract(epoch from expires_at - nightshift_now()) * 1000)::float8`.as('remainingMs'),
      )
      .where('id', '=', approvalId)
      .forUpdate()
      .executeTakeFirstOrThrow()
    if (approval.status === 'pending') {
      if (await expirePending(trx, approval))
        return { status: 'expired', remainingMs: 0, incidentId: approval.incidentId }
      return { status: 'pending', remainingMs: Math.ceil(approval.remainingMs), incidentId: approval.incidentId }
    }
    if (!approval.readAt) {
      await trx.updateTable('approval').set({ readAt: now }).where('id', '=', approvalId).execute()
    }
    return { status: approval.status, remainingMs: 0, incidentId: approval.incidentId }
  })
}

/**
 * Withdraws all pending approvals of an incident, or only `approvalId`. The caller holds the
 * incident's lock.
 */
export async function withdrawPending(
  trx: Trx,
  incidentId: string,
  reason: string,
  approvalId?: string,
): Promise<void> {
  const open = trx
    .updateTable('approval')
    .set({ status: 'withdrawn', decidedAt: now })
    .where('incidentId', '=', incidentId)
    .where('status', 'in', ['pending', 'approved'])
  const withdrawn = await (approvalId === undefined ? open : open.where('id', '=', approvalId))
    .returning(['id', 'callId', 'decidedAt'])
    .execute()
  for (const approval of withdrawn) {
    await append(trx, incidentId, null, {
      kind: 'approval_withdrawn',
      actor: systemActor,
      detail: `Withdrawn: ${reason}`,
      metadata: { approvalId: approval.id, callId: approval.callId, reason, decidedAt: approval.decidedAt },
    })
  }
}

/**
 * Uses up an approval, in the transaction of `tool_started`. Returns false if the approval is not
 * approved, is too old, or is approved by too few people.
 */
export async function consumeApproval(trx: Trx, approvalId: string): Promise<boolean> {
  const asked = await trx.selectFrom('approval').selectAll().where('id', '=', approvalId).forUpdate().executeTakeFirst()
  if (!asked || (await countVotes(trx, asked)) < asked.required) return false
  const consumed = await trx
    .updateTable('approval')
    .set({ status: 'consumed' })
    .where('id', '=', approvalId)
    .where('status', '=', 'approved')
    .where('useBy', '>', now)
    .returning('id')
    .executeTakeFirst()
  return consumed !== undefined
}

/**
 * Lists decisions that no run has read for a minute, and pending approvals past their expiry. The
 * caller wakes their workflows.
 */
export async function unreadDecisions(db: Db): Promise<{ approvalId: string; incidentId: string; attempt: number }[]> {
  return await db
    .selectFrom('approval')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select(['approval.id as approvalId', 'approval.incidentId', 'incident.attempt'])
    .where('incident.status', '=', 'awaiting_approval')
    .where(
      sql<boolean>`((approval.status in ('approved', 'denied', 'withdrawn') and approval.read_at is null
        and approval.decided_at < nightshift_now() - interval '1 minute')
        or (approval.status = 'pending' and approval.expires_at < nightshift_now()))`,
    )
    .limit(100)
    .execute()
}

type Asked = Pick<ApprovalRow, 'id' | 'incidentId' | 'risk' | 'targets'> & {
  dryRun: { details: Record<string, unknown> } | null
}

/**
 * Whether this person requested the run of a critical action, so that another person must approve
 * it.
 */
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
 * Counts the people who approve this approval now, at every use: the vote of a person who is
 * disabled or lost the right no longer counts. A denial always counts.
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
