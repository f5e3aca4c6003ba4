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

/** Lists sources by name. */
export async function listSources(db: Db | Trx): Promise<Source[]> {
  return await db.selectFrom('source').selectAll().orderBy('name').execute()
}

export async function sourceByName(db: Db | Trx, name: string): Promise<Source | null> {
  return (await db.selectFrom('source').selectAll().where('name', '=', name).executeTakeFirst()) ?? null
}

/** Thrown if a credential would be sent to an address for which nobody gave it. */
export class ForeignAddress extends Error {
  override name = 'ForeignAddress' as const
  readonly reference: string
  /** The addresses for which the credential was given. */
  readonly known: string[]
  constructor(reference: string, known: string[]) {
    super('a credential would be sent to another address')
    this.reference = reference
    this.known = known
  }
}

/** `known`: references to credentials that the caller has proved to know. */
type CredentialProof = { known: readonly string[]; isTrusted: boolean }

/**
 * Adds or changes the source with this name. A credential belongs to the addresses for which it was
 * given, whatever source names it. For another address, the caller must prove to know the
 * credential (`known`), and if `isTrusted` is false also for its first address. Otherwise throws
 * ForeignAddress.
 */
export async function putSource(
  db: Db,
  name: string,
  input: SourceInput,
  who: string,
  proof: CredentialProof = { known: [], isTrusted: true },
): Promise<Source> {
  return await db.transaction().execute(async (trx) => {
    // Binds credentials in a fixed order, so that two callers with equal references cannot
    // deadlock.
    for (const reference of listReferences(input).sort())
      await bindCredential(trx, reference, addressOf(input.url), proof)
    const before = await trx
      .selectFrom('source')
      .select(['name', 'kind', 'url', 'options'])
      .where('name', '=', name)
      .forUpdate()
      .executeTakeFirst()
    // Removes the targets only if the server changes. For an unchanged server, the next list shows
    // what changed.
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
        detail: is ? 'a model may read rows of its tables' : 'the source only answers queries that name it',
      })
    }
    return (await sourceByName(trx, name)) as Source
  })
}

async function bindCredential(trx: Trx, reference: string, address: string, proof: CredentialProof): Promise<void> {
  // Locks the reference, because two simultaneous first uses of its credential would not see each
  // other.
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

/** Removes a source. False if no source has this name. */
export async function removeSource(db: Db, name: string, who: string): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const removed = await trx.deleteFrom('source').where('name', '=', name).returning('kind').executeTakeFirst()
    if (!removed) return false
    await forgetTargets(trx, targetsSource({ kind: removed.kind, name }))
    await recordAudit(trx, { who, what: 'source.removed', subject: name, detail: 'removed' })
    return true
  })
}

/** Stores a source's whole response for the incident that queried it, and returns its digest. */
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
