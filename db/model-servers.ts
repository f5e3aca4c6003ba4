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
} from '../domain/chat.ts'
import type { Severity } from '../domain/incident.ts'
import type { ModelProtocol } from '../domain/status.ts'
import { type Db, now, onceNow, type Scope, type Trx } from './connect.ts'

/** A model at a server's address, without credentials. */
export type ModelKey = { server: string; model: string }

export type ModelProfile = {
  shape: RequestShape
  abilities: ModelAbilities
  /** As the server says, or as a refusal said if that is less; null where neither did. */
  windowTokens: number | null
  windowSource: string | null
  cutsSilently: boolean
  /** The window may be another once the model is loaded. */
  isProvisional: boolean
  /** Whether the server has ever said who it is. */
  isRead: boolean
  /** Whether it is time to ask the server again. */
  isDue: boolean
}

/** What was learned is learned again after this: a server may have been changed without a trace. One refused request a week. */
const learnedDays = 7
const readEverySeconds = 600
/** Of a window that the server has not decided yet. */
const provisionalSeconds = 15

const fresh = sql<boolean>`shape_at > ${onceNow} - make_interval(days => ${sql.lit(learnedDays)})`
const due = sql<boolean>`(model_profile.read_at is null or model_profile.read_at < ${onceNow} - make_interval(
  secs => case when model_profile.is_provisional then ${sql.lit(provisionalSeconds)} else ${sql.lit(readEverySeconds)} end))`

/** Everything known of a model, the same for every worker. */
export async function modelProfile(db: Db | Trx, { server, model }: ModelKey): Promise<ModelProfile> {
  const row = await db
    .selectFrom('modelProfile')
    .select(['shape', 'identity', 'windowTokens', 'windowSource', 'refusedWindow', 'cutsSilently', 'isProvisional'])
    .select('abilities')
    .select([fresh.as('isFresh'), due.as('isDue')])
    .where('server', '=', server)
    .where('model', '=', model)
    .executeTakeFirst()
  if (!row) {
    return {
      shape: plainShape,
      abilities: abilitiesOf({}, plainShape),
      windowTokens: null,
      windowSource: null,
      cutsSilently: false,
      isProvisional: false,
      isRead: false,
      isDue: true,
    }
  }
  const { windowTokens, refusedWindow } = row
  const isRefused = refusedWindow !== null && (windowTokens === null || refusedWindow <= windowTokens)
  const shape = row.isFresh ? readShape(row.shape) : plainShape
  return {
    shape,
    abilities: abilitiesOf(row.abilities, shape),
    windowTokens: isRefused ? refusedWindow : windowTokens,
    windowSource: isRefused ? 'a refusal' : row.windowSource,
    cutsSilently: row.cutsSilently,
    isProvisional: row.isProvisional,
    isRead: row.identity !== null,
    isDue: row.isDue,
  }
}

/** Of all servers and models, the one that was asked about itself last: the one that is in use. Null where none ever was. */
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

/** Keeps how the server wants its requests. */
export async function keepShape(db: Db | Trx, key: ModelKey, shape: RequestShape): Promise<void> {
  const kept = { shape: JSON.stringify(shape), shapeAt: now }
  await db
    .insertInto('modelProfile')
    .values({ ...key, ...kept })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet(kept))
    .execute()
}

/** Takes it on to ask the server about its model; false where it is not due, or another worker has just done so. */
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

