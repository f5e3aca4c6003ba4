import { sql } from 'kysely'
import { type ApprovalStatus, type Decision, type DecisionOutcome, useBySeconds } from '../../domain/approval.ts'
import { formatMinute } from '../../domain/format.ts'
import { nameOff } from '../../domain/format-death.ts'
import type { ManualChange } from '../../domain/manual-change.ts'
import { cleanse } from '../../safety/redact.ts'
import { refusalToDecide } from '../access/operators.ts'
import { databaseTime, inSeconds, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { type AskedWitnesses, whyDeathsBar } from '../inventory/deaths.ts'
import { append } from '../log/append.ts'
import { recordSecurityEvent } from '../log/audit.ts'
import type { ApprovalRow } from '../tables.ts'
import { storeGrant } from './grants.ts'
import { countVotes, expirePending, isOwnRun } from './settle.ts'
import { digestOfDecision, findToken, type SaidDecision, type StoredToken, spend } from './tokens.ts'

type DecisionRequest = SaidDecision & {
  /** The approval; null if only the token identifies it. */
  approvalId: string | null
  /** The incident of the request, in whose log an attempt with an invalid token is recorded. */
  incidentId: string | null
  token: string
  /** The person who sends the decision; null at Temporal, where nobody is signed in. */
  caller: string | null
  /** The report of monitoring about hosts that are considered dead, if it could be queried. */
  asked?: AskedWitnesses
  /** The place where the decision was made: api, cli, page, slack, signal, update. */
  via: string
}

/**
 * Decides an approval, wherever the decision comes from. The deciding person is the person of the
 * token; a sender who is signed in must be this person. Changed arguments pass the policy check and
 * a dry run, and people are asked about them, with this person's vote. The caller has checked that
 * the tool of a grant may be granted. Runs in one transaction, with the locks of the incident and
 * the approval, by the database's clock: of several simultaneous requests exactly one decides. A
 * token that is invalid, foreign, used or expired changes nothing and causes a `security_event`. A
 * token is used up if another person sends it, or if it is sent for another approval or decision. A
 * repeated request with its token gets the outcome of the first request.
 */
export async function decide(db: Db, request: DecisionRequest): Promise<DecisionOutcome> {
  return await db.transaction().execute(async (trx) => {
    const first = await findToken(trx, request.token)
    const approvalId = request.approvalId ?? first?.approvalId ?? null
    const found = approvalId
      ? await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
      : undefined
    const incidentId = found?.incidentId ?? request.incidentId
    if (incidentId) await lockIncident(trx, incidentId)
    // Reads the token again under the lock, because another request with this token may have used
    // it.
    const token = first && (await findToken(trx, request.token))
    const isElsewhere = request.incidentId !== null && found !== undefined && found.incidentId !== request.incidentId
    if (!token || isElsewhere) {
      const code = token ? 'FOREIGN_TOKEN' : 'UNKNOWN_TOKEN'
      const sender = await nameOfSender(trx, request)
      if (token) await spend(trx, token, 'foreign', { sender })
      await recordRefusedDecision(trx, incidentId, request, code, token?.name ?? 'unknown')
      return { outcome: 'forbidden', code, message: 'this decision token is not valid for this approval' }
    }
    if (!found || !approvalId) return { outcome: 'not_found' }
    if (token.approvalId !== approvalId) {
      await spend(trx, token, 'foreign', { sender: await nameOfSender(trx, request) })
      await recordRefusedDecision(trx, incidentId, request, 'FOREIGN_TOKEN', token.name)
      return {
        outcome: 'forbidden',
        code: 'FOREIGN_TOKEN',
        message: 'this decision token is for another approval, and is now spent',
      }
    }
    return await decideWith(trx, token, { ...request, approvalId })
  })
}

/**
 * Checks that the token belongs to the sender and to this approval and may be used, and that the
 * approval is still pending.
 */
async function decideWith(
  trx: Trx,
  token: StoredToken,
  request: DecisionRequest & { approvalId: string },
): Promise<DecisionOutcome> {
  const { approvalId } = request
  const approval = await trx
    .selectFrom('approval')
    .selectAll()
    .select(sql<boolean>`expires_at <= nightshift_now()`.as('late'))
    .where('id', '=', approvalId)
    .forUpdate()
    .executeTakeFirstOrThrow()
  const { incidentId } = approval
  const refused = (code: string, message: string): DecisionOutcome => ({ outcome: 'forbidden', code, message })
  const refuseForeign = async (code: 'FOREIGN_TOKEN' | 'OTHER_VERDICT', why: string): Promise<DecisionOutcome> => {
    const sender = await nameOfSender(trx, request)
    await spend(trx, token, code === 'OTHER_VERDICT' ? 'other verdict' : 'foreign', { sender })
    await recordRefusedDecision(trx, incidentId, request, code, token.name)
    return refused(code, `this decision token ${why}. The token is now spent: create another`)
  }
  const foreignDoor = describeForeignDoor(token, request)
  if (foreignDoor) return await refuseForeign('FOREIGN_TOKEN', foreignDoor)
  if (token.outcome && token.request === digestOfDecision(request)) {
    return { outcome: 'repeated', status: token.outcome.status, approvalId, incidentId }
  }
  const given = await decidedBefore(trx, token, approval, request)
  if (given) return given
  if (token.isSpent) {
    await recordRefusedDecision(trx, incidentId, request, 'SPENT_TOKEN', token.name)
    return refused('SPENT_TOKEN', 'this decision token was used before')
  }
  if (token.decision !== null && token.decision !== request.decision) {
    const verdict = { approve: 'approves', deny: 'denies' }[token.decision]
    return await refuseForeign('OTHER_VERDICT', `${verdict} and nothing else`)
  }
  const foreignBody = describeForeignBody(token, request)
  if (foreignBody) return await refuseForeign('FOREIGN_TOKEN', foreignBody)
  if (approval.status === 'pending' && approval.late) {
    await expirePending(trx, approval)
    await recordRefusedDecision(trx, incidentId, request, 'LATE_TOKEN', token.name)
    return { outcome: 'gone', status: 'expired', message: `${approvalId} expired at ${approval.expiresAt}` }
  }
  if (approval.status !== 'pending' || token.isLate) {
    const gone = approval.status === 'expired' || approval.status === 'withdrawn' || approval.status === 'pending'
    if (gone) await recordRefusedDecision(trx, incidentId, request, 'LATE_TOKEN', token.name)
    const message = `${approvalId} is ${approval.status} already`
    return { outcome: gone ? 'gone' : 'conflict', status: approval.status, message }
  }
  // Checks the person's rights again, because they may have changed since the token was created.
  const refusal = await refusalToDecide(trx, token.operatorId, approval)
  if (refusal) {
    await recordRefusedDecision(trx, incidentId, request, 'ROLE_LOST', token.name)
    return refused('ROLE_LOST', refusal)
  }
  if (request.decision === 'approve' && (await isOwnRun(trx, token.operatorId, approval))) {
    return refused('OWN_RUN', 'the person who requested a run cannot approve its critical actions')
  }
  const bar = await barOfDeaths(trx, approval, request)
  if (bar) return refused(bar.code, bar.reason)
  return await record(trx, token, approval, request)
}

/** Returns the outcome of the person's earlier decision on the approval; null if there is none. */
async function decidedBefore(
  trx: Trx,
  token: StoredToken,
  { id: approvalId, incidentId, status }: ApprovalRow,
  { decision }: DecisionRequest,
): Promise<DecisionOutcome | null> {
  const before = await trx
    .selectFrom('approvalDecision')
    .select('decision')
    .where('approvalId', '=', approvalId)
    .where('operatorId', '=', token.operatorId)
    .executeTakeFirst()
  if (!before) return null
  await spend(trx, token, decision)
  if (before.decision === decision) return { outcome: 'repeated', status, approvalId, incidentId }
  return { outcome: 'conflict', status, message: `${token.name} already decided: ${before.decision}` }
}

/**
 * Explains why an approval is not accepted because of an unconfirmed death. Only an approval of
 * unchanged arguments may state that a host is off.
 */
async function barOfDeaths(trx: Trx, approval: ApprovalRow, { decision, args, hostIsOff, asked }: DecisionRequest) {
  if (decision === 'approve' && !args) return await whyDeathsBar(trx, approval, hostIsOff ?? [], asked)
  if (!hostIsOff || hostIsOff.length === 0) return null
  return { code: 'HOST_NOT_CONFIRMED', reason: 'Only an approval of the unchanged plan can say that a host is off.' }
}

/**
 * Whether the token belongs to the sender and to this decision. Called before expensive work;
 * `decide` repeats the check.
 */
export async function isTokenFor(db: Db, request: DecisionRequest): Promise<boolean> {
  const token = await findToken(db, request.token)
  return token !== null && !describeForeignDoor(token, request) && !describeForeignBody(token, request)
}

/** Explains why a token does not belong to the sender or to this origin; null if it belongs. */
function describeForeignDoor({ operatorId, purpose }: StoredToken, { caller }: DecisionRequest): string | null {
  if (caller !== null && caller !== operatorId) return 'belongs to another person'
  if (purpose === 'decision' && caller === null) return 'is for the API, and Temporal needs a token for Temporal'
  if (purpose === 'temporal' && caller !== null) return 'is for Temporal, and the API needs a token for this decision'
  return null
}

/**
 * Explains why a token does not contain this decision; null if it contains the decision. A token
 * for Temporal, or from before 0.3, contains only yes or no.
 */
function describeForeignBody({ purpose, binds }: StoredToken, request: DecisionRequest): string | null {
  if (purpose === 'decision') return binds === digestOfDecision(request) ? null : 'is for another decision'
  return request.args || request.grant ? 'has only a verdict, no arguments and no grant' : null
}

/**
 * Describes until when the action is denied, for all readers of the reason: the model, people, and
 * other systems.
 */
function laterWords({ decision, askAgainAt }: DecisionRequest): string | null {
  return decision === 'deny' && askAgainAt ? `not before ${formatMinute(new Date(askAgainAt).toISOString())}` : null
}

/** Records the decision and uses up the token with which it was made. */
async function record(
  trx: Trx,
  token: StoredToken,
  approval: ApprovalRow,
  request: DecisionRequest,
): Promise<DecisionOutcome> {
  const words = [laterWords(request), cleanse(request.reason?.trim())].filter(Boolean).join(': ') || null
  // Marks a reason that came through Temporal, because anybody between the person and Temporal may
  // have written it.
  const said = words && request.caller === null ? `said at Temporal: ${words}` : words
  const reason = said || (request.decision === 'deny' ? 'no reason given' : null)
  const voter = { operatorId: token.operatorId, name: token.name }
  const status = request.args
    ? await supersede(trx, approval, voter, request.args, reason)
    : await vote(trx, approval, voter, { ...request, reason })
  await spend(trx, token, request.args ? 'edit' : request.decision, {
    did: { request: digestOfDecision(request), status },
  })
  if (request.grant && status === 'approved') await storeGrant(trx, approval, token.operatorId, request.grant)
  return { outcome: 'recorded', status, approvalId: approval.id, incidentId: approval.incidentId }
}

/**
 * Stores the vote of the person who changed the arguments, for the new approval with the changed
 * arguments. The vote counts only if this person may decide the changed call. Returns the status of
 * the approval.
 */
export async function voteOfEditor(trx: Trx, approvalId: string, editor: Voter): Promise<ApprovalStatus> {
  const row = await trx.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirstOrThrow()
  const refused = (await refusalToDecide(trx, editor.operatorId, row)) ?? (await isOwnRun(trx, editor.operatorId, row))
  // Checks for dead hosts, because the person who changed the arguments was not shown which hosts
  // are considered dead.
  if (refused || (await whyDeathsBar(trx, row, []))) return row.status
  return await vote(trx, row, editor, { decision: 'approve', reason: 'with changed arguments', via: 'edit' })
}

/**
 * Stores a person's vote for that person's own write. The vote counts only if the person may decide
 * the write.
 */
export async function voteOfRequester(
  trx: Trx,
  approvalId: string,
  { operatorId, name, reason, alone, mayVote, hostIsOff = [] }: ManualChange,
): Promise<ApprovalStatus> {
  const row = await trx.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirstOrThrow()
  if (!mayVote || (await refusalToDecide(trx, operatorId, row))) return row.status
  if (await whyDeathsBar(trx, row, hostIsOff)) return row.status
  const words = alone ? `alone: ${reason}` : reason
  return await vote(trx, row, { operatorId, name }, { decision: 'approve', reason: words, via: 'direct', hostIsOff })
}

type Voter = { operatorId: string; name: string }

/**
 * Stores the decision of one person: a row of the vote and a row of the log. Returns the status of
 * the approval.
 */
async function vote(
  trx: Trx,
  approval: ApprovalRow,
  { operatorId, name }: Voter,
  {
    decision,
    reason = null,
    category,
    via,
    hostIsOff,
    askAgainAt = null,
  }: Pick<DecisionRequest, 'decision' | 'reason' | 'category' | 'via' | 'hostIsOff' | 'askAgainAt'>,
): Promise<ApprovalStatus> {
  const kind = decision === 'deny' ? (category ?? 'other') : null
  const at = await databaseTime(trx)
  await trx
    .insertInto('approvalDecision')
    .values({
      approvalId: approval.id,
      operatorId,
      decision,
      reason,
      category: kind,
      via,
      at,
      askAgainAt,
    })
    .execute()
  const settled = await settleVotes(trx, approval, decision)
  const { status } = settled
  const off = decision === 'approve' && hostIsOff?.length ? hostIsOff : null
  const saying = off && `, who says that ${nameOff(off)}`
  await append(trx, approval.incidentId, null, {
    kind: 'approval_decided',
    actor: `user:${name}`,
    detail: decision === 'approve' ? `Approved by ${name}${saying ?? ''}` : `Denied by ${name}: ${reason}`,
    metadata: {
      approvalId: approval.id,
      callId: approval.callId,
      decision,
      reason,
      ...(off && { hostIsOff: off }),
      ...(askAgainAt && { askAgainAt }),
      category: kind,
      via,
      actionDigest: approval.actionDigest,
      operatorId,
      at,
      ...settled,
    },
  })
  return status
}

/**
 * Ends this approval because of changed arguments. The run then makes the policy check and the dry
 * run with the changed arguments, and requests a new approval.
 */
async function supersede(
  trx: Trx,
  approval: ApprovalRow,
  { operatorId, name }: Voter,
  edited: Record<string, unknown>,
  why: string | null,
): Promise<ApprovalStatus> {
  const args = cleanse(edited)
  const { decidedAt } = await trx
    .updateTable('approval')
    .set({
      status: 'withdrawn',
      decidedAt: now,
      edited: JSON.stringify(args),
      editedBy: operatorId,
    })
    .where('id', '=', approval.id)
    .returning('decidedAt')
    .executeTakeFirstOrThrow()
  const reason = `${name} changed the arguments${why ? `: ${why}` : ''}`
  await append(trx, approval.incidentId, null, {
    kind: 'approval_withdrawn',
    actor: `user:${name}`,
    detail: `Withdrawn: ${reason}`,
    metadata: { approvalId: approval.id, callId: approval.callId, reason, edited: args, operatorId, decidedAt },
  })
  return 'withdrawn'
}

/**
 * Determines the status from the votes. Any denial ends the approval. The status is `approved` once
 * enough different people who may approve now have voted to approve.
 */
async function settleVotes(
  trx: Trx,
  approval: ApprovalRow,
  decision: Decision,
): Promise<{ status: ApprovalStatus; decidedAt: string | null; useBy: string | null }> {
  const count = await countVotes(trx, approval)
  const status = decision === 'deny' ? 'denied' : count >= approval.required ? 'approved' : 'pending'
  if (status === 'pending') return { status, decidedAt: null, useBy: null }
  return await trx
    .updateTable('approval')
    .set({
      status,
      decidedAt: now,
      useBy: status === 'approved' ? inSeconds(useBySeconds) : null,
    })
    .where('id', '=', approval.id)
    .returning(['status', 'decidedAt', 'useBy'])
    .executeTakeFirstOrThrow()
}

/**
 * Records an attempt to decide that changed nothing. The number of records is limited, so that
 * forged signals cannot fill the log.
 */
async function recordRefusedDecision(
  trx: Trx,
  incidentId: string | null,
  request: DecisionRequest,
  code: string,
  subject: string,
) {
  if (!incidentId) return
  const sender = await nameOfSender(trx, request)
  await recordSecurityEvent(trx, incidentId, {
    code,
    door: request.via,
    subject,
    detail: `${request.decision} was refused: ${code}`,
    ...(sender !== null && sender !== subject && { by: sender }),
  })
}

/**
 * Returns the name of the signed-in sender, who may be another person than the token's; null at
 * Temporal.
 */
async function nameOfSender(trx: Trx, { caller }: DecisionRequest): Promise<string | null> {
  if (caller === null) return null
  const found = await trx.selectFrom('operator').select('name').where('id', '=', caller).executeTakeFirst()
  return found?.name ?? null
}
