import { sql } from 'kysely'
import { sha256 } from '../../domain/digest.ts'
import type { BodyRef } from '../../domain/event.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'

/** Bodies above this live in `result_body`: small rows let a whole incident fold fast. */
export const inlineLimitBytes = 4096

const headCharacters = 1200

const tailCharacters = 600

/** Stores text under its digest, once, and answers what a row keeps of it. */
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

/** Stores bytes of this process, such as a picture written out again, and answers their digest. */
export async function storeBytes(db: Db | Trx, bytes: Buffer): Promise<string> {
  const digest = sha256(bytes)
  // It is named again: it leaves the list of what may go, or waits for the sweep that has it and is
  // stored again.
  await db.deleteFrom('bodyCandidate').where('digest', '=', digest).execute()
  await db
    .insertInto('resultBody')
    .values({ digest, bytes })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .execute()
  return digest
}

/** The whole text of a body; throws when it is gone, since nothing may act on half of it. */
export async function bodyText(db: Db | Trx, digest: string): Promise<string> {
  const row = await db.selectFrom('resultBody').select('bytes').where('digest', '=', digest).executeTakeFirst()
  if (!row) throw new Error(`result body ${digest} is missing`)
  return row.bytes.toString('utf8')
}

/** Bodies that are still there; a lost one is left out, and what rests on it counts as cut. */
export async function bodiesByDigest(db: Db | Trx, digests: readonly string[]): Promise<Map<string, string>> {
  if (digests.length === 0) return new Map()
  const rows = await db.selectFrom('resultBody').select(['digest', 'bytes']).where('digest', 'in', digests).execute()
  return new Map(rows.map(({ digest, bytes }) => [digest, bytes.toString('utf8')]))
}

/** A body whose digest a row of this incident keeps; null where none does, or where it is gone. */
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

/** A whole answer of a source that this incident asked. */
async function readingOf(db: Db, incidentId: string, digest: string) {
  return await db
    .selectFrom('sourceReading')
    .select('digest')
    .where('incidentId', '=', incidentId)
    .where('digest', '=', digest)
    .executeTakeFirst()
}