/** Keeps what a server said of its model. When it is another one than before, all that was learned of the earlier one goes. */
export async function keepServed(db: Db | Trx, key: ModelKey, served: Served): Promise<void> {
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

/** Keeps what an answer showed that the server can do, beside what is known. */
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

/**
 * Keeps what a check learned, beside what runs have learned: a check has short conversations and asks for less. It does not count as a reading of
 * the worker: a model that was only checked does not count as the one in use.
 */
export async function keepLearned(
  trx: Trx,
  key: ModelKey,
  { shape, abilities, served }: LearnedProfile,
): Promise<void> {
  await keepAbilities(trx, key, {})
  if (served) await keepServed(trx, key, served)
  await keepAbilities(trx, key, abilities)
  if (Object.keys(shape).length === 0) return
  const { shape: known } = await modelProfile(trx, key)
  await keepShape(trx, key, { ...known, ...shape })
}

/** Keeps the window that a refusal named. */
export async function keepRefusedWindow(db: Db, key: ModelKey, tokens: number): Promise<void> {
  await db
    .insertInto('modelProfile')
    .values({ ...key, refusedWindow: tokens })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet({ refusedWindow: tokens }))
    .execute()
}

/** Leaves a model alone for so long from now on: it did not answer. */
export async function leaveAlone(db: Db, key: ModelKey, seconds: number): Promise<void> {
  const awayUntil = ahead(seconds)
  await db
    .insertInto('modelProfile')
    .values({ ...key, awayUntil })
    .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet({ awayUntil }))
    .execute()
}

/** Those that are left alone now. */
export async function modelsAway(db: Db): Promise<ModelKey[]> {
  return await db.selectFrom('modelProfile').select(['server', 'model']).where('awayUntil', '>', onceNow).execute()
}

export type ListedModel = ModelKey & { name: string; fallbacks: string[]; protocol: ModelProtocol | null }

