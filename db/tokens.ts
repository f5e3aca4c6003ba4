import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import { newId } from '../domain/id.ts'
import type { Principal, Role } from '../domain/operator.ts'
import type { Db } from './connect.ts'

/** A token is recognisable where it leaks: `nst_` and 256 bits. Only its hash is stored. */
function newToken(): string {
  return `nst_${randomBytes(32).toString('base64url')}`
}

/** The person or machine behind a bearer token; null when it is unknown, expired or revoked. */
export async function principalOf(db: Db, token: string): Promise<Principal | null> {
  const row = await db
    .selectFrom('apiToken')
    .select(['id', 'name', 'role', 'operatorId'])
    .select(sql<boolean>`coalesce(last_used_at < nightshift_now() - interval '1 minute', true)`.as('stale'))
    .where('sha256', '=', sha256(token))
    .where('revokedAt', 'is', null)
    .where((where) =>
      where.or([where('expiresAt', 'is', null), where('expiresAt', '>', sql<string>`nightshift_now()`)]),
    )
    .executeTakeFirst()
  if (!row) return null
  // Once a minute is precise enough to find a forgotten token, and a read stays a read.
  if (row.stale) {
    await db
      .updateTable('apiToken')
      .set({ lastUsedAt: sql`nightshift_now()` as never })
      .where('id', '=', row.id)
      .execute()
  }
  return { tokenId: row.id, role: row.role, operatorId: row.operatorId, name: row.name }
}

/** Makes a person, or answers the one of that name. */
export async function ensureOperator(
  db: Db,
  name: string,
  role: 'viewer' | 'operator' | 'approver' | 'admin',
): Promise<string> {
  const row = await db
    .insertInto('operator')
    .values({ id: newId('opr'), name, role })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ role }))
    .returning('id')
    .executeTakeFirstOrThrow()
  return row.id
}

/** Makes a token and answers it in plain, once. A person's token names its operator; a machine's names none. */
export async function createToken(
  db: Db,
  token: { name: string; role: Role; operatorId: string | null; expirySeconds?: number },
  plain = newToken(),
): Promise<string> {
  await db
    .insertInto('apiToken')
    .values({
      id: newId('tok'),
      name: token.name,
      prefix: plain.slice(0, 8),
      sha256: sha256(plain),
      role: token.role,
      operatorId: token.operatorId,
      scopes: '[]',
      expiresAt: token.expirySeconds
        ? (sql`nightshift_now() + make_interval(secs => ${token.expirySeconds})` as never)
        : null,
    })
    .onConflict((conflict) => conflict.column('sha256').doNothing())
    .execute()
  return plain
}

export type FirstRunTokens = { admin: string; approver: string; ingest: string; agent: string }

/** The tokens a first start mints. Those of an earlier start are kept while the database still knows them. */
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
 * Makes sure that tokens which an operator chose (from the environment of a production) are known. One that was revoked stays
 * revoked: restarting must not bring it back.
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
