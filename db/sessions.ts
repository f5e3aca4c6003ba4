import { randomBytes } from 'node:crypto'
import { type SelectQueryBuilder, sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import { isPersonRole, type PersonRole, type Principal, type Role, weakerRole } from '../domain/operator.ts'
import { type Db, now } from './connect.ts'
import type { Database } from './tables.ts'

/** A browser nobody used for this long is signed out. */
const idleHours = 12
/** However lively it is: a stolen cookie must not live for ever. */
const longestDays = 7
/** Time to walk over to a browser; a code that stayed in a scrolled-back terminal is worth nothing. */
const codeMinutes = 10

const idle = sql<string>`least(
  nightshift_now() + make_interval(hours => ${idleHours}),
  session.created_at + make_interval(days => ${longestDays}))`

/** Tokens that a browser may stand for: those of people, while they are good. A machine's never is. */
function personsTokens(db: Db) {
  return goodTokens(db).where('apiToken.operatorId', 'is not', null)
}

/** Opens a session for a person's token and answers its id in plain, once; null for a machine's. */
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

/** A browser uses the token that it stands for: who looks for forgotten tokens must not find this one. */
async function used(db: Db, tokenId: string): Promise<void> {
  await db.updateTable('apiToken').set({ lastUsedAt: now }).where('id', '=', tokenId).execute()
}

/** Who is signed in: the principal of the session's token, for as long as that token is good. */
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
  // Every five minutes is precise enough for twelve hours, and a read stays a read.
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

/** A code that signs one browser in as the owner of the token, once and soon. Null for a machine's token. */
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

type Tokens = SelectQueryBuilder<Database & { person: Database['operator'] }, 'apiToken' | 'person', object>

/**
 * Tokens that count now, with the people behind them: neither revoked nor expired, by the database's
 * clock, and of nobody who was disabled.
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

/** What makes a principal, wherever its token is shown: as a bearer, or by the cookie that stands for it. */
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
 * A token never makes its person more than the person is: who was made a viewer is one with every token of before. Rows say
 * the person's name, so that a token cannot be called after somebody else.
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

export type Limit = { attempts: number; seconds: number }
/** `first`: this try is the one that went over, so that it is logged once and not a thousand times. */
export type Counted = { over: false } | { over: true; first: boolean; retryAfterSeconds: number }

/**
 * Counts one try by the database's clock, so that two API processes count as one. Over the limit nothing is written any
 * more: a flood costs a read.
 */
export async function countAttempt(db: Db, subject: string, limit: Limit): Promise<Counted> {
  const before = await db
    .selectFrom('attempt')
    .select(secondsLeft.as('seconds'))
    .where('subject', '=', subject)
    .where('count', '>', limit.attempts)
    .where('resetsAt', '>', sql<string>`nightshift_now()`)
    .executeTakeFirst()
  if (before) return { over: true, first: false, retryAfterSeconds: Math.max(1, before.seconds) }
  const ends = sql<string>`nightshift_now() + make_interval(secs => ${limit.seconds})`
  const now = await db
    .insertInto('attempt')
    .values({ subject, count: 1, resetsAt: ends })
    .onConflict((conflict) =>
      conflict.column('subject').doUpdateSet({
        count: sql<number>`case when attempt.resets_at <= nightshift_now() then 1 else attempt.count + 1 end`,
        resetsAt: sql<string>`case when attempt.resets_at <= nightshift_now() then ${ends} else attempt.resets_at end`,
      }),
    )
    .returning(['count', secondsLeft.as('seconds')])
    .executeTakeFirstOrThrow()
  if (now.count === 1) await forgetOld(db)
  if (now.count <= limit.attempts) return { over: false }
  return { over: true, first: now.count === limit.attempts + 1, retryAfterSeconds: Math.max(1, now.seconds) }
}

/** Forgets what was counted for a subject: its next attempt is the first again. */
export async function forgetAttempts(db: Db, subject: string): Promise<void> {
  await db.deleteFrom('attempt').where('subject', '=', subject).execute()
}

const secondsLeft = sql<number>`ceil(extract(epoch from attempt.resets_at - nightshift_now()))::int`

/** Deletes a few at a time with each call: a sender that changes addresses must not fill the table. */
async function forgetOld(db: Db): Promise<void> {
  await sql`
    delete from attempt where subject in (
      select subject from attempt where resets_at < nightshift_now() - interval '1 hour'
      limit 20 for update skip locked)`.execute(db)
}

/** The person or machine behind a bearer token; null when it is unknown, expired or revoked. */
export async function principalOf(db: Db, token: string): Promise<Principal | null> {
  const row = await goodTokens(db)
    .select(principalColumns)
    .select(sql<boolean>`coalesce(api_token.last_used_at < nightshift_now() - interval '1 minute', true)`.as('stale'))
    .where('apiToken.sha256', '=', sha256(token))
    .executeTakeFirst()
  if (!row) return null
  // Once a minute is precise enough to find a forgotten token, and a read stays a read.
  if (row.stale) {
    await db.updateTable('apiToken').set({ lastUsedAt: now }).where('id', '=', row.id).execute()
  }
  return toPrincipal(row)
}
