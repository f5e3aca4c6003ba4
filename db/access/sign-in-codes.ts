import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { personsTokens } from './sessions.ts'

/**
 * Minutes within which a sign-in code must be used. Short, so that a code left in a terminal soon
 * becomes worthless.
 */
const codeMinutes = 10

/**
 * Creates a code that signs in one browser, once, as the owner of the token. Null for a token of a
 * machine.
 */
export async function mintSignInCode(db: Db, tokenId: string): Promise<{ code: string; expiresAt: string } | null> {
  const code = `nsc_${randomBytes(24).toString('base64url')}`
  const minted = await db
    .insertInto('signInCode')
    .columns(['sha256', 'tokenId', 'expiresAt'])
    .expression(
      personsTokens(db)
        .where('apiToken.id', '=', tokenId)
        .select([
          sql<string>`${sha256(code)}`.as('sha256'),
          'apiToken.id',
          sql`nightshift_now() + make_interval(mins => ${codeMinutes})`.as('expiresAt'),
        ]),
    )
    .returning('expiresAt')
    .executeTakeFirst()
  return minted ? { code, expiresAt: minted.expiresAt } : null
}

/**
 * Uses up a sign-in code and returns the id of its token. If two browsers send the code at the same
 * time, only one browser gets the id.
 */
export async function redeemSignInCode(db: Db, code: string): Promise<string | null> {
  const used = await db
    .updateTable('signInCode')
    .set({ usedAt: now })
    .where('sha256', '=', sha256(code))
    .where('usedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning('tokenId')
    .executeTakeFirst()
  return used?.tokenId ?? null
}
