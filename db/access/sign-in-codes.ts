import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { personsTokens } from './sessions.ts'

/** Time to walk to a browser; a code left in a scrolled-back terminal is worth nothing. */
const codeMinutes = 10

/** A code that signs one browser in as the token's owner, once and soon. Null for a machine's. */
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

/** Uses a code up; of two browsers that show it at once, one gets the token's id. */
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
