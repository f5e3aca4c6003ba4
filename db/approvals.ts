import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { Approval, ApprovalStatus, Decision, DecisionOutcome } from '../domain/approval.ts'
import { useBySeconds } from '../domain/approval.ts'
import { sha256 } from '../domain/digest.ts'
import { systemActor } from '../domain/event.ts'
import { newId } from '../domain/id.ts'
import { type Principal, permissions } from '../domain/operator.ts'
import type { ResourceRef } from '../domain/resource.ts'
import type { Preparation, Risk } from '../domain/tool.ts'
import { cleanse } from '../safety/cleanse.ts'
import { append } from './append.ts'
import type { Db, Trx } from './connect.ts'
import type { ApprovalRow } from './tables.ts'

export type ApprovalRequest = {
  incidentId: string
  attempt: number
  turn: number
  callId: string
  tool: string
  args: Record<string, unknown>
  targets: ResourceRef[]
  reason: string
  actionDigest: string
  stateFingerprint: string
  risk: Risk
  reversible: boolean
  required: number
  dryRun: Preparation['dryRun']
  expirySeconds: number
  stepKey: string
  replaces: string | null
  actor: string
}

/** Asks: the approval, its row in the log and the incident's status, in the caller's transaction. */
export async function requestApproval(trx: Trx, request: ApprovalRequest): Promise<{ id: string; expiresAt: string }> {
  const { id, expiresAt } = await trx
    .insertInto('approval')
    .values({
      id: newId('apr'),
      incidentId: request.incidentId,
      attempt: request.attempt,
      callId: request.callId,
      tool: request.tool,
      args: JSON.stringify(request.args),
      targets: JSON.stringify(request.targets),
      reason: cleanse(request.reason),
      actionDigest: request.actionDigest,
      stateFingerprint: request.stateFingerprint,
      risk: request.risk,
      reversible: request.reversible,
      required: request.required,
      dryRun: JSON.stringify(cleanse(request.dryRun)),
      expiresAt: sql`nightshift_now() + make_interval(secs => ${request.expirySeconds})`,
    })
    .returning(['id', 'expiresAt'])
    .executeTakeFirstOrThrow()
  await trx
    .updateTable('incident')
    .set({ status: 'awaiting_approval' })
    .where('id', '=', request.incidentId)
    .where('status', '=', 'investigating')
    .execute()
  await append(trx, request.incidentId, request.attempt, {
    kind: 'approval_requested',
    actor: request.actor,
    turn: request.turn,
    stepKey: request.stepKey,
    detail: `Asked for approval: ${request.dryRun.summary}`,
    metadata: {
      approvalId: id,
      callId: request.callId,
      tool: request.tool,
      actionDigest: request.actionDigest,
      risk: request.risk,
      required: request.required,
      targets: request.targets,
      summary: request.dryRun.summary,
      expiresAt,
      replaces: request.replaces,
    },
  })
  return { id, expiresAt }
}

export type MintOutcome =
  | { outcome: 'minted'; token: string; approvalId: string; incidentId: string; expiresAt: string }
  | { outcome: 'not_found' | 'forbidden' | 'gone'; message: string }

/**
 * A decision token: 256 bits for one signed-in person and one pending approval, stored as a hash and used once. The plain
 * token is in this answer and nowhere else.
 */
