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
  /** Null when the door names none: then the token alone says which. */
  approvalId: string | null
  /** The door's incident, so that an attempt with a false token leaves its trace there. */
  incidentId: string | null
  token: string
  /** Operator who sends it; null at Temporal, where nobody is signed in. */
  caller: string | null
  /** Monitoring's word on the hosts that the plan takes for dead, where the door can ask it. */
  asked?: AskedWitnesses
  /** Which door: api, cli, page, slack, signal, update. */
  via: string
}

/**
 * Judges every decision, at any door. The person is the token's; where somebody is signed in they
 * must be that person. Other arguments are judged and dry-run like any, and asked again with this
 * person's vote; the caller has checked that a grant's tool may be granted. One transaction under
 * the incident's and the approval's locks, by the database's clock: of all rivals exactly one
 * decides. A false, foreign, spent or late token changes nothing and leaves a `security_event`;
 * shown by another person, or for another approval or decision, it is spent. The same request with
 * the same token gets the same outcome.
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
    // Again under the lock: a rival with the same token may have spent it.
    const token = first && (await findToken(trx, request.token))
    const isElsewhere = request.incidentId !== null && found !== undefined && found.incidentId !== request.incidentId
    if (!token || isElsewhere) {
      const code = token ? 'FOREIGN_TOKEN' : 'UNKNOWN_TOKEN'
      const sender = await nameOfSender(trx, request)
      if (token) await spend(trx, token, 'foreign', { sender })
      await recordRefusedDecision(trx, incidentId, request, code, token?.name ?? 'unknown')
      return { outcome: 'forbidden', code, message: 'this decision token is not valid here' }
    }
    if (!found || !approvalId) return { outcome: 'not_found' }
    if (token.approvalId !== approvalId) {
      await spend(trx, token, 'foreign', { sender: await nameOfSender(trx, request) })
      await recordRefusedDecision(trx, incidentId, request, 'FOREIGN_TOKEN', token.name)
      return {
        outcome: 'forbidden',
        code: 'FOREIGN_TOKEN',
        message: 'this decision token is for another approval, and spent now',
      }
    }
    return await decideWith(trx, token, { ...request, approvalId })
  })
}

/**
 * Whether the token is its person's and for this approval, may be used, and there is something to
 * decide.
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
    return refused(code, `this decision token ${why}: it is spent now, mint another`)
  }
  const foreignDoor = describeForeignDoor(token, request)
  if (foreignDoor) return await refuseForeign('FOREIGN_TOKEN', foreignDoor)
  if (token.outcome && token.request === digestOfDecision(request)) {
    return { outcome: 'repeated', status: token.outcome.status, approvalId, incidentId }
  }
  const before = await trx
    .selectFrom('approvalDecision')
    .select('decision')
    .where('approvalId', '=', approvalId)
    .where('operatorId', '=', token.operatorId)
    .executeTakeFirst()
  if (before) {
    await spend(trx, token, request.decision)
    if (before.decision === request.decision) {
      return { outcome: 'repeated', status: approval.status, approvalId, incidentId }
    }
    const message = `${token.name} already decided: ${before.decision}`
    return { outcome: 'conflict', status: approval.status, message }
  }
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
  // What somebody may can change between minting a token and using it.
  const refusal = await refusalToDecide(trx, token.operatorId, approval)
  if (refusal) {
    await recordRefusedDecision(trx, incidentId, request, 'ROLE_LOST', token.name)
    return refused('ROLE_LOST', refusal)
  }
  if (request.decision === 'approve' && (await isOwnRun(trx, token.operatorId, approval))) {
    return refused('OWN_RUN', 'who asked for a run cannot approve its critical actions')
  }
  const bar = await barOfDeaths(trx, approval, request)
  if (bar) return refused(bar.code, bar.reason)
  return await record(trx, token, approval, request)
}

/** A host without a confirmed death bars an approval; a denial, and other arguments, are free. */
async function barOfDeaths(trx: Trx, approval: ApprovalRow, { decision, args, hostIsOff, asked }: DecisionRequest) {
  if (decision === 'approve' && !args) return await whyDeathsBar(trx, approval, hostIsOff ?? [], asked)
  if (!hostIsOff || hostIsOff.length === 0) return null
  return { code: 'HOST_NOT_CONFIRMED', reason: 'That a host is off is said with an approval of the plan as it is.' }
}

