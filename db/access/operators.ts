import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { type Decider, mayDecide } from '../../domain/approvers.ts'
import { describeOperator } from '../../domain/authority-words.ts'
import type { DecisionSubject } from '../../domain/decision-right.ts'
import { newId, sha256 } from '../../domain/digest.ts'
import type { PersonRole } from '../../domain/permissions.ts'
import { type Identity, isFreeName, operatorNameOf } from '../../domain/sign-in.ts'
import { whyNoMember } from '../../domain/site-decision.ts'
import type { Risk } from '../../domain/tool.ts'
import { databaseTime, now } from '../clock.ts'
import { type Db, inTransaction, type Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'

export type OperatorRow = {
  id: string
  name: string
  role: PersonRole
  maxRisk: Risk
  incidentTypes: string[] | null
  /** Further rights as text, in the form of `domain/decision-right.ts`. */
  rights: string[]
  createdAt: string
  disabledAt: string | null
  /**
   * The identity provider that gives this person the role; null for a person who was created in
   * Nightshift.
   */
  issuer: string | null
  /** The last use of a token or browser session of this person, accurate to a few minutes. */
  lastSeenAt: string | null
  /** The person's id at Slack. A button pressed under this id counts as pressed by the person. */
  slackUserId: string | null
  /** The person's id at PagerDuty, where an acknowledgement takes an incident for this person. */
  pagerdutyUserId: string | null
}

function operators(db: Db) {
  return db
    .selectFrom('operator')
    .select(['id', 'name', 'role', 'maxRisk', 'incidentTypes', 'rights', 'createdAt', 'disabledAt', 'issuer'])
    .select(['slackUserId', 'pagerdutyUserId'])
    .select((where) =>
      where
        .selectFrom('apiToken')
        .whereRef('apiToken.operatorId', '=', 'operator.id')
        .select(({ fn }) => fn.max('lastUsedAt').as('lastSeenAt'))
        .as('lastSeenAt'),
    )
}

export async function operatorById(db: Db, id: string): Promise<OperatorRow | null> {
  return (await operators(db).where('id', '=', id).executeTakeFirst()) ?? null
}

export async function operatorByName({ db }: Scope, name: string): Promise<OperatorRow | null> {
  return (await operators(db).where('name', '=', name).executeTakeFirst()) ?? null
}

/**
 * Locks the person's row until the transaction ends, so that changes such as disabling the person
 * wait.
 */
export async function lockOperator(trx: Trx, id: string): Promise<OperatorRow | null> {
  await trx.selectFrom('operator').select('id').where('id', '=', id).forShare().execute()
  return await operatorById(trx, id)
}

type Elsewhere = 'slackUserId' | 'pagerdutyUserId'

/**
 * Finds the person to whom an admin gave this id at Slack or PagerDuty. The person may be disabled.
 */
export async function operatorElsewhere(db: Db, column: Elsewhere, id: string): Promise<OperatorRow | null> {
  return (await operators(db).where(column, '=', id).executeTakeFirst()) ?? null
}

export async function listOperators(
  { db }: Scope,
  page: { after: string | null; limit: number },
): Promise<OperatorRow[]> {
  let query = operators(db).orderBy('name').limit(page.limit)
  if (page.after) query = query.where('name', '>', page.after)
  return await query.execute()
}

type OperatorChange = {
  name: string
  role: PersonRole
  maxRisk: Risk
  incidentTypes: readonly string[] | null
  disabled: boolean
  /** The new further rights. If the field is absent, the rights stay unchanged. */
  rights?: readonly string[]
  /** The new Slack id. If the field is absent, the Slack id stays unchanged. */
  slackUserId?: string | null
  pagerdutyUserId?: string | null
}

/**
 * Creates or changes the person with this name. Returns the person's row before the change (null if
 * there was none) and after the change.
 */
export async function putOperator(
  trx: Trx,
  { name, role, maxRisk, incidentTypes, disabled, rights, slackUserId, pagerdutyUserId }: OperatorChange,
): Promise<{ before: OperatorRow | null; now: OperatorRow }> {
  const before = (await operators(trx).where('name', '=', name).forUpdate().executeTakeFirst()) ?? null
  const types = incidentTypes && JSON.stringify(incidentTypes)
  const further = rights && { rights: JSON.stringify(rights) }
  const disabledAt = disabled ? sql<string>`coalesce(operator.disabled_at, nightshift_now())` : null
  const { id } = await trx
    .insertInto('operator')
    .values({
      id: newId('opr'),
      name,
      role,
      maxRisk,
      incidentTypes: types,
      ...further,
      slackUserId: slackUserId ?? null,
      pagerdutyUserId: pagerdutyUserId ?? null,
      disabledAt: disabled ? now : null,
    })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet({ role, maxRisk, incidentTypes: types, ...further, disabledAt, slackUserId, pagerdutyUserId }),
    )
    .returning('id')
    .executeTakeFirstOrThrow()
  return { before, now: (await operatorById(trx, id)) as OperatorRow }
}

/**
 * Whether there is another admin besides this person. Locks the rows of admins until the
 * transaction ends: if two admins disable each other, the second change waits. Called before any
 * other lock is taken.
 */
export async function leavesAnAdmin(trx: Trx, operatorId: string): Promise<boolean> {
  const admins = await trx
    .selectFrom('operator')
    .select('id')
    .where('role', '=', 'admin')
    .where('disabledAt', 'is', null)
    .orderBy('id')
    // Lets an insert that refers to an admin, such as a vote, proceed without waiting.
    .forNoKeyUpdate()
    .execute()
  return admins.some(({ id }) => id !== operatorId)
}

