import { sql } from 'kysely'
import {
  type KeptReason,
  maxRetentionDays,
  minRetentionDays,
  type RetainedKind,
  type RetainedNow,
  type Retention,
  retainedKinds,
} from '../../domain/retention.ts'
import { onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { storedSettings } from '../settings.ts'

/**
 * Maximum number of rows that are checked one by one, so that a person gets the count within
 * seconds.
 */
const maxLooked = 5_000

/**
 * Returns after how many days rows of a kind are removed; null if they are kept for ever. Reads a
 * stored value as the database function `retention_days` does, which decides.
 */
export function daysOf(kind: RetainedKind, stored: ReadonlyMap<string, string>): number | null {
  const { setting, days } = retainedKinds[kind]
  const text = stored.get(setting)
  if (text === undefined) return days
  const given = /^\d{2,4}$/.test(text) ? Number(text) : 0
  return given >= minRetentionDays && given <= maxRetentionDays ? given : null
}

/**
 * Counts the rows that retention would remove now, by kind. `asked`: values to use instead of a
 * setting before the setting is changed.
 */
export async function previewRetention(
  { db }: Scope,
  asked: Partial<Record<RetainedKind, number | null>>,
): Promise<Retention> {
  const stored = await storedSettings(db)
  const items: RetainedNow[] = []
  for (const kind of Object.keys(retainedKinds) as RetainedKind[]) {
    const days = asked[kind] === undefined ? daysOf(kind, stored) : asked[kind]
    const found = days === null ? { due: 0, kept: {}, isPartial: false } : await counts[kind](db, days)
    items.push({ kind, setting: retainedKinds[kind].setting, days, ...found })
  }
  const { bodies } = await db
    .selectFrom('bodyCandidate')
    .select(({ fn }) => fn.countAll<number>().as('bodies'))
    .executeTakeFirstOrThrow()
  return { items, bodies, lastRound: await lastRound(db) }
}

/** Reads when the last complete round of retention ended. */
async function lastRound(db: Db): Promise<Retention['lastRound']> {
  const row = await db.selectFrom('retentionRound').select(['endedAt', 'removed']).executeTakeFirst()
  return row?.endedAt ? { endedAt: row.endedAt, removed: row.removed } : null
}

/** Returns since when no round of retention was completed or begun; null if one was recently. */
export async function retentionIsLate(db: Db, hours: number): Promise<string | null> {
  const row = await db
    .selectFrom('retentionRound')
    .select(sql<string>`coalesce(ended_at, began_at)::text`.as('since'))
    .where(sql<boolean>`coalesce(ended_at, began_at) < ${onceNow} - make_interval(hours => ${hours})`)
    .executeTakeFirst()
  return row?.since ?? null
}

type Found = Pick<RetainedNow, 'due' | 'kept' | 'isPartial'>

const counts: Record<RetainedKind, (db: Db, days: number) => Promise<Found>> = {
  async incidents(db, days) {
    const { rows } = await sql<{ why: KeptReason | null; count: number }>`
      select why_kept(old) as why, count(*)::int as count
      from (select * from incident where closed_at < ${onceNow} - make_interval(days => ${days}) order by closed_at limit ${maxLooked}) as old
      group by 1`.execute(db)
    const kept = Object.fromEntries(rows.flatMap(({ why, count }) => (why === null ? [] : [[why, count]])))
    const due = rows.find(({ why }) => why === null)?.count ?? 0
    const looked = rows.reduce((sum, { count }) => sum + count, 0)
    return { due, kept, isPartial: looked === maxLooked }
  },
  deliveries: (db, days) =>
    countPassing(
      db,
      sql`select from delivery where status in ('sent', 'failed', 'dropped')
        and finished_at < ${onceNow} - make_interval(days => ${days})`,
    ),
  alerts: (db, days) =>
    countPassing(
      db,
      sql`select from alert where incident_id is null and status = 'resolved'
        and last_seen_at < ${onceNow} - make_interval(days => ${days})`,
    ),
}

async function countPassing(db: Db, old: ReturnType<typeof sql>): Promise<Found> {
  const most = maxLooked * 20
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (${old} limit ${most}) as old`.execute(db)
  const due = rows[0]?.count ?? 0
  return { due, kept: {}, isPartial: due === most }
}
