import { sql } from 'kysely'
import {
  abilitiesOf,
  type LearnedProfile,
  type ModelAbilities,
  plainShape,
  type RequestShape,
  readShape,
  type SeenAbilities,
  type ServedModel,
} from '../../domain/chat.ts'
import { now, onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { ahead } from './slots.ts'

/** A model at the address of a server, without credentials. */
export type ModelKey = { server: string; model: string }

export type ModelProfile = {
  shape: RequestShape
  abilities: ModelAbilities
  /**
   * The context window in tokens by the server's own report, or by an error response if that gives
   * less; null if the window is unknown.
   */
  windowTokens: number | null
  windowSource: string | null
  /** The context window by the server's own report, even if an error response gave less. */
  statedWindow: number | null
  cutsSilently: boolean
  /** Whether the window may change once the model is loaded. */
  isProvisional: boolean
  /** Whether the server ever identified itself. */
  isRead: boolean
  /** Whether it is time to query the server again. */
  isDue: boolean
}

/**
 * Days after which facts about a model server are learned again, because a server may change
 * without notice. One request is refused each week for this.
 */
const learnedDays = 7
const readEverySeconds = 600
/** Seconds after which the server is queried again if it has not decided its window yet. */
const provisionalSeconds = 15

const fresh = sql<boolean>`shape_at > ${onceNow} - make_interval(days => ${sql.lit(learnedDays)})`
const refusedLately = sql<boolean>`coalesce(refused_at > ${onceNow} - make_interval(days => ${sql.lit(learnedDays)}), false)`
const due = sql<boolean>`(model_profile.read_at is null or model_profile.read_at < ${onceNow} - make_interval(
  secs => case when model_profile.is_provisional then ${sql.lit(provisionalSeconds)} else ${sql.lit(readEverySeconds)} end))`

/** Reads all known facts about a model, which are the same for every worker. */
export async function modelProfile(db: Db | Trx, { server, model }: ModelKey): Promise<ModelProfile> {
  const row = await db
    .selectFrom('modelProfile')
    .select(['shape', 'identity', 'windowTokens', 'windowSource', 'refusedWindow', 'cutsSilently', 'isProvisional'])
    .select('abilities')
    .select([fresh.as('isFresh'), refusedLately.as('isRefusedLately'), due.as('isDue')])
    .where('server', '=', server)
    .where('model', '=', model)
    .executeTakeFirst()
  if (!row) {
    return {
      shape: plainShape,
      abilities: abilitiesOf({}, plainShape),
      windowTokens: null,
      windowSource: null,
      statedWindow: null,
      cutsSilently: false,
      isProvisional: false,
      isRead: false,
      isDue: true,
    }
  }
  const { windowTokens, refusedWindow } = row
  const isRefused =
    row.isRefusedLately && refusedWindow !== null && (windowTokens === null || refusedWindow <= windowTokens)
  const shape = row.isFresh ? readShape(row.shape) : plainShape
  return {
    shape,
    abilities: abilitiesOf(row.abilities, shape),
    windowTokens: isRefused ? refusedWindow : windowTokens,
    windowSource: isRefused ? 'a refusal' : row.windowSource,
    statedWindow: windowTokens,
    cutsSilently: row.cutsSilently,
    isProvisional: row.isProvisional,
    isRead: row.identity !== null,
    isDue: row.isDue,
  }
}

/**
 * Finds the server and model that were last queried about themselves, which are therefore in use;
 * null if none was queried.
 */
export async function lastProfile(db: Db): Promise<(ModelProfile & ModelKey) | null> {
  const row = await db
    .selectFrom('modelProfile')
    .select(['server', 'model'])
    .where('readAt', 'is not', null)
    .orderBy('readAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row ? { ...row, ...(await modelProfile(db, row)) } : null
}

/** Stores the form in which the server wants its requests. */
export async function keepShape(db: Db | Trx, key: ModelKey, shape: RequestShape): Promise<void> {
  const kept = { shape: JSON.stringify(shape), shapeAt: now }
  await db
    .insertInto('modelProfile')
    .values({ ...key, ...kept })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet(kept))
    .execute()
}

/**
 * Takes the task of querying the server about its model. False if no query is due, or another
 * worker has the task.
 */
export async function claimReading(db: Db, key: ModelKey): Promise<boolean> {
  const readAt = now
  const taken = await db
    .insertInto('modelProfile')
    .values({ ...key, readAt })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet({ readAt }).where(due))
    .returning('model')
    .executeTakeFirst()
  return taken !== undefined
}

