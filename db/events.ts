import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import type { BodyRef, EventKind, IncidentEvent } from '../domain/event.ts'
import { type CallPlace, stepKey } from '../domain/step-key.ts'
import { cleanse } from '../safety/redact.ts'
import { fromRow, hashEvent } from './append.ts'
import type { Db, Scope, Trx } from './connect.ts'

/** Rows of an incident after a number, oldest first. */
export async function eventsOf(
  db: Db | Trx,
  incidentId: string,
  options: { afterSeq?: number; attempt?: number; limit?: number } = {},
): Promise<IncidentEvent[]> {
  let query = db
    .selectFrom('incidentEvent')
    .selectAll()
    .where('incidentId', '=', incidentId)
    .where('seq', '>', options.afterSeq ?? 0)
    .orderBy('seq')
  if (options.attempt !== undefined) query = query.where('attempt', '=', options.attempt)
  if (options.limit !== undefined) query = query.limit(options.limit)
  return (await query.execute()).map(fromRow)
}

/** The newest row of each incident, by incident. */
export async function lastEventsOf({ db }: Scope, incidentIds: string[]): Promise<Map<string, IncidentEvent>> {
  if (incidentIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('incidentEvent')
    .innerJoin('incident', 'incident.id', 'incidentEvent.incidentId')
    .selectAll('incidentEvent')
    .where('incident.id', 'in', incidentIds)
    .whereRef('incidentEvent.seq', '=', sql`incident.next_seq - 1`)
    .execute()
  return new Map(rows.map((row) => [row.incidentId, fromRow(row)]))
}

/** Reads the row with this step key. Answers null if no row has it, or if its kind differs. */
export async function eventByStepKey<K extends EventKind>(
  db: Db | Trx,
  stepKey: string | null,
  kind: K,
): Promise<IncidentEvent<K> | null> {
  if (stepKey === null) return null
  const row = await db
    .selectFrom('incidentEvent')
    .selectAll()
    .where('stepKey', '=', stepKey)
    .where('kind', '=', kind)
    .executeTakeFirst()
  return row ? (fromRow(row) as IncidentEvent<K>) : null
}

/** The row of one kind of a call. Rows of a whole turn, or of a run, are read by their key: a call's place holds more than they do. */
export async function eventOfCall<K extends EventKind>(
  db: Db | Trx,
  place: CallPlace,
  kind: K,
): Promise<IncidentEvent<K> | null> {
  return await eventByStepKey(db, stepKey(place, place.turn, kind, place.call), kind)
}

/** How many rows of one kind this attempt has. */
export async function countEvents(
  db: Db | Trx,
  { incidentId, attempt }: { incidentId: string; attempt: number },
  kind: EventKind,
): Promise<number> {
  const { count } = await db
    .selectFrom('incidentEvent')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow()
  return count
}

/** A place in the stream of all rows: transaction first, because identity values commit out of order. */
export type StreamPosition = { tx: string; id: number }
export type StreamedEvent = IncidentEvent & { position: StreamPosition }

/**
 * The next rows of the stream after a position. Only rows whose transaction is older than every running one are shown, so
 * that none can later appear before a position already handed out: no gap, no overlap.
 */
export async function streamAfter(
  { db }: Scope,
  after: StreamPosition,
  options: { incidentId?: string; limit: number },
): Promise<StreamedEvent[]> {
  let query = db
    .selectFrom('incidentEvent')
    .selectAll()
    .where(sql<boolean>`tx < pg_snapshot_xmin(pg_current_snapshot())`)
    .where(sql<boolean>`(tx, id) > (${after.tx}::xid8, ${after.id}::bigint)`)
    .orderBy('tx')
    .orderBy('id')
    .limit(options.limit)
  if (options.incidentId) query = query.where('incidentId', '=', options.incidentId)
  const rows = await query.execute()
  return rows.map((row) => ({ ...fromRow(row), position: { tx: String(row.tx), id: row.id } }))
}

/** Where the stream ends now: what a new listener starts from. */
export async function streamEnd({ db }: Scope): Promise<StreamPosition> {
  const { rows } = await sql<{ tx: string }>`select (pg_snapshot_xmin(pg_current_snapshot())::text) as tx`.execute(db)
  // Rows of that transaction are not visible yet, so a position before its first row misses nothing.
  return { tx: String(BigInt(rows[0]?.tx ?? '1') - 1n), id: Number.MAX_SAFE_INTEGER }
}

type ChainReport = {
  ok: boolean
  events: number
  headHash: string
  /** The first thing that does not fit, and at which row. */
  problem: { seq: number; what: string } | null
}

/**
 * Recomputes an incident's chain: numbers dense from 1, each hash right and chained to the one before, the incident's head
 * equal to the last. `expectedHead` (from a webhook or a workflow's result) proves that the tail was not cut off either.
 */
export async function verifyChain(
  db: Db | Trx,
  incidentId: string,
  expectedHead?: string,
): Promise<ChainReport | null> {
  const head = await db
    .selectFrom('incident')
    .select(['headHash', 'nextSeq'])
    .where('id', '=', incidentId)
    .executeTakeFirst()
  if (!head) return null
  const rows = await eventsOf(db, incidentId)
  let previous = ''
  const report = (problem: ChainReport['problem']): ChainReport => ({
    ok: problem === null,
    events: rows.length,
    headHash: head.headHash,
    problem,
  })
  for (const [index, row] of rows.entries()) {
    if (row.seq !== index + 1) return report({ seq: index + 1, what: `row ${index + 1} is missing` })
    if (row.prevHash !== previous) return report({ seq: row.seq, what: 'it is not chained to the row before it' })
    if (hashEvent(row) !== row.hash) return report({ seq: row.seq, what: 'its content is not what was hashed' })
    previous = row.hash
  }
  if (head.headHash !== previous || head.nextSeq !== rows.length + 1) {
    return report({ seq: rows.length + 1, what: 'rows are missing at the end: the incident names a newer one' })
  }
  if (expectedHead !== undefined && !rows.some((row) => row.hash === expectedHead)) {
    return report({ seq: rows.length, what: `no row has the hash ${expectedHead} that was handed out` })
  }
  return report(null)
}

/** Bodies above this live in `result_body`; a row stays small enough that a whole incident folds in milliseconds. */
export const inlineLimitBytes = 4096
const headCharacters = 1200
const tailCharacters = 600

/** Stores text under its digest (once, however often it comes) and answers what a row keeps of it. */
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

/** Stores bytes that this process made, such as a picture written out again, under their digest, which is answered. */
export async function storeBytes(db: Db | Trx, bytes: Buffer): Promise<string> {
  const digest = sha256(bytes)
  await db
    .insertInto('resultBody')
    .values({ digest, bytes })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .execute()
  return digest
}

/** The whole text of a body; throws when it is gone, because nothing may act on half of what was read. */
export async function bodyText(db: Db | Trx, digest: string): Promise<string> {
  const row = await db.selectFrom('resultBody').select('bytes').where('digest', '=', digest).executeTakeFirst()
  if (!row) throw new Error(`result body ${digest} is missing`)
  return row.bytes.toString('utf8')
}

/** The bodies that are still there; one that is gone is left out, and what rests on it counts as cut. */
export async function bodiesByDigest(db: Db | Trx, digests: readonly string[]): Promise<Map<string, string>> {
  if (digests.length === 0) return new Map()
  const rows = await db.selectFrom('resultBody').select(['digest', 'bytes']).where('digest', 'in', digests).execute()
  return new Map(rows.map(({ digest, bytes }) => [digest, bytes.toString('utf8')]))
}

/** A body that a row of this incident keeps the digest of; null where none does, or where it is gone. */
export async function bodyOfIncident({ db }: Scope, incidentId: string, digest: string): Promise<string | null> {
  const row = await db
    .selectFrom('incidentEvent')
    .select('seq')
    .where('incidentId', '=', incidentId)
    .where((where) =>
      where.or(
        ['body', 'context', 'runbooks'].map(
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
