import { randomBytes } from 'node:crypto'
import { describeOperator, describeToken } from '../../domain/authority-words.ts'
import { newId, sha256 } from '../../domain/digest.ts'
import type { PersonRole, Role } from '../../domain/permissions.ts'
import { inSeconds, now } from '../clock.ts'
import { type Db, inTransaction } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'
import { principalOf } from './principals.ts'

/** A token is recognisable where it leaks: `nst_` and 256 bits. Only its hash is stored. */
function newToken(): string {
  return `nst_${randomBytes(32).toString('base64url')}`
}

/** Makes a person, or answers the one of that name, as a start does it. */
export async function ensureOperator(db: Db, name: string, role: PersonRole): Promise<string> {
  return await inTransaction(db, async (trx) => {
    const known = await trx.selectFrom('operator').select(['id', 'role']).where('name', '=', name).executeTakeFirst()
    if (known?.role === role) return known.id
    const { id, ...kept } = await trx
      .insertInto('operator')
      .values({ id: newId('opr'), name, role })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ role }))
      .returning(['id', 'role', 'maxRisk', 'incidentTypes', 'disabledAt', 'slackUserId', 'pagerdutyUserId'])
      .executeTakeFirstOrThrow()
    const what = known ? 'operator.changed' : 'operator.added'
    await recordAudit(trx, { who: 'start', what, subject: name, detail: `As ${describeOperator(kept)}, by a start` })
    return id
  })
}

type NewToken = {
  name: string
  role: Role
  operatorId: string | null
  scopes?: readonly string[]
  /** For ever when absent. */
  expirySeconds?: number
}

/**
 * Makes a token and answers it in plain, once. A person's token names its operator; a machine's
 * names none.
 */
export async function createToken(db: Db, token: NewToken, plain = newToken()): Promise<string> {
  await inTransaction(db, async (trx) => {
    const made = await insertToken(trx, token, plain)
      .onConflict((conflict) => conflict.column('sha256').doNothing())
      .returning(['id', 'role', 'scopes', 'expiresAt'])
      .returning((row) =>
        row
          .selectFrom('operator')
          .select('operator.name')
          .whereRef('operator.id', '=', 'apiToken.operatorId')
          .as('operator'),
      )
      .executeTakeFirst()
    if (!made) return
    // Nobody asked for it through the API: the audit says where it came from.
    const detail = `Minted ${describeToken(made)}, by a start: ${token.name}`
    await recordAudit(trx, { who: 'start', what: 'token.minted', subject: made.id, detail })
  })
  return plain
}

function insertToken(db: Db, token: NewToken, plain: string) {
  return db.insertInto('apiToken').values({
    id: newId('tok'),
    name: token.name,
    prefix: plain.slice(0, 8),
    sha256: sha256(plain),
    role: token.role,
    operatorId: token.operatorId,
    scopes: JSON.stringify(token.scopes ?? []),
    expiresAt: token.expirySeconds ? inSeconds(token.expirySeconds) : null,
  })
}

/** The same, with the row that others will see of it. */
export async function mintToken(db: Db, token: NewToken): Promise<{ plain: string; row: TokenRow }> {
  const plain = newToken()
  const { id } = await insertToken(db, token, plain).returning('id').executeTakeFirstOrThrow()
  return { plain, row: (await tokenRow(db, id)) as TokenRow }
}

export type TokenRow = {
  id: string
  name: string
  prefix: string
  kind: 'token' | 'sign_in'
  role: Role
  scopes: string[]
  operator: string | null
  createdAt: string
  expiresAt: string | null
  lastUsedAt: string | null
  revokedAt: string | null
}

/** Everything about tokens but what they are. */
function tokenRows(db: Db) {
  return db
    .selectFrom('apiToken')
    .leftJoin('operator', 'operator.id', 'apiToken.operatorId')
    .select(['apiToken.id', 'apiToken.name', 'prefix', 'kind', 'apiToken.role', 'scopes', 'operator.name as operator'])
    .select(['apiToken.createdAt', 'expiresAt', 'lastUsedAt', 'revokedAt'])
}

export async function listTokens({ db }: Scope, page: { before: string | null; limit: number }): Promise<TokenRow[]> {
  let query = tokenRows(db).orderBy('apiToken.id', 'desc').limit(page.limit)
  if (page.before) query = query.where('apiToken.id', '<', page.before)
  return await query.execute()
}

export async function tokenRow(db: Db, id: string): Promise<TokenRow | null> {
  return (await tokenRows(db).where('apiToken.id', '=', id).executeTakeFirst()) ?? null
}

/** Ends a token, and with it every session that stands for it. False when it had ended before. */
export async function revokeToken(db: Db, id: string): Promise<boolean> {
  const revoked = await db
    .updateTable('apiToken')
    .set({ revokedAt: now })
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return revoked !== undefined
}

export type FirstRunTokens = { admin: string; approver: string; ingest: string; agent: string }

/** Tokens of a first start. Those of an earlier start stay while the database knows them. */
export async function ensureFirstRunTokens(db: Db, existing: Partial<FirstRunTokens> = {}): Promise<FirstRunTokens> {
  const keep = async (plain: string | undefined) => (plain && (await principalOf(db, plain)) ? plain : undefined)
  const admin = await ensureOperator(db, 'admin', 'admin')
  const approver = await ensureOperator(db, 'approver', 'approver')
  return {
    admin: (await keep(existing.admin)) ?? (await createToken(db, { name: 'admin', role: 'admin', operatorId: admin })),
    approver:
      (await keep(existing.approver)) ??
      (await createToken(db, { name: 'approver', role: 'approver', operatorId: approver })),
    ingest:
      (await keep(existing.ingest)) ?? (await createToken(db, { name: 'ingest', role: 'ingest', operatorId: null })),
    agent:
      (await keep(existing.agent)) ??
      (await createToken(db, { name: 'agent:incident-investigator', role: 'agent', operatorId: null })),
  }
}

/**
 * Makes sure that tokens which an operator chose (from a production's environment) are known. A
 * revoked one stays revoked: a restart must not bring it back.
 */
export async function ensureGivenTokens(
  db: Db,
  given: { admin?: string; ingest?: string; agent?: string },
): Promise<void> {
  if (given.admin) {
    const operatorId = await ensureOperator(db, 'admin', 'admin')
    await createToken(db, { name: 'admin', role: 'admin', operatorId }, given.admin)
  }
  if (given.ingest) await createToken(db, { name: 'ingest', role: 'ingest', operatorId: null }, given.ingest)
  if (given.agent) {
    await createToken(db, { name: 'agent:incident-investigator', role: 'agent', operatorId: null }, given.agent)
  }
}
