import { type SelectQueryBuilder, sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import { isPersonRole, type PersonRole, type Principal, type Role, weakerRole } from '../../domain/permissions.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import type { Database } from '../tables.ts'

type Tokens = SelectQueryBuilder<Database & { person: Database['operator'] }, 'apiToken' | 'person', object>

/**
 * Selects valid tokens with their people. Leaves out tokens that are revoked, expired by the
 * database's clock, or of a disabled person.
 */
export function goodTokens(db: Db): Tokens {
  return db
    .selectFrom('apiToken')
    .leftJoin('operator as person', 'person.id', 'apiToken.operatorId')
    .where('apiToken.revokedAt', 'is', null)
    .where('person.disabledAt', 'is', null)
    .where((where) =>
      where.or([where('apiToken.expiresAt', 'is', null), where('apiToken.expiresAt', '>', now)]),
    ) as unknown as Tokens
}

/** Columns of a principal, for a bearer token and for a cookie. */
export const principalColumns = [
  'apiToken.id',
  'apiToken.name',
  'apiToken.role',
  'apiToken.scopes',
  'apiToken.operatorId',
  'person.name as personName',
  'person.role as personRole',
] as const

/**
 * Builds a principal. A token never gives more than its person has: if a person becomes a viewer,
 * every older token of this person has the rights of a viewer. The name is the person's, so that no
 * token can carry the name of somebody else.
 */
export function toPrincipal(row: {
  id: string
  name: string
  role: Role
  scopes: string[]
  operatorId: string | null
  personName: string | null
  personRole: PersonRole | null
}): Principal {
  const { id, role, operatorId, scopes } = row
  const now = row.personRole && isPersonRole(role) ? weakerRole(role, row.personRole) : role
  return { tokenId: id, role: now, operatorId, name: row.personName ?? row.name, scopes }
}

/**
 * Finds the person or machine of a bearer token. Null if the token is unknown, expired or revoked.
 */
export async function principalOf(db: Db, token: string): Promise<Principal | null> {
  const row = await goodTokens(db)
    .select(principalColumns)
    .select(sql<boolean>`coalesce(api_token.last_used_at < nightshift_now() - interval '1 minute', true)`.as('stale'))
    .where('apiToken.sha256', '=', sha256(token))
    .executeTakeFirst()
  if (!row) return null
  // Writes the time of the last use at most once a minute. The time is accurate enough to find a
  // forgotten token, and requests that only read usually write nothing.
  if (row.stale) {
    await db.updateTable('apiToken').set({ lastUsedAt: now }).where('id', '=', row.id).execute()
  }
  return toPrincipal(row)
}