export async function mintDecisionToken(db: Db, principal: Principal, approvalId: string): Promise<MintOutcome> {
  const { operatorId } = principal
  if (operatorId === null || !permissions[principal.role].includes('decide')) {
    return { outcome: 'forbidden', message: `${principal.name} (${principal.role}) may not decide approvals` }
  }
  const row = await db.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirst()
  if (!row) return { outcome: 'not_found', message: `there is no approval ${approvalId}` }
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

export type DecisionRequest = {
  /** Null when the door names none: then the token alone says which. */
  approvalId: string | null
  /** The incident the door belongs to, so that an attempt with a false token leaves its trace there. */
  incidentId: string | null
  token: string
  decision: Decision
  reason: string | null
  /** Which door: api, cli, page, slack, signal, update. */
  via: string
}

/**
 * Judges every decision, whatever the door. The person is the token's; nothing the caller claims about who decides is read.
 * One transaction under the incident's and the approval's locks, by the database's clock: of any number of rivals exactly
 * one decides. A false, foreign, spent or late token changes nothing and leaves a `security_event`.
 */
export async function decide(db: Db, request: DecisionRequest): Promise<DecisionOutcome> {
  return await db.transaction().execute(async (trx) => {
    const token = await trx
      .selectFrom('decisionToken')
      .innerJoin('operator', 'operator.id', 'decisionToken.operatorId')
      .select(['approvalId', 'operatorId', 'operator.name', 'operator.role', 'usedAt', 'usedFor'])
      .select(sql<boolean>`expires_at <= nightshift_now()`.as('late'))
      .where('sha256', '=', sha256(request.token))
      .executeTakeFirst()
    const approvalId = request.approvalId ?? token?.approvalId ?? null
    const found = approvalId
      ? await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
      : undefined
    const incidentId = found?.incidentId ?? request.incidentId
    if (incidentId) {
      await trx.selectFrom('incident').select('id').where('id', '=', incidentId).forUpdate().execute()
    }
    if (!token || (request.incidentId !== null && found && found.incidentId !== request.incidentId)) {
      await suspect(trx, incidentId, request, token ? 'FOREIGN_TOKEN' : 'UNKNOWN_TOKEN', token?.name ?? 'unknown')
      return {
        outcome: 'forbidden',
        code: token ? 'FOREIGN_TOKEN' : 'UNKNOWN_TOKEN',
        message: 'this decision token is not valid here',
      }
    }
    if (!found || !approvalId) return { outcome: 'not_found' }
    if (token.approvalId !== approvalId) {
      await suspect(trx, incidentId, request, 'FOREIGN_TOKEN', token.name)
      return { outcome: 'forbidden', code: 'FOREIGN_TOKEN', message: 'this decision token is for another approval' }
    }
    const approval = await trx
      .selectFrom('approval')
      .selectAll()
      .select(sql<boolean>`expires_at <= nightshift_now()`.as('late'))
      .where('id', '=', approvalId)
      .forUpdate()
      .executeTakeFirstOrThrow()

    const before = await trx
      .selectFrom('approvalDecision')
      .select('decision')
      .where('approvalId', '=', approvalId)
      .where('operatorId', '=', token.operatorId)
      .executeTakeFirst()
    if (before?.decision === request.decision) {
      return { outcome: 'repeated', status: approval.status, approvalId, incidentId: approval.incidentId }
    }
    if (before) {
      return {
        outcome: 'conflict',
        status: approval.status,
        message: `${token.name} already decided: ${before.decision}`,
      }
    }
    if (token.usedAt) {
      await suspect(trx, incidentId, request, 'SPENT_TOKEN', token.name)
      return { outcome: 'forbidden', code: 'SPENT_TOKEN', message: 'this decision token was used before' }
    }
    if (approval.status === 'pending' && approval.late) {
      await expirePending(trx, approval)
      await suspect(trx, incidentId, request, 'LATE_TOKEN', token.name)
      return { outcome: 'gone', status: 'expired', message: `${approvalId} expired at ${approval.expiresAt}` }
    }
    if (approval.status !== 'pending' || token.late) {
      const gone = approval.status === 'expired' || approval.status === 'withdrawn' || approval.status === 'pending'
      if (gone) await suspect(trx, incidentId, request, 'LATE_TOKEN', token.name)
      const message = `${approvalId} is ${approval.status} already`
      return { outcome: gone ? 'gone' : 'conflict', status: approval.status, message }
    }
    if (!permissions[token.role].includes('decide')) {
      await suspect(trx, incidentId, request, 'ROLE_LOST', token.name)
      return { outcome: 'forbidden', code: 'ROLE_LOST', message: `${token.name} may no longer decide approvals` }
    }
    const reason = cleanse(request.reason?.trim()) || null
    if (request.decision === 'deny' && !reason) {
      return { outcome: 'invalid', message: 'a denial needs a reason: the model reads it' }
    }
    const { requestedBy } = await trx
      .selectFrom('incident')
      .select('requestedBy')
      .where('id', '=', approval.incidentId)
      .executeTakeFirstOrThrow()
    if (request.decision === 'approve' && approval.risk === 'critical' && requestedBy === token.operatorId) {
      return {
        outcome: 'forbidden',
        code: 'OWN_RUN',
        message: 'who asked for a run cannot approve its critical actions',
      }
    }

    await trx
      .insertInto('approvalDecision')
      .values({
        approvalId,
        operatorId: token.operatorId,
        decision: request.decision,
        reason,
        via: request.via,
        at: sql`nightshift_now()` as never,
      })
      .execute()
    await trx
      .updateTable('decisionToken')
      .set({ usedAt: sql`nightshift_now()` as never, usedFor: request.decision })
      .where('sha256', '=', sha256(request.token))
      .execute()
    const status = await settle(trx, approval, request.decision)
    await append(trx, approval.incidentId, null, {
      kind: 'approval_decided',
      actor: `user:${token.name}`,
      detail: request.decision === 'approve' ? `Approved by ${token.name}` : `Denied by ${token.name}: ${reason}`,
      metadata: {
        approvalId,
        callId: approval.callId,
        decision: request.decision,
        reason,
        via: request.via,
        status,
        actionDigest: approval.actionDigest,
      },
    })
    return { outcome: 'recorded', status, approvalId, incidentId: approval.incidentId }
  })
}

/** Any denial ends it; approvals count distinct people until enough have spoken. */
async function settle(trx: Trx, approval: ApprovalRow, decision: Decision): Promise<ApprovalStatus> {
  const { count } = await trx
    .selectFrom('approvalDecision')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('approvalId', '=', approval.id)
    .where('decision', '=', 'approve')
    .executeTakeFirstOrThrow()
  const status = decision === 'deny' ? 'denied' : count >= approval.required ? 'approved' : 'pending'
  if (status === 'pending') return status
  await trx
    .updateTable('approval')
    .set({
      status,
      decidedAt: sql`nightshift_now()` as never,
      useBy: status === 'approved' ? (sql`nightshift_now() + make_interval(secs => ${useBySeconds})` as never) : null,
    })
    .where('id', '=', approval.id)
    .execute()
  return status
}

const securityRowsPerIncident = 100

/** Records an attempt that changed nothing. Capped, so that a flood of forged signals cannot fill the log. */
async function suspect(trx: Trx, incidentId: string | null, request: DecisionRequest, code: string, subject: string) {
  if (!incidentId) return
  await recordSecurityEvent(trx, incidentId, {
    code,
    door: request.via,
    subject,
    detail: `${request.decision} was refused: ${code}`,
  })
}

export async function recordSecurityEvent(
  trx: Trx,
  incidentId: string,
  event: { code: string; door: string; subject: string; detail: string },
): Promise<void> {
  const { count } = await trx
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'security_event')
    .executeTakeFirstOrThrow()
  if (count >= securityRowsPerIncident) return
  await append(trx, incidentId, null, {
    kind: 'security_event',
    actor: systemActor,
    detail: `${event.code} at the door ${event.door}`,
    metadata: event,
  })
}

