import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import type { Principal } from '../../domain/permissions.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { goodTokens, principalColumns, toPrincipal } from './principals.ts'

/** Hours without use after which a browser session ends. */
const idleHours = 12
/** Maximum days of a browser session, even if it is used, because a cookie may be stolen. */
const maxDays = 7

const idle = sql<string>`least(
  nightshift_now() + make_interval(hours => ${idleHours}),
  session.created_at + make_interval(days => ${maxDays}))`

/** Selects tokens that a browser may use: valid tokens of people, never of machines. */
export function personsTokens(db: Db) {
  return goodTokens(db).where('apiToken.operatorId', 'is not', null)
}

/**
 * Opens a session for a person's token and returns the session's id in plain text, only this once.
 * Null for a token of a machine.
 */
export async function openSession(db: Db, tokenId: string): Promise<string | null> {
  const plain = randomBytes(32).toString('base64url')
  const opened = await db
    .insertInto('session')
    .columns(['sha256', 'tokenId', 'expiresAt'])
    .expression(
      personsTokens(db)
        .where('apiToken.id', '=', tokenId)
        .select([
          sql<string>`${sha256(plain)}`.as('sha256'),
          'apiToken.id',
          sql`nightshift_now() + make_interval(hours => ${idleHours})`.as('expiresAt'),
        ]),
    )
    .returning('tokenId')
    .executeTakeFirst()
  if (!opened) return null
  await used(db, tokenId)
  return plain
}

/** Stores that a browser used the token, so that the token does not seem forgotten. */
async function used(db: Db, tokenId: string): Promise<void> {
  await db.updateTable('apiToken').set({ lastUsedAt: now }).where('id', '=', tokenId).execute()
}

/**
 * Finds the signed-in principal of a session. Null if the session or its token is no longer valid.
 */
export async function principalOfSession(db: Db, plain: string): Promise<Principal | null> {
  const row = await personsTokens(db)
    .innerJoin('session', 'session.tokenId', 'apiToken.id')
    .select(principalColumns)
    .select(
      sql<boolean>`session.expires_at < nightshift_now() + make_interval(hours => ${idleHours}, mins => -5)`.as(
        'slides',
      ),
    )
    .where('session.sha256', '=', sha256(plain))
    .where('session.expiresAt', '>', now)
    .executeTakeFirst()
  if (!row) return null
  // Writes the time of the last use at most every five minutes. The time is accurate enough for a
  // limit of twelve hours, and most reads cause no write.
  if (row.slides) {
    await db.updateTable('session').set({ expiresAt: idle }).where('sha256', '=', sha256(plain)).execute()
    await used(db, row.id)
  }
  return toPrincipal(row)
}

export async function endSession(db: Db, plain: string): Promise<void> {
  await db
    .deleteFrom('session')
    .where((where) => where.or([where('sha256', '=', sha256(plain)), where('expiresAt', '<', now)]))
    .execute()
}
