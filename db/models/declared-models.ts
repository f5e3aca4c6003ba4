import { sql } from 'kysely'
import type { ModelProtocol } from '../../domain/model-list.ts'
import { onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { type ModelKey, type ModelProfile, modelProfile } from './profiles.ts'

type ListedModel = ModelKey & { name: string; fallbacks: string[]; protocol: ModelProtocol | null }

/**
 * Publishes the models that LLM_SERVERS_FILE declares, and replaces the earlier list. If there are
 * two workers, the list of the last worker is used.
 */
export async function declareModels(db: Db, models: readonly ListedModel[]): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('declared_model', 0))`.execute(trx)
    await trx.deleteFrom('declaredModel').execute()
    const rows = models.map((each, place) => ({ ...each, fallbacks: JSON.stringify(each.fallbacks), place }))
    if (rows.length > 0) await trx.insertInto('declaredModel').values(rows).execute()
  })
}

/**
 * Lists the models that the workers know, in order, each with its profile and the time until which
 * the model counts as unavailable.
 */
export async function declaredModels({
  db,
}: Scope): Promise<(ListedModel & { profile: ModelProfile; awayUntil: string | null })[]> {
  const rows = await db
    .selectFrom('declaredModel as declared')
    .leftJoin('modelProfile as known', (join) =>
      join.onRef('known.server', '=', 'declared.server').onRef('known.model', '=', 'declared.model'),
    )
    .select(['declared.name', 'declared.server', 'declared.model', 'declared.fallbacks', 'declared.protocol'])
    .select(sql<string | null>`case when known.away_until > ${onceNow} then known.away_until end`.as('awayUntil'))
    .orderBy('declared.place')
    .execute()
  return await Promise.all(rows.map(async (row) => ({ ...row, profile: await modelProfile(db, row) })))
}
