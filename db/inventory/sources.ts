import { sql } from 'kysely'
import { describeSource } from '../../domain/authority-words.ts'
import {
  addressOf,
  allowsStatements,
  listReferences,
  type Source,
  type SourceInput,
  targetsSource,
} from '../../domain/source.ts'
import type { Db, Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import { storeBody } from '../log/bodies.ts'
import { forgetTargets } from './source-targets.ts'

/** Sources by name. */
export async function listSources(db: Db | Trx): Promise<Source[]> {
  return await db.selectFrom('source').selectAll().orderBy('name').execute()
}

export async function sourceByName(db: Db | Trx, name: string): Promise<Source | null> {
  return (await db.selectFrom('source').selectAll().where('name', '=', name).executeTakeFirst()) ?? null
}

/** A credential would go to an address that nobody gave it for. */
export class ForeignAddress extends Error {
  override name = 'ForeignAddress' as const
  readonly reference: string
  /** Addresses that it was given for. */
  readonly known: string[]
  constructor(reference: string, known: string[]) {
    super('a credential would be sent to another address')
    this.reference = reference
    this.known = known
  }
}

/** `known`: references whose credential somebody showed that they know. */
type CredentialProof = { known: readonly string[]; isTrusted: boolean }

/**
 * Adds a source, or changes the one of that name. A credential belongs to the addresses it was
 * given for, whatever source names it: another address takes somebody who knows it (`known`), and
 * so does its first where `isTrusted` is false; else throws ForeignAddress.
 */
export async function putSource(
  db: Db,
  name: string,
  input: SourceInput,
  who: string,
  proof: CredentialProof = { known: [], isTrusted: true },
): Promise<Source> {
  return await db.transaction().execute(async (trx) => {
    // In one order: of two that put the same references neither waits for the other.
    for (const reference of listReferences(input).sort())
      await bindCredential(trx, reference, addressOf(input.url), proof)
    const before = await trx
      .selectFrom('source')
      .select(['name', 'kind', 'url', 'options'])
      .where('name', '=', name)
      .forUpdate()
      .executeTakeFirst()
    // Another server has other targets; of the same one, the next list says what changed.
    if (before && (before.kind !== input.kind || before.url !== input.url))
      await forgetTargets(trx, targetsSource(before))
    const row = { ...input, headers: JSON.stringify(input.headers), options: JSON.stringify(input.options) }
    await trx
      .insertInto('source')
      .values({ name, ...row, createdBy: who })
      .onConflict((on) => on.column('name').doUpdateSet(row))
      .execute()
    await recordAudit(trx, { who, what: 'source.put', subject: name, detail: describeSource(input) })
    const [was, is] = [allowsStatements(before?.options ?? {}), allowsStatements(input.options)]
    if (was !== is) {
      const what = is ? 'source.statements_allowed' : 'source.statements_taken_back'
      await recordAudit(trx, {
        who,
        what,
        subject: name,
        detail: is ? 'a model may read rows of its tables' : 'it answers questions with a name alone',
      })
    }
    return (await sourceByName(trx, name)) as Source
  })
}

async function bindCredential(trx: Trx, reference: string, address: string, proof: CredentialProof): Promise<void> {
  // Two that are the first for one credential would see nothing of each other.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`credential ${reference}`}, 0))`.execute(trx)
  const rows = await trx
    .selectFrom('credentialAddress')
    .select('address')
    .where('reference', '=', reference)
    .orderBy('address')
    .execute()
  const known = rows.map((each) => each.address)
  if (known.includes(address)) return
  if (!proof.known.includes(reference) && (known.length > 0 || !proof.isTrusted))
    throw new ForeignAddress(reference, known)
  await trx.insertInto('credentialAddress').values({ reference, address }).execute()
}

/** False: there is none of that name. */
export async function removeSource(db: Db, name: string, who: string): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const removed = await trx.deleteFrom('source').where('name', '=', name).returning('kind').executeTakeFirst()
    if (!removed) return false
    await forgetTargets(trx, targetsSource({ kind: removed.kind, name }))
    await recordAudit(trx, { who, what: 'source.removed', subject: name, detail: 'removed' })
    return true
  })
}

/** Keeps the whole answer of a read for its incident, and answers its digest. */
export async function storeReading(
  db: Db,
  reading: { incidentId: string; source: string; tool: string; whole: string },
): Promise<string> {
  return await db.transaction().execute(async (trx) => {
    const { digest } = await storeBody(trx, reading.whole)
    const { incidentId, source, tool } = reading
    await trx
      .insertInto('sourceReading')
      .values({ incidentId, digest, source, tool })
      .onConflict((on) => on.doNothing())
      .execute()
    return digest
  })
}
