import { sql } from 'kysely'
import type { Severity } from '../../domain/incident.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'

/**
 * An asker of a model's server: one run, with its incident's severity. A person waits for a
 * question's answer.
 */
export type SlotHolder = {
  server: string
  holder: string
  incidentId: string
  severity: Severity
  isQuestion: boolean
}

/**
 * `held`: the slot is this try's until it lets go, or is silent for `heldSeconds`. `ahead`: how
 * many go first.
 */
export type Slot = { held: true; waitedMs: number } | { held: false; ahead: number }

/** A holder shows life every few seconds; one silent this long has lost its slot to the next. */
export const heldSeconds = 60

/** The same for a waiter: shorter, since a dead one at the head blocks a free slot. */
const waitingSeconds = 15

const ranks: Record<Severity, number> = { critical: 0, warning: 1, info: 2 }
const rankOf = ({ severity, isQuestion }: SlotHolder): number => (isQuestion ? -1 : ranks[severity])

export const ahead = (seconds: number) => sql<string>`nightshift_now() + make_interval(secs => ${sql.lit(seconds)})`

/**
 * Takes a slot for a run's try, or a place in the line: people's questions, then the more severe,
 * then the earlier. One statement at a time a server decides, so that there are never more than
 * `limit` over all workers. The slot of an earlier try of the run passes on, and that try finds out
 * when it next shows life. Without a token the slot is kept for the run's next try, as long as a
 * place in the line.
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
      .onConflict((conflict) => conflict.column('holder').doUpdateSet({ rank, server }))
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

/** Lets go of a slot or place in the line (`token` null); nothing for a slot that passed on. */
export async function leaveSlot(db: Db, holder: string, token: string | null): Promise<void> {
  await db
    .deleteFrom('modelSlot')
    .where('holder', '=', holder)
    .where((row) => (token === null ? row('heldAt', 'is', null) : row('token', '=', token)))
    .execute()
}

/** How many ask and how many wait, by server. */
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