/** The facts about an approval that determine who may decide it. */
type AskedDecision = { incidentId: string; dryRun: { details: Record<string, unknown> } | null } & Pick<
  DecisionSubject,
  'risk' | 'targets'
>

/**
 * Explains why this person may not decide this approval; null if the person may. Reads the rights
 * each time that authority is given or used, because they may change in between.
 */
export async function refusalToDecide(
  db: Db,
  operatorId: string,
  { incidentId, risk, targets, dryRun }: AskedDecision,
): Promise<string | null> {
  const incidentType = await typeOfIncident(db, incidentId)
  if (incidentType === null) return 'there is no such incident'
  const operator = await operatorById(db, operatorId)
  if (!operator) return 'there is no such person'
  const asked = { risk, incidentType, targets, at: await databaseTime(db) }
  return mayDecide(deciderOf(operator), asked) ?? whyNoMember(operator.name, dryRun)
}

/** Explains before a request why this person may not decide an approval; null if the person may. */
export async function refusalForRisk(
  db: Db,
  operatorId: string,
  asked: Omit<DecisionSubject, 'at'>,
): Promise<string | null> {
  const operator = await operatorById(db, operatorId)
  return operator ? mayDecide(deciderOf(operator), { ...asked, at: await databaseTime(db) }) : 'there is no such person'
}

export function deciderOf({ name, role, maxRisk, incidentTypes, rights, disabledAt }: OperatorRow): Decider {
  return { name, role, maxRisk, incidentTypes, rights, disabled: disabledAt !== null }
}

/** Maximum days of a session. Afterwards the person must sign in at the identity provider again. */
const days = 7

type SignedIn =
  | { outcome: 'signed_in'; tokenId: string; name: string; authority: string }
  | { outcome: 'disabled'; name: string }

/**
 * Finds or creates a person by issuer and subject, with the role that the person's groups give
 * today. Returns the id of the token for the session, and the person's authority in words.
 */
export async function signInAs(trx: Trx, identity: Identity, role: PersonRole): Promise<SignedIn> {
  const { id, name, disabledAt, ...kept } = await ensureIdentity(trx, identity, role)
  if (disabledAt !== null) return { outcome: 'disabled', name }
  const authority = describeOperator({ ...kept, disabledAt })
  const ends = sql<string>`nightshift_now() + make_interval(days => ${days})`
  const known = await trx
    .updateTable('apiToken')
    .set({ role, expiresAt: ends, lastUsedAt: now })
    .where('operatorId', '=', id)
    .where('kind', '=', 'sign_in')
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning('id')
    .executeTakeFirst()
  if (known) return { outcome: 'signed_in', tokenId: known.id, name, authority }
  const made = await trx
    .insertInto('apiToken')
    .values({
      id: newId('tok'),
      name: 'sign-in',
      prefix: 'sign-in',
      kind: 'sign_in',
      sha256: sha256(randomBytes(32)),
      role,
      operatorId: id,
      scopes: '[]',
      expiresAt: ends,
      lastUsedAt: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return { outcome: 'signed_in', tokenId: made.id, name, authority }
}

type Known = Pick<OperatorRow, (typeof knownColumns)[number]>
const knownColumns = [
  ...(['id', 'name', 'role', 'maxRisk', 'incidentTypes', 'rights', 'disabledAt'] as const),
  ...(['slackUserId', 'pagerdutyUserId'] as const),
] as const

/**
 * Finds or creates a person. A new person never gets the name of somebody else: if the name is
 * taken, a suffix is added.
 */
async function ensureIdentity(trx: Trx, identity: Identity, role: PersonRole): Promise<Known> {
  const { issuer, subject } = identity
  const known = () =>
    trx
      .updateTable('operator')
      .set({ role })
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .returning(knownColumns)
      .executeTakeFirst()
  const before = await known()
  if (before) return before
  const mark = sha256(`${issuer} ${subject}`).slice(0, 8)
  const wanted = operatorNameOf(identity.name)
  for (const name of [...(isFreeName(wanted) ? [wanted] : []), `${wanted}-${mark}`]) {
    const made = await trx
      .insertInto('operator')
      .values({ id: newId('opr'), name, role, issuer, subject })
      .onConflict((conflict) => conflict.doNothing())
      .returning(knownColumns)
      .executeTakeFirst()
    // Uses the row of the other sign-in if two browsers of one person sign in at the same time.
    const either = made ?? (await known())
    if (either) return either
  }
  throw new Error(`no name is free for a person of ${issuer}`)
}

/**
 * Signs out everywhere a person to whom the identity provider no longer gives a role. Returns the
 * name if the person is known.
 */
export async function signOutEverywhere(db: Db, { issuer, subject }: Identity): Promise<string | null> {
  const known = await db
    .selectFrom('operator')
    .select(['id', 'name'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  if (!known) return null
  await inTransaction(db, async (trx) => {
    const revoked = await trx
      .updateTable('apiToken')
      .set({ revokedAt: now })
      .where('operatorId', '=', known.id)
      .where('kind', '=', 'sign_in')
      .where('revokedAt', 'is', null)
      .returning('id')
      .execute()
    const entry = { who: known.name, what: 'token.revoked' as const, detail: 'Ended: no group gives a role any more' }
    for (const { id: subject } of revoked) await recordAudit(trx, { ...entry, subject })
  })
  return known.name
}

export async function typeOfIncident(db: Db, id: string): Promise<string | null> {
  const row = await db.selectFrom('incident').select('type').where('id', '=', id).executeTakeFirst()
  return row?.type ?? null
}

export async function typeOfApproval(db: Db, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('approval')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select('incident.type')
    .where('approval.id', '=', id)
    .executeTakeFirst()
  return row?.type ?? null
}
