import { type Source, type SourceInput, targetsSource } from '../../domain/source.ts'
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

/** Adds a source, or changes the one of that name. */
export async function putSource(db: Db, name: string, input: SourceInput, who: string): Promise<Source> {
  return await db.transaction().execute(async (trx) => {
    const before = await trx
      .selectFrom('source')
      .select(['name', 'kind', 'url'])
      .where('name', '=', name)
      .forUpdate()
      .executeTakeFirst()
    // Another server has other targets; of the same one, the next list says what changed.
    if (before && (before.kind !== input.kind || before.url !== input.url))
      await forgetTargets(trx, targetsSource(before))
    const row = { ...input, options: JSON.stringify(input.options) }
    await trx
      .insertInto('source')
      .values({ name, ...row, createdBy: who })
      .onConflict((on) => on.column('name').doUpdateSet(row))
      .execute()
    await recordAudit(trx, { who, what: 'source.put', subject: name, detail: `${input.kind} at ${input.url}` })
    return (await sourceByName(trx, name)) as Source
  })
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
