import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import { now, onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'

/**
 * Size of the first batch of removed rows. Batches grow while a batch takes less than its time, and
 * shrink if the database is slow.
 */
const firstBatch = 20
const maxBatch = 200
const minBatch = 5
const batchMs = 60
/**
 * The pause after a batch, as a multiple of the batch's duration, so that the database has time for
 * ingest.
 */
const restTimes = 3
const minRestMs = 20
/**
 * How many messages or alerts without an incident take the place of one incident in a batch. They
 * are small rows without a log.
 */
const passingPerIncident = 10

type Removed = { incidents: number; deliveries: number; alerts: number; bodies: number }

/** The state of a round of retention. Each batch passes its size to the next batch. */
type Pace = { size: number; signal: AbortSignal }

/**
 * Removes all rows that are old enough, in batches with pauses, and records the end of the round.
 * On `signal` stops between two batches. Rows that were removed stay removed, and the next round
 * begins from the start.
 */
export async function removeOld(db: Db, signal: AbortSignal): Promise<Removed> {
  const removed: Removed = { incidents: 0, deliveries: 0, alerts: 0, bodies: 0 }
  const pace = { size: firstBatch, signal }
  await db
    .insertInto('retentionRound')
    .values({ removed: '{}' })
    .onConflict((conflict) => conflict.column('singleton').doUpdateSet({ beganAt: now }))
    .execute()
  let place = { at: '-infinity', id: '' }
  await inBatches(pace, async (size) => {
    const { rows } = await sql<{ looked: number; removed: number; lastAt: string; lastId: string }>`
      select looked, removed, last_at::text as last_at, last_id
      from remove_closed_incidents(${place.at}::timestamptz, ${place.id}, ${size})`.execute(db)
    const [batch] = rows
    if (!batch || batch.looked === 0) return false
    removed.incidents += batch.removed
    place = { at: batch.lastAt, id: batch.lastId }
    return true
  })
  await inBatches(pace, async (size) => {
    const { rows } = await sql<{ deliveries: number; alerts: number }>`
      select deliveries, alerts from remove_passing(${size * passingPerIncident})`.execute(db)
    const { deliveries = 0, alerts = 0 } = rows[0] ?? {}
    removed.deliveries += deliveries
    removed.alerts += alerts
    return deliveries + alerts > 0
  })
  await inBatches(pace, async (size) => {
    const due = await db
      .selectFrom('bodyCandidate')
      .select('digest')
      .where('since', '<', sql<string>`${onceNow} - interval '1 day'`)
      .limit(1)
      .executeTakeFirst()
    if (!due) return false
    const { rows } = await sql<{ swept: number }>`select sweep_bodies(${size}) as swept`.execute(db)
    removed.bodies += rows[0]?.swept ?? 0
    return true
  })
  if (!signal.aborted)
    await db
      .updateTable('retentionRound')
      .set({ endedAt: now, removed: JSON.stringify(removed) })
      .execute()
  return removed
}

/** Removes batches until one finds nothing. */
async function inBatches(pace: Pace, remove: (size: number) => Promise<boolean>): Promise<void> {
  while (!pace.signal.aborted) {
    const began = performance.now()
    if (!(await remove(pace.size))) return
    const tookMs = performance.now() - began
    const fitting = tookMs > batchMs ? Math.floor((pace.size * batchMs) / tookMs) : pace.size * 2
    pace.size = Math.max(minBatch, Math.min(maxBatch, fitting))
    await wait(Math.max(minRestMs, tookMs * restTimes), undefined, { signal: pace.signal }).catch(() => {})
  }
}
