import { sql } from 'kysely'
import type { Approval, ApprovalStatus, Decision, DenialCategory } from '../../domain/approval.ts'
import type { Attachment } from '../../domain/attachment.ts'
import { sha256 } from '../../domain/digest.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { RunRef } from '../../domain/step-key.ts'
import type { Risk } from '../../domain/tool.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import type { ApprovalRow } from '../tables.ts'
import { countVotes } from './settle.ts'

/** A pending question, and the incident that asked it. */
export type PendingElsewhere = { id: string; incidentId: string }

/**
 * Finds the pending approval of an action in another incident. This incident can wait for its
 * decision.
 */
export async function pendingOfAction(
  db: Db | Trx,
  actionDigest: string,
  incidentId: string,
): Promise<PendingElsewhere | null> {
  const row = await db
    .selectFrom('approval')
    .select(['id', 'incidentId'])
    .where('actionDigest', '=', actionDigest)
    .where('incidentId', '!=', incidentId)
    .where('status', '=', 'pending')
    .executeTakeFirst()
  return row ?? null
}

/**
 * Finds pending questions about this tool in other incidents, in which the action may be about
 * another name of the resource.
 */
export async function pendingOfTool(
  db: Db | Trx,
  tool: string,
  incidentId: string,
): Promise<(PendingElsewhere & { arguments: Record<string, unknown>; targets: ResourceRef[] })[]> {
  const rows = await db
    .selectFrom('approval')
    .select(['id', 'incidentId', 'args', 'targets'])
    .where('tool', '=', tool)
    .where('incidentId', '!=', incidentId)
    .where('status', '=', 'pending')
    .orderBy('requestedAt')
    .execute()
  return rows.map(({ args, targets, ...asked }) => ({ ...asked, arguments: args, targets: targets as ResourceRef[] }))
}

/** Finds the newest approval of one call of an attempt; null if there is none. */
export async function latestOfCall(
  db: Db | Trx,
  { incidentId, attempt }: { incidentId: string; attempt: number },
  callId: string,
): Promise<Pick<ApprovalRow, 'id' | 'status' | 'askedWith'> | null> {
  const row = await db
    .selectFrom('approval')
    .select(['id', 'status', 'askedWith'])
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('callId', '=', callId)
    .orderBy('requestedAt', 'desc')
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return row ?? null
}

/** Finds the pending approval of this call; null if there is none. */
export async function pendingApprovalOf(db: Db, run: RunRef, callId: string): Promise<string | null> {
  const row = await db
    .selectFrom('approval')
    .select('id')
    .where('incidentId', '=', run.incidentId)
    .where('attempt', '=', run.attempt)
    .where('callId', '=', callId)
    .where('status', '=', 'pending')
    .executeTakeFirst()
  return row?.id ?? null
}

/**
 * Reads status and expiry of an approval, and the fingerprint of its targets' state. Null if the
 * approval is unknown.
 */
export async function approvalState(db: Db | Trx, id: string) {
  const columns = ['incidentId', 'status', 'expiresAt', 'stateFingerprint'] as const
  return (await db.selectFrom('approval').select(columns).where('id', '=', id).executeTakeFirst()) ?? null
}

/**
 * Finds an approval that can be used: not too old by the database's clock, and given by people who
 * may still approve it.
 */
export async function usableApproval(trx: Trx, id: string): Promise<ApprovalRow | null> {
  const row = await trx
    .selectFrom('approval')
    .selectAll()
    .where('id', '=', id)
    .where('status', '=', 'approved')
    .where('useBy', '>', now)
    .executeTakeFirst()
  return row && (await countVotes(trx, row)) >= row.required ? row : null
}

