import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { ApprovalStatus, Decision, DecisionBody, TokenPurpose } from '../../domain/approval.ts'
import { cleanJson, digestOf, sha256 } from '../../domain/digest.ts'
import { isType } from '../../domain/incident-type.ts'
import { type Principal, permissionsOf, typesOf } from '../../domain/permissions.ts'
import { refusalToDecide, typeOfApproval } from '../access/operators.ts'
import { now } from '../clock.ts'
import { type Db, inTransaction, type Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { recordAudit, recordSecurityEvent } from '../log/audit.ts'

type MintOutcome =
  | {
      outcome: 'minted'
      token: string
      approvalId: string
      incidentId: string
      decision: Decision
      purpose: TokenPurpose
      expiresAt: string
    }
  | { outcome: 'not_found' | 'forbidden' | 'gone'; message: string }

/** A decision as a caller sends it. Absent parts are null. */
export type SaidDecision = Pick<DecisionBody, 'decision'> & Partial<DecisionBody>

/**
 * Computes the digest of the decision that a token with the purpose `decision` contains: the whole
 * decision with its reason.
 */
export function digestOfDecision({
  decision,
  reason,
  category,
  args,
  grant,
  hostIsOff,
  askAgainAt,
}: SaidDecision): string {
  const said = {
    decision,
    reason: reason ?? null,
    category: category ?? null,
    args: args ?? null,
    grant: grant ?? null,
    // Leaves out an empty field, so that tokens of an older version stay valid.
    ...(askAgainAt && { askAgainAt }),
    ...(hostIsOff && hostIsOff.length > 0 && { hostIsOff }),
  }
  return digestOf(cleanJson(said))
}

/**
 * Creates a decision token: 256 random bits for one signed-in person, one pending approval and one
 * decision. The token is stored as a hash and works once. Only this result contains the token in
 * plain text. A token for the API contains the whole decision, and only its person can use it. A
 * token for Temporal contains only yes or no: somebody who intercepts it can only do what its
 * person is about to do.
 */
export async function mintDecisionToken(
  db: Db,
  principal: Principal,
  approvalId: string,
  said: SaidDecision,
  purpose: TokenPurpose = 'decision',
): Promise<MintOutcome> {
  const { operatorId } = principal
  const { decision } = said
  const binds = purpose === 'decision' ? digestOfDecision(said) : null
  if (operatorId === null || !permissionsOf(principal).includes('decide')) {
    return { outcome: 'forbidden', message: `${principal.name} (${principal.role}) may not decide approvals` }
  }
  const row = await db.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirst()
  if (!row) return { outcome: 'not_found', message: `there is no approval ${approvalId}` }
  const refusal = (await refusalByTypes(db, principal, approvalId)) ?? (await refusalToDecide(db, operatorId, row))
  if (refusal) return { outcome: 'forbidden', message: refusal }
  const token = randomBytes(32).toString('base64url')
  const expiresAt = await inTransaction(db, async (trx) => {
    const at = await insertToken(trx, approvalId, { operatorId, decision, purpose, binds, sha256: sha256(token) })
    const detail = `Minted a decision token: ${decision}${purpose === 'temporal' ? ', for Temporal' : ''}`
    if (at) await recordAudit(trx, { who: principal.name, what: 'approval.token_minted', subject: approvalId, detail })
    return at
  })
  if (!expiresAt) return { outcome: 'gone', message: `${approvalId} is ${row.status} and can no longer be decided` }
  const { incidentId } = row
  return { outcome: 'minted', token, approvalId, incidentId, decision, purpose, expiresAt }
}

type MintedRow = {
  sha256: string
  operatorId: string
  decision: Decision
  purpose: TokenPurpose
  binds: string | null
}

/**
 * Stores a token for a pending approval and returns the token's expiry. Null if the approval is not
 * pending.
 */
async function insertToken(trx: Trx, approvalId: string, token: MintedRow): Promise<string | null> {
  const minted = await trx
    .insertInto('decisionToken')
    .columns(['sha256', 'approvalId', 'operatorId', 'decision', 'purpose', 'binds', 'expiresAt'])
    .expression(
      trx
        .selectFrom('approval')
        .select([
          sql<string>`${token.sha256}`.as('sha256'),
          'id',
          sql<string>`${token.operatorId}`.as('operatorId'),
          sql<Decision>`${token.decision}`.as('decision'),
          sql<TokenPurpose>`${token.purpose}`.as('purpose'),
          sql<string | null>`${token.binds}::text`.as('binds'),
          'expiresAt',
        ])
        .where('id', '=', approvalId)
        .where('status', '=', 'pending')
        .where('expiresAt', '>', now),
    )
    .returning('expiresAt')
    .executeTakeFirst()
  return minted?.expiresAt ?? null
}

/**
 * Explains why a credential that is limited to some incident types may not decide this approval;
 * null if it may.
 */
async function refusalByTypes(db: Db, principal: Principal, approvalId: string): Promise<string | null> {
  const types = typesOf(principal)
  const type = await typeOfApproval(db, approvalId)
  if (!types || (type !== null && types.some((each) => isType(each, type)))) return null
  return `this token of ${principal.name} is for incidents of type ${types.join(', ')}`
}

export type StoredToken = {
  sha256: string
  approvalId: string
  operatorId: string
  /** The name of the person for whom the token was made. */
  name: string
  decision: Decision | null
  purpose: TokenPurpose | null
  binds: string | null
  usedFor: string | null
  isSpent: boolean
  isLate: boolean
  request: string | null
  outcome: { status: ApprovalStatus } | null
}

export async function findToken(db: Db | Trx, text: string): Promise<StoredToken | null> {
  const found = await db
    .selectFrom('decisionToken')
    .innerJoin('operator', 'operator.id', 'decisionToken.operatorId')
    .select(['sha256', 'approvalId', 'operatorId', 'operator.name', 'decision'])
    .select(['purpose', 'binds', 'usedFor', 'request', 'outcome'])
    .select(sql<boolean>`used_at is not null`.as('isSpent'))
    .select(sql<boolean>`expires_at <= nightshift_now()`.as('isLate'))
    .where('sha256', '=', sha256(text))
    .executeTakeFirst()
  return found ?? null
}

/**
 * Uses up a token. With `did`, a repeat of its request gets this outcome from now on, and the row
 * of the decision records the outcome. Without `did`, the audit log names the sender. A token that
 * is already used up stays unchanged.
 */
export async function spend(
  trx: Trx,
  token: StoredToken,
  usedFor: string,
  { did, sender }: { did?: { request: string; status: ApprovalStatus }; sender?: string | null } = {},
): Promise<void> {
  const spent = await trx
    .updateTable('decisionToken')
    .set({
      usedAt: now,
      usedFor,
      ...(did && { request: did.request, outcome: JSON.stringify({ status: did.status }) }),
    })
    .where('sha256', '=', token.sha256)
    .where('usedAt', 'is', null)
    .returning('sha256')
    .executeTakeFirst()
  if (!spent || did) return
  const whose = sender && sender !== token.name ? ` of ${token.name}` : ''
  const detail = `A decision token${whose} is spent without a decision: ${usedFor}`
  await recordAudit(trx, { who: sender ?? token.name, what: 'approval.token_spent', subject: token.approvalId, detail })
}

/** Finds which of these texts are decision tokens, used up or not. */
export async function tokensAmong(db: Db, texts: readonly string[]): Promise<Set<string>> {
  if (texts.length === 0) return new Set()
  const byHash = new Map(texts.map((text) => [sha256(text), text]))
  const rows = await db
    .selectFrom('decisionToken')
    .select('sha256')
    .where('sha256', 'in', [...byHash.keys()])
    .execute()
  return new Set(rows.map((row) => byHash.get(row.sha256) as string))
}

/**
 * Invalidates a token that others can read and that decided nothing. Its person gets another token
 * by deciding on the card. Records a `security_event` in the token's incident.
 */
export async function voidToken(db: Db, text: string, door: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const found = await findToken(trx, text)
    if (!found || found.isSpent) return
    const { incidentId } = await trx
      .selectFrom('approval')
      .select('incidentId')
      .where('id', '=', found.approvalId)
      .executeTakeFirstOrThrow()
    await lockIncident(trx, incidentId)
    await spend(trx, found, 'exposed')
    await recordSecurityEvent(trx, incidentId, {
      code: 'TOKEN_EXPOSED',
      door,
      subject: found.name,
      detail: `a decision token of ${found.name} for ${found.approvalId} was sent in a wrong form. The token is now invalid; the card creates another`,
    })
  })
}
