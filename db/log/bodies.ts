import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import type { BodyRef } from '../../domain/event.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'

/**
 * Size in bytes above which a text or result is stored in `result_body`. Small log rows make it
 * fast to read a whole incident.
 */
export const inlineLimitBytes = 4096

const headCharacters = 1200

const tailCharacters = 600

/** Stores a text once under its digest, and returns the reference for a log row. */
export async function storeBody(db: Db | Trx, text: string): Promise<BodyRef> {
  const clean = cleanse(text)
  const bytes = Buffer.from(clean, 'utf8')
  const digest = await storeBytes(db, bytes)
  const long = clean.length > headCharacters + tailCharacters
  return {
    digest,
    bytes: bytes.length,
    head: (long ? clean.slice(0, headCharacters) : clean).toWellFormed(),
    tail: long ? clean.slice(-tailCharacters).toWellFormed() : '',
  }
}

/** Stores bytes that this process made, such as a re-encoded picture, and returns their digest. */
export async function storeBytes(db: Db | Trx, bytes: Buffer): Promise<string> {
  const digest = sha256(bytes)
  // Removes the digest from the list for removal, because a row will name it. If a removal is
  // running, waits for its end and stores the bytes again.
  await db.deleteFrom('bodyCandidate').where('digest', '=', digest).execute()
  await db
    .insertInto('resultBody')
    .values({ digest, bytes })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .execute()
  return digest
}

/**
 * Reads the whole text with a digest. Throws if the text is gone, because nothing may act on a part
 * of a text.
 */
export async function bodyText(db: Db | Trx, digest: string): Promise<string> {
  const row = await db.selectFrom('resultBody').select('bytes').where('digest', '=', digest).executeTakeFirst()
  if (!row) throw new Error(`result body ${digest} is missing`)
  return row.bytes.toString('utf8')
}

/** Reads the texts with these digests. Leaves out a missing text; its result counts as cut. */
export async function bodiesByDigest(db: Db | Trx, digests: readonly string[]): Promise<Map<string, string>> {
  if (digests.length === 0) return new Map()
  const rows = await db.selectFrom('resultBody').select(['digest', 'bytes']).where('digest', 'in', digests).execute()
  return new Map(rows.map(({ digest, bytes }) => [digest, bytes.toString('utf8')]))
}

/**
 * Reads the text with a digest that is in a row of this incident. Null if no row has the digest, or
 * if the text is gone.
 */
export async function bodyOfIncident({ db }: Scope, incidentId: string, digest: string): Promise<string | null> {
  const row = await db
    .selectFrom('incidentEvent')
    .select('seq')
    .where('incidentId', '=', incidentId)
    .where((where) =>
      where.or(
        ['body', 'context', 'runbooks', 'prompt', 'tools', 'more'].map(
          (field) => sql<boolean>`metadata -> ${field}::text ->> 'digest' = ${digest}`,
        ),
      ),
    )
    .limit(1)
    .executeTakeFirst()
  const isRead = row ?? (await readingOf(db, incidentId, digest))
  return isRead ? ((await bodiesByDigest(db, [digest])).get(digest) ?? null) : null
}

/**
 * Finds the full digest of the one response of a source in this incident whose digest begins with
 * this text. Null if no response matches, or several.
 */
export async function wholeDigestOf({ db }: Scope, incidentId: string, start: string): Promise<string | null> {
  const found = await db
    .selectFrom('sourceReading')
    .select('digest')
    .distinct()
    .where('incidentId', '=', incidentId)
    .where((where) => where(where.fn<string>('left', ['digest', sql.lit(start.length)]), '=', start))
    .limit(2)
    .execute()
  return found.length === 1 ? (found[0]?.digest ?? null) : null
}

/** Finds a whole response of a source, by its digest, that this incident requested. */
async function readingOf(db: Db, incidentId: string, digest: string) {
  return await db
    .selectFrom('sourceReading')
    .select('digest')
    .where('incidentId', '=', incidentId)
    .where('digest', '=', digest)
    .executeTakeFirst()
}
