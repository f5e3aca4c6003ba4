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
  /** Further rights in words (`domain/decision-right.ts`). */
  rights: string[]
  createdAt: string
  disabledAt: string | null
  /** The provider that vouches for this person and gives their role; null for people made here. */
  issuer: string | null
  /** When a token or a browser of theirs was last used, to some minutes. */
  lastSeenAt: string | null
  /** This person at Slack: a button pressed there is pressed by them. */
  slackUserId: string | null
  /** This person at PagerDuty: what they acknowledge there they take here. */
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

/** The person, kept as they are until the transaction ends: who disables them meanwhile waits. */
export async function lockOperator(trx: Trx, id: string): Promise<OperatorRow | null> {
  await trx.selectFrom('operator').select('id').where('id', '=', id).forShare().execute()
  return await operatorById(trx, id)
}

type Elsewhere = 'slackUserId' | 'pagerdutyUserId'

/** The person who has this id at Slack or at PagerDuty, as an admin set it; may be disabled. */
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
  /** Left out: as they were. */
  rights?: readonly string[]
  /** Left out: as it was. */
  slackUserId?: string | null
  pagerdutyUserId?: string | null
}

/** Makes a person, or changes the one of that name; answers the row before (null: none) and now. */
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
 * Tells whether there is an admin besides this person, and keeps that so until the transaction
 * ends: two admins who end each other at once come one after the other. Called before anything else
 * is locked.
 */
export async function leavesAnAdmin(trx: Trx, operatorId: string): Promise<boolean> {
  const admins = await trx
    .selectFrom('operator')
    .select('id')
    .where('role', '=', 'admin')
    .where('disabledAt', 'is', null)
    .orderBy('id')
    // What names an admin, as a vote, waits for nothing meanwhile.
    .forNoKeyUpdate()
    .execute()
  return admins.some(({ id }) => id !== operatorId)
}

/** What an approval asks somebody to decide. */
type AskedDecision = { incidentId: string; dryRun: { details: Record<string, unknown> } | null } & Pick<
  DecisionSubject,
  'risk' | 'targets'
>

/**
 * Says why this person may not decide this approval; null when they may. Read at every door where
 * authority is handed out or used, since rights may change between the two.
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

/** The same where nothing is asked yet. */
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

/** As long as a session lives at most: then the provider is asked again. */
const days = 7

type SignedIn =
  | { outcome: 'signed_in'; tokenId: string; name: string; authority: string }
  | { outcome: 'disabled'; name: string }

/**
 * Knows a person by issuer and subject, with the role that their groups give today. Answers the
 * token that a session may stand for, and in words what the person may do.
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

/** A name that somebody else has is never shared: the newcomer's gets a mark of who they are. */
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
    // Two browsers of one person at once: the other one was faster.
    const either = made ?? (await known())
    if (either) return either
  }
  throw new Error(`no name is free for a person of ${issuer}`)
}

/**
 * Signs out everybody to whom the provider gives no role any more. Answers the name, where one was
 * known.
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