async function expirePending(trx: Trx, approval: { id: string; incidentId: string; callId: string }): Promise<boolean> {
  const expired = await trx
    .updateTable('approval')
    .set({ status: 'expired', decidedAt: sql`nightshift_now()` as never })
    .where('id', '=', approval.id)
    .where('status', '=', 'pending')
    .where('expiresAt', '<=', sql<string>`nightshift_now()`)
    .returning('id')
    .executeTakeFirst()
  if (!expired) return false
  await append(trx, approval.incidentId, null, {
    kind: 'approval_expired',
    actor: systemActor,
    detail: 'Nobody decided in time',
    metadata: { approvalId: approval.id, callId: approval.callId },
  })
  return true
}

/**
 * What a waiting run reads when it is woken: the status now, expiring a late one on the way, and how long a pending one may
 * still take by the database's clock. Marks a settled decision as read, so that the tick need not wake for it again.
 */
export async function readDecision(
  db: Db,
  approvalId: string,
): Promise<{ status: ApprovalStatus; remainingMs: number; incidentId: string } | null> {
  return await db.transaction().execute(async (trx) => {
    const found = await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
    if (!found) return null
    await trx.selectFrom('incident').select('id').where('id', '=', found.incidentId).forUpdate().execute()
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
      await trx
        .updateTable('approval')
        .set({ readAt: sql`nightshift_now()` as never })
        .where('id', '=', approvalId)
        .execute()
    }
    return { status: approval.status, remainingMs: 0, incidentId: approval.incidentId }
  })
}

/** Takes back what is pending for an incident. The caller holds the incident's lock. */
export async function withdrawPending(trx: Trx, incidentId: string, reason: string): Promise<void> {
  const withdrawn = await trx
    .updateTable('approval')
    .set({ status: 'withdrawn', decidedAt: sql`nightshift_now()` as never })
    .where('incidentId', '=', incidentId)
    .where('status', 'in', ['pending', 'approved'])
    .returning(['id', 'callId'])
    .execute()
  for (const approval of withdrawn) {
    await append(trx, incidentId, null, {
      kind: 'approval_withdrawn',
      actor: systemActor,
      detail: `Withdrawn: ${reason}`,
      metadata: { approvalId: approval.id, callId: approval.callId, reason },
    })
  }
}

