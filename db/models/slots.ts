import { sql } from 'kysely'
import type { Severity } from '../../domain/incident.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'

/**
 * A run that wants to use a model server, with the severity of its incident. `isQuestion`: a person
 * waits for the response.
 */
export type SlotHolder = {
  server: string
  holder: string
  incidentId: string
  severity: Severity
  isQuestion: boolean
}

/**
 * `held`: whether the attempt has the slot. The attempt keeps the slot until it releases the slot,
 * or is silent for `heldSeconds`. `ahead`: how many runs wait in front of this run.
 */
export type Slot = { held: true; waitedMs: number } | { held: false; ahead: number }

/** Seconds of silence after which a holder loses its slot. A holder reports every few seconds. */
export const heldSeconds = 60

/**
 * Seconds of silence after which a waiting run loses its place. Shorter than `heldSeconds`, because
 * a dead run at the front would block a free slot.
 */
const waitingSeconds = 15

const ranks: Record<Severity, number> = { critical: 0, warning: 1, info: 2 }
const rankOf = ({ severity, isQuestion }: SlotHolder): number => (isQuestion ? -1 : ranks[severity])

export const ahead = (seconds: number) => sql<string>`nightshift_now() + make_interval(secs => ${sql.lit(seconds)})`

/**
 * Takes a slot for an attempt of a run, or a place in the line: people's questions first, then the
 * more severe incidents, then the earlier requests. For each server one transaction at a time
 * decides, so that all workers together never have more than `limit` slots. A slot of an earlier
 * attempt of the run passes to this attempt; the earlier attempt notices this at its next report.
 * Without a token, the slot is kept for the next attempt of the run, for as long as a place in the
 * line.
 */
export async function takeSlot(db: Db, asking: SlotHolder, limit: number, token: string | null): Promise<Slot> {
  const { server, holder, incidentId } = asking
  const who = { server, holder, incidentId }
  const rank = rankOf(asking)
  return await db.transaction().execute(async (trx): Promise<Slot> => {
    await sql`select pg_advisory_xact_lock(hashtextextended('model_slot ' || ${who.server}, 0))`.execute(trx)
    await trx.deleteFrom('modelSlot').where('server', '=', who.server).where(isOver).execute()
    const own = await trx
      .insertInto('modelSlot')
      .values({ ...who, rank, until: ahead(waitingSeconds) })
      .onConflict((conflict) =>
        conflict.column('holder').doUpdateSet({ rank, server, heldAt: ifHere('held_at'), token: ifHere('token') }),
      )
      .returning(['heldAt', 'token'])
      .executeTakeFirstOrThrow()
    // Leaves the slot to the request that uses it, because the waiting call belongs to an earlier
    // attempt.
    if (token === null && own.heldAt !== null && own.token !== null) return { held: true, waitedMs: 0 }
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

/** Keeps a value if the run waits for the server as before. Each server has its own slots. */
const ifHere = (column: string) =>
  sql<string | null>`case when model_slot.server = excluded.server then ${sql.ref(`model_slot.${column}`)} end`

const isOver = sql<boolean>`until < nightshift_now()`

/**
 * Counts the runs in front of this run in the line; 0 if a slot is free for it. Takes no lock, so
 * the number is only approximate.
 */
export async function lineBefore(
  db: Db | Trx,
  who: { server: string; holder: string },
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ held: number; line: number }>`
    select count(*) filter (where held_at is not null)::int as held,
      count(*) filter (where held_at is null and (rank, asked_at, holder) <
        (select rank, asked_at, holder from model_slot where holder = ${who.holder}))::int as line
    from model_slot where server = ${who.server} and until >= ${onceNow}`.execute(db)
  const { held, line } = rows[0]!
  return Math.max(0, held + line + 1 - limit)
}

/** Reports that this attempt still uses its slot. False if another attempt has the slot. */
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

/**
 * Releases a slot; with `token` null, a place in the line or a slot that is kept. Does nothing if
 * the slot has passed to another attempt.
 */
export async function leaveSlot(db: Db, holder: string, token: string | null): Promise<void> {
  await db
    .deleteFrom('modelSlot')
    .where('holder', '=', holder)
    .where('token', token === null ? 'is' : '=', token)
    .execute()
}

/** Counts slots in use and waiting runs by server. */
export async function countSlots(db: Db): Promise<{ server: string; held: number; waiting: number }[]> {
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

type Thinking = { state: 'asked' | 'waiting'; since: string; ahead: number }

/**
 * Reads whether the run of an incident is using the model now or waiting for it; null if it does
 * neither.
 */
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