/** Lists approvals for people, newest first. */
export async function listApprovals(
  { db }: Scope,
  filter: { status?: ApprovalStatus; incidentId?: string; id?: string; idPrefix?: string; askedWith?: string },
  page: { before: string | null; limit: number },
): Promise<Approval[]> {
  let query = db
    .selectFrom('approval')
    .leftJoin('operator as editor', 'editor.id', 'approval.editedBy')
    .selectAll('approval')
    .select('editor.name as editor')
    .select(
      sql<string | null>`(
      select event.metadata->>'name' from incident join incident_event as event on event.incident_id = incident.id
      where incident.id = approval.incident_id and incident.type = ${manualChangeType} and event.kind = 'change_requested'
      order by event.seq limit 1)`.as('askedBy'),
    )
    .orderBy('approval.id', 'desc')
    .limit(page.limit)
  if (filter.status === 'pending') query = query.where('expiresAt', '>', now)
  if (filter.status) query = query.where('approval.status', '=', filter.status)
  if (filter.incidentId) query = query.where('incidentId', '=', filter.incidentId)
  if (filter.idPrefix) query = query.where(sql<boolean>`starts_with(approval.id, ${filter.idPrefix})`)
  if (filter.askedWith) query = query.where('approval.askedWith', '=', filter.askedWith)
  if (filter.id) query = query.where('approval.id', '=', filter.id)
  if (page.before) query = query.where('approval.id', '<', page.before)
  const rows = await query.execute()
  if (rows.length === 0) return []
  const decisions = await db
    .selectFrom('approvalDecision')
    .innerJoin('operator', 'operator.id', 'approvalDecision.operatorId')
    .select(['approvalId', 'operator.name as operator', 'decision', 'reason', 'category', 'via', 'at'])
    .where(
      'approvalId',
      'in',
      rows.map((row) => row.id),
    )
    .orderBy('at')
    .execute()
  const approvals = rows.map((row) => toApproval(row, decisions))
  for (const each of approvals) {
    // Counts only people who may still approve, as long as the approval is pending.
    if (each.status === 'pending' && each.approvals > 0) {
      each.approvals = await countVotes(db, each)
    }
  }
  return approvals
}

/**
 * Reads the bytes of an attachment of an approval's dry run. Null if the dry run does not name the
 * digest, or if the bytes have been removed.
 */
export async function attachmentBytes(
  { db }: Scope,
  id: string,
  digest: string,
): Promise<{ attachment: Attachment; bytes: Buffer } | null> {
  const asked = await db.selectFrom('approval').select('dryRun').where('id', '=', id).executeTakeFirst()
  const attachment = asked?.dryRun.attachments?.find((each) => each.digest === digest)
  if (!attachment) return null
  const stored = await db.selectFrom('resultBody').select('bytes').where('digest', '=', digest).executeTakeFirst()
  return stored && sha256(stored.bytes) === digest ? { attachment, bytes: stored.bytes } : null
}

function toApproval(
  row: ApprovalRow & { editor: string | null; askedBy: string | null },
  decisions: {
    approvalId: string
    operator: string
    decision: Decision
    reason: string | null
    category: DenialCategory | null
    via: string
    at: string
  }[],
): Approval {
  const own = decisions.filter((entry) => entry.approvalId === row.id)
  return {
    id: row.id,
    incidentId: row.incidentId,
    attempt: row.attempt,
    callId: row.callId,
    tool: row.tool,
    arguments: row.args,
    targets: row.targets as ResourceRef[],
    reason: row.reason,
    risk: row.risk as Risk,
    reversible: row.reversible,
    required: row.required,
    approvals: own.filter((entry) => entry.decision === 'approve').length,
    dryRun: row.dryRun,
    actionDigest: row.actionDigest,
    stateFingerprint: row.stateFingerprint,
    status: row.status,
    requestedAt: row.requestedAt,
    expiresAt: row.expiresAt as string,
    useBy: row.useBy,
    askedWith: row.askedWith,
    askedBy: row.askedBy,
    edited: row.edited && row.editor ? { by: row.editor, arguments: row.edited } : null,
    decisions: own.map(({ operator, decision, reason, category, via, at }) => ({
      operator,
      decision,
      reason,
      category,
      via,
      at,
    })),
  }
}

/**
 * Finds the approvals of this approval's call directly before and after it. A call has several if
 * its arguments or the state changed.
 */
export async function neighbours(
  { db }: Scope,
  { id, incidentId, attempt, callId }: Pick<Approval, 'id' | 'incidentId' | 'attempt' | 'callId'>,
): Promise<{ replaces: string | null; replacedBy: string | null }> {
  return await db
    .selectFrom('approval')
    .select([
      sql<string | null>`max(id) filter (where id < ${id})`.as('replaces'),
      sql<string | null>`min(id) filter (where id > ${id})`.as('replacedBy'),
    ])
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('callId', '=', callId)
    .executeTakeFirstOrThrow()
}