/** Makes known what LLM_SERVERS_FILE declares, in place of what was declared before; of two workers the last one is believed. */
export async function declareModels(db: Db, models: readonly ListedModel[]): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('declared_model', 0))`.execute(trx)
    await trx.deleteFrom('declaredModel').execute()
    const rows = models.map((each, place) => ({ ...each, fallbacks: JSON.stringify(each.fallbacks), place }))
    if (rows.length > 0) await trx.insertInto('declaredModel').values(rows).execute()
  })
}

/** The models that the workers know, in their order, each with its profile and until when it is left alone. */
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

/** Who asks a server of models: one run, with the severity of its incident. */
export type SlotHolder = { server: string; holder: string; incidentId: string; severity: Severity }

/** `held`: the slot is this try's until it lets go, or says nothing for `heldSeconds`. `ahead`: how many go first. */
export type Slot = { held: true; waitedMs: number } | { held: false; ahead: number }

/** A holder says that it lives every few seconds; one that is silent for so long has lost its slot to the next in the line. */
export const heldSeconds = 60
/** The same of one that waits: shorter, for a dead one at the head would keep the others from a free slot. */
const waitingSeconds = 15

const rankOf: Record<Severity, number> = { critical: 0, warning: 1, info: 2 }
const ahead = (seconds: number) => sql<string>`nightshift_now() + make_interval(secs => ${sql.lit(seconds)})`

/**
 * Takes a slot for this try of a run, or a place in the line: the more severe first, then who asked first. One statement at a time
 * per server decides, so that there are never more than `limit` over all workers. The slot of an earlier try of the same run passes
 * on, and that try finds out when it says next that it lives. Without a token the slot is kept for the run's next try, for as long
 * as a place in the line.
 */
export async function takeSlot(db: Db, asking: SlotHolder, limit: number, token: string | null): Promise<Slot> {
  const { severity, ...who } = asking
  return await db.transaction().execute(async (trx): Promise<Slot> => {
    await sql`select pg_advisory_xact_lock(hashtextextended('model_slot ' || ${who.server}, 0))`.execute(trx)
    await trx.deleteFrom('modelSlot').where('server', '=', who.server).where(isOver).execute()
    const own = await trx
      .insertInto('modelSlot')
      .values({ ...who, rank: rankOf[severity], until: ahead(waitingSeconds) })
      .onConflict((conflict) => conflict.column('holder').doUpdateSet({ rank: rankOf[severity], server: who.server }))
      .returning(['heldAt', 'askedAt'])
      .executeTakeFirstOrThrow()
    const before = own.heldAt === null ? await lineBefore(trx, who, limit) : 0
    if (before > 0) {
      await trx
        .updateTable('modelSlot')
        .set({ until: ahead(waitingSeconds) })
        .where('holder', '=', who.holder)
        .execute()
      return { held: false, ahead: before }
    }
    const { waitedMs } = await trx
      .updateTable('modelSlot')
      .set({
        heldAt: sql<string>`coalesce(held_at, nightshift_now())`,

        token,
        until: ahead(token === null ? waitingSeconds : heldSeconds),
      })
      .where('holder', '=', who.holder)
      .returning(sql<number>`(extract(epoch from held_at - asked_at) * 1000)::float8`.as('waitedMs'))
      .executeTakeFirstOrThrow()
    return { held: true, waitedMs: Math.round(waitedMs) }
  })
}

const isOver = sql<boolean>`until < nightshift_now()`

/** How many must go before this one may: none where a slot is free for it. */
async function lineBefore(trx: Trx, who: { server: string; holder: string }, limit: number): Promise<number> {
  const { rows } = await sql<{ held: number; line: number }>`
    select count(*) filter (where held_at is not null)::int as held,
      count(*) filter (where held_at is null and (rank, asked_at, holder) <
        (select rank, asked_at, holder from model_slot where holder = ${who.holder}))::int as line
    from model_slot where server = ${who.server}`.execute(trx)
  const { held, line } = rows[0]!
  return Math.max(0, held + line + 1 - limit)
}

/** Says that this try still uses its slot; false where the slot is another's by now. */
export async function keepSlot(db: Db, holder: string, token: string): Promise<boolean> {
  const kept = await db
    .updateTable('modelSlot')
    .set({ until: ahead(heldSeconds) })
    .where('holder', '=', holder)
    .where('token', '=', token)
    .returning('holder')
    .executeTakeFirst()
  return kept !== undefined
}

/** Lets go of a slot, or of a place in the line (`token` null); of a slot that passed on nothing. */
export async function leaveSlot(db: Db, holder: string, token: string | null): Promise<void> {
  await db
    .deleteFrom('modelSlot')
    .where('holder', '=', holder)
    .where((row) => (token === null ? row('heldAt', 'is', null) : row('token', '=', token)))
    .execute()
}

/** How many ask and how many wait, by server. */
export async function slotsNow(db: Db): Promise<{ server: string; held: number; waiting: number }[]> {
  return await db
    .selectFrom('modelSlot')
    .select('server')
    .select(sql<number>`count(*) filter (where held_at is not null)::int`.as('held'))
    .select(sql<number>`count(*) filter (where held_at is null)::int`.as('waiting'))
    .where(sql<boolean>`until > ${onceNow}`)
    .groupBy('server')
    .orderBy('server')
    .execute()
}

export type Thinking = { state: 'asked' | 'waiting'; since: string; ahead: number }

/** What an incident's run has to do with the model now: null where it neither asks nor waits. */
export async function thinkingOf({ db }: Scope, incidentId: string): Promise<Thinking | null> {
  const row = await db
    .selectFrom('modelSlot as own')
    .select(['askedAt', 'heldAt'])
    .select(
      sql<number>`(select count(*) from model_slot as each where each.server = own.server and each.until > ${onceNow}
        and each.held_at is null and (each.rank, each.asked_at, each.holder) < (own.rank, own.asked_at, own.holder))::int`.as(
        'ahead',
      ),
    )
    .where('incidentId', '=', incidentId)
    .where(sql<boolean>`until > ${onceNow}`)
    .executeTakeFirst()
  if (!row) return null
  if (row.heldAt !== null) return { state: 'asked', since: row.heldAt, ahead: 0 }
  return { state: 'waiting', since: row.askedAt, ahead: row.ahead }
}