/** Uses an approval up, in the transaction that writes `tool_started`: false when it is not approved or past its use-by. */
export async function consumeApproval(trx: Trx, approvalId: string): Promise<boolean> {
  const consumed = await trx
    .updateTable('approval')
    .set({ status: 'consumed' })
    .where('id', '=', approvalId)
    .where('status', '=', 'approved')
    .where('useBy', '>', sql<string>`nightshift_now()`)
    .returning('id')
    .executeTakeFirst()
  return consumed !== undefined
}

/** Decisions that no run has read for a minute, and pending ones past their expiry: their workflows are woken again. */
export async function unreadDecisions(db: Db): Promise<{ approvalId: string; incidentId: string; attempt: number }[]> {
  return await db
    .selectFrom('approval')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select(['approval.id as approvalId', 'approval.incidentId', 'incident.attempt'])
    .where('incident.status', '=', 'awaiting_approval')
    .where(
      sql<boolean>`(approval.status in ('approved', 'denied', 'withdrawn') and approval.read_at is null
        and approval.decided_at < nightshift_now() - interval '1 minute')
        or (approval.status = 'pending' and approval.expires_at < nightshift_now())`,
    )
    .limit(100)
    .execute()
}

/** The pending approval of the very same action for another incident: joined, not asked again. */
export async function pendingOfAction(db: Db | Trx, actionDigest: string, incidentId: string): Promise<string | null> {
  const row = await db
    .selectFrom('approval')
    .select('id')
    .where('actionDigest', '=', actionDigest)
    .where('incidentId', '!=', incidentId)
    .where('status', '=', 'pending')
    .executeTakeFirst()
  return row?.id ?? null
}

/** Digests that a person denied anywhere in the group of this incident; an expiry is not a denial. */
export async function deniedDigests(db: Db | Trx, incidentId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('approval')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select('actionDigest')
    .distinct()
    .where('approval.status', '=', 'denied')
    .where((where) =>
      where.or([
        where('approval.incidentId', '=', incidentId),
        where(
          'incident.groupId',
          '=',
          where
            .selectFrom('incident as own')
            .select('own.groupId')
            .where('own.id', '=', incidentId)
            .where('own.groupId', 'is not', null),
        ),
      ]),
    )
    .execute()
  return rows.map((row) => row.actionDigest)
}

/** An approval that a person gave and that may still be used, by the database's clock. */
export async function usableApproval(trx: Trx, id: string): Promise<ApprovalRow | null> {
  const row = await trx
    .selectFrom('approval')
    .selectAll()
    .where('id', '=', id)
    .where('status', '=', 'approved')
    .where('useBy', '>', sql<string>`nightshift_now()`)
    .executeTakeFirst()
  return row ?? null
}

/** Approvals as people see them, newest first. */
export async function listApprovals(
  db: Db,
  filter: { status?: ApprovalStatus; incidentId?: string; id?: string },
  page: { before: string | null; limit: number },
): Promise<Approval[]> {
  let query = db.selectFrom('approval').selectAll().orderBy('id', 'desc').limit(page.limit)
  if (filter.status === 'pending') query = query.where('expiresAt', '>', sql<string>`nightshift_now()`)
  if (filter.status) query = query.where('status', '=', filter.status)
  if (filter.incidentId) query = query.where('incidentId', '=', filter.incidentId)
  if (filter.id) query = query.where('id', '=', filter.id)
  if (page.before) query = query.where('id', '<', page.before)
  const rows = await query.execute()
  if (rows.length === 0) return []
  const decisions = await db
    .selectFrom('approvalDecision')
    .innerJoin('operator', 'operator.id', 'approvalDecision.operatorId')
    .select(['approvalId', 'operator.name as operator', 'decision', 'reason', 'via', 'at'])
    .where(
      'approvalId',
      'in',
      rows.map((row) => row.id),
    )
    .orderBy('at')
    .execute()
  return rows.map((row) => toApproval(row, decisions))
}

function toApproval(
  row: ApprovalRow,
  decisions: {
    approvalId: string
    operator: string
    decision: Decision
    reason: string | null
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
    decisions: own.map(({ operator, decision, reason, via, at }) => ({ operator, decision, reason, via, at })),
  }
}
