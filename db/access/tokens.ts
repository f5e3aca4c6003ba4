import { randomBytes } from 'node:crypto'
import { describeOperator, describeToken } from '../../domain/authority-words.ts'
import { newId, sha256 } from '../../domain/digest.ts'
import type { PersonRole, Role } from '../../domain/permissions.ts'
import { inSeconds, now } from '../clock.ts'
import { type Db, inTransaction } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'
import { principalOf } from './principals.ts'

/**
 * Generates a token: the prefix `nst_`, by which a leaked token can be recognised, and 256 random
 * bits. Only its hash is stored.
 */
function newToken(): string {
  return `nst_${randomBytes(32).toString('base64url')}`
}

/** Creates a person with this name, or returns the existing one. A start calls this function. */
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
  /** Seconds until the token expires. If the field is absent, the token does not expire. */
  expirySeconds?: number
}

/**
 * Creates a token and returns it in plain text, only this once. A token of a person names the
 * person; a token of a machine names nobody.
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
    // Names the origin in the audit log, because nobody requested this token through the API.
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

/** Creates a token, and returns it in plain text together with its row, which has no secret. */
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

/** Selects all columns about tokens except the tokens themselves. */
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

/** Revokes a token, which ends all of its sessions. False if the token was revoked before. */
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

/** Creates the tokens of a first start. Keeps an existing token that the database knows. */
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
 * Stores tokens that an operator set in the environment. A revoked token stays revoked, even after
 * a restart.
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
