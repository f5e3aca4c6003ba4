import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import { newId } from '../domain/id.ts'
import type { PersonRole } from '../domain/operator.ts'
import { type Identity, isFreeName, operatorNameOf } from '../domain/sign-in.ts'
import type { Db, Trx } from './connect.ts'
import { now } from './time.ts'

/** As long as a session lives at most: then the provider is asked again. */
const days = 7

export type SignedIn = { outcome: 'signed_in'; tokenId: string; name: string } | { outcome: 'disabled'; name: string }

/**
 * Knows somebody by issuer and subject, with the role that the groups give today, and answers the token that a session may
 * stand for.
 */
export async function signInAs(trx: Trx, identity: Identity, role: PersonRole): Promise<SignedIn> {
  const { id, name, disabledAt } = await ensureIdentity(trx, identity, role)
  if (disabledAt !== null) return { outcome: 'disabled', name }
  const ends = sql<string>`nightshift_now() + make_interval(days => ${days})`
  const kept = await trx
    .updateTable('apiToken')
    .set({ role, expiresAt: ends, lastUsedAt: now })
    .where('operatorId', '=', id)
    .where('kind', '=', 'sign_in')
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning('id')
    .executeTakeFirst()
  if (kept) return { outcome: 'signed_in', tokenId: kept.id, name }
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
  return { outcome: 'signed_in', tokenId: made.id, name }
}

type Known = { id: string; name: string; disabledAt: string | null }

/** A name that somebody else has is never shared: the newcomer's gets a mark of who they are. */
async function ensureIdentity(trx: Trx, identity: Identity, role: PersonRole): Promise<Known> {
  const { issuer, subject } = identity
  const known = () =>
    trx
      .updateTable('operator')
      .set({ role })
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .returning(['id', 'name', 'disabledAt'])
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
      .returning(['id', 'name', 'disabledAt'])
      .executeTakeFirst()
    // Two browsers of one person at once: the other one was faster.
    const either = made ?? (await known())
    if (either) return either
  }
  throw new Error(`no name is free for a person of ${issuer}`)
}

/** Whom the provider gives no role any more is signed out everywhere. Answers the name, where somebody was known. */
export async function signOutEverywhere(db: Db, { issuer, subject }: Identity): Promise<string | null> {
  const known = await db
    .selectFrom('operator')
    .select(['id', 'name'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  if (!known) return null
  await db
    .updateTable('apiToken')
    .set({ revokedAt: now })
    .where('operatorId', '=', known.id)
    .where('kind', '=', 'sign_in')
    .where('revokedAt', 'is', null)
    .execute()
  return known.name
}