/**
 * Whether the token is its sender's, for this very decision. Asked before dearer work; `decide`
 * asks again.
 */
export async function isTokenFor(db: Db, request: DecisionRequest): Promise<boolean> {
  const token = await findToken(db, request.token)
  return token !== null && !describeForeignDoor(token, request) && !describeForeignBody(token, request)
}

/** Why a token is not its sender's, or not for this door; null where it is. */
function describeForeignDoor({ operatorId, purpose }: StoredToken, { caller }: DecisionRequest): string | null {
  if (caller !== null && caller !== operatorId) return 'is of another person'
  if (purpose === 'decision' && caller === null) return 'is for the API, and Temporal takes one for Temporal'
  if (purpose === 'temporal' && caller !== null) return 'is for Temporal, and the API takes one for this decision'
  return null
}

/**
 * Says why a token does not carry this decision; null where it does. One for Temporal, or from
 * before 0.3, carries only its verdict.
 */
function describeForeignBody({ purpose, binds }: StoredToken, request: DecisionRequest): string | null {
  if (purpose === 'decision') return binds === digestOfDecision(request) ? null : 'is for a decision in other words'
  return request.args || request.grant ? 'carries its verdict, no arguments and no grant' : null
}

/** Says until when it is denied, for all who read the reason: model, people, other systems. */
function laterWords({ decision, askAgainAt }: DecisionRequest): string | null {
  return decision === 'deny' && askAgainAt ? `not before ${formatMinute(new Date(askAgainAt).toISOString())}` : null
}

/** Counts the decision, and spends the token for it. */
async function record(
  trx: Trx,
  token: StoredToken,
  approval: ApprovalRow,
  request: DecisionRequest,
): Promise<DecisionOutcome> {
  const words = [laterWords(request), cleanse(request.reason?.trim())].filter(Boolean).join(': ') || null
  // Anybody between its person and Temporal may have written these words.
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
 * The vote of the person who wrote the arguments, on the approval asked again with them: it counts
 * only if they may decide what the call has become. Answers the approval's state.
 */
export async function voteOfEditor(trx: Trx, approvalId: string, editor: Voter): Promise<ApprovalStatus> {
  const row = await trx.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirstOrThrow()
  const refused = (await refusalToDecide(trx, editor.operatorId, row)) ?? (await isOwnRun(trx, editor.operatorId, row))
  // The author of the change has not been shown which hosts it takes for dead.
  if (refused || (await whyDeathsBar(trx, row, []))) return row.status
  return await vote(trx, row, editor, { decision: 'approve', reason: 'with changed arguments', via: 'edit' })
}

/** The vote of a person for their own write: it counts where they may decide about it. */
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

/** One person's decision: a row that counts and a row that tells. Answers the approval's state. */
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
 * Other arguments than asked: this approval ends, and the run judges, dry-runs and asks with the
 * person's.
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
 * Any denial ends it. Approvals count distinct people who may approve it now, until enough have
 * spoken.
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
 * Records an attempt that changed nothing. Capped, so that a flood of forged signals cannot fill
 * the log.
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

/** The person signed in at the door, maybe not the token's; null at Temporal. */
async function nameOfSender(trx: Trx, { caller }: DecisionRequest): Promise<string | null> {
  if (caller === null) return null
  const found = await trx.selectFrom('operator').select('name').where('id', '=', caller).executeTakeFirst()
  return found?.name ?? null
}