export type Served = ServedModel

/**
 * Stores what a server reports about its model. If the model has changed, removes everything that
 * was learned about the earlier model.
 */
export async function storeServedModel(db: Db | Trx, key: ModelKey, served: Served): Promise<void> {
  const { windowTokens, source, identity, cutsSilently, isProvisional } = served
  const said = JSON.stringify(served.abilities)
  const isOther = sql<boolean>`model_profile.identity is not null and model_profile.identity <> ${identity}`
  await db
    .updateTable('modelProfile')
    .set({
      windowTokens,
      windowSource: source,
      identity,
      cutsSilently,
      isProvisional,
      shape: sql<string>`case when ${isOther} then '{}'::jsonb else shape end`,
      abilities: sql<string>`case when ${isOther} then '{}'::jsonb else abilities end || ${said}::jsonb`,
      refusedWindow: sql<number | null>`case when ${isOther} then null else refused_window end`,
    })
    .where('server', '=', key.server)
    .where('model', '=', key.model)
    .execute()
}

/** Adds abilities of the server that a response showed. */
export async function keepAbilities(db: Db | Trx, key: ModelKey, seen: SeenAbilities): Promise<void> {
  const abilities = JSON.stringify(seen)
  await db
    .insertInto('modelProfile')
    .values({ ...key, abilities })
    .onConflict((conflict) =>
      conflict
        .columns(['server', 'model'])
        .doUpdateSet({ abilities: sql<string>`model_profile.abilities || ${abilities}::jsonb` }),
    )
    .execute()
}

/** Stores the name that the model reports in its response. */
export async function keepAnsweredAs(db: Db | Trx, key: ModelKey, answeredAs: string): Promise<void> {
  await db
    .insertInto('modelProfile')
    .values({ ...key, answeredAs })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet({ answeredAs }))
    .execute()
}

/**
 * Stores facts that a check learned beside facts that runs learned, because a check has short
 * conversations and requests less. Does not count as a query by a worker: a model that was only
 * checked is not in use.
 */
export async function storeLearned(
  trx: Trx,
  key: ModelKey,
  { shape, abilities, served }: LearnedProfile,
): Promise<void> {
  await keepAbilities(trx, key, {})
  if (served) await storeServedModel(trx, key, served)
  await keepAbilities(trx, key, abilities)
  if (Object.keys(shape).length === 0) return
  const { shape: known } = await modelProfile(trx, key)
  await keepShape(trx, key, { ...known, ...shape })
}

/** Stores the context window that an error response named. */
export async function keepRefusedWindow(db: Db, key: ModelKey, tokens: number): Promise<void> {
  const refused = { refusedWindow: tokens, refusedAt: now }
  await db
    .insertInto('modelProfile')
    .values({ ...key, ...refused })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet(refused))
    .execute()
}

/** Marks a model as unavailable for some seconds, because it did not respond. */
export async function restModel(db: Db, key: ModelKey, seconds: number): Promise<void> {
  const awayUntil = ahead(seconds)
  await db
    .insertInto('modelProfile')
    .values({ ...key, awayUntil })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet({ awayUntil }))
    .execute()
}

/** Lists the models that are marked as unavailable. */
export async function restingModels(db: Db): Promise<ModelKey[]> {
  return await db.selectFrom('modelProfile').select(['server', 'model']).where('awayUntil', '>', onceNow).execute()
}
