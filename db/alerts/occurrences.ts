import { type RawBuilder, sql } from 'kysely'
import { formatSpan } from '../../domain/format.ts'
import type { Db, Trx } from '../connect.ts'
import type { AlertRow } from '../tables.ts'

/** An alert by its newest occurrence. `fired`: its occurrences in words; null for only one. */
type FoldedAlert = AlertRow & { fired: string | null }

type Occurrences = {
  times: number
  /** The begin of the first occurrence. */
  since: string
  /** Milliseconds of the shortest and the longest ended occurrence; null if none has ended. */
  shortestMs: number | null
  longestMs: number | null
}

/** The hours in which occurrences count. Earlier occurrences do not matter. */
const windowHours = 24

/**
 * Lists alerts that match `where`, one for each sender and fingerprint, newest first. Combines
 * their occurrences of 24 hours in any incident, because an alert that comes and goes is a
 * different problem from one that stays.
 */
export async function foldedAlerts(db: Db | Trx, where: RawBuilder<boolean>, limit: number): Promise<FoldedAlert[]> {
  const newest = db
    .selectFrom('alert')
    .select(['id', 'startsAt'])
    .distinctOn(['source', 'fingerprint'])
    .where(where)
    .orderBy('source')
    .orderBy('fingerprint')
    .orderBy('startsAt', 'desc')
  // Reads only the shown alerts in full, because an incident may have thousands of alerts.
  const shown = await db
    .selectFrom('alert')
    .selectAll()
    .where('id', 'in', db.selectFrom(newest.as('newest')).select('id').orderBy('startsAt', 'desc').limit(limit))
    .orderBy('startsAt', 'desc')
    .execute()
  const folded: FoldedAlert[] = []
  for (const alert of shown) folded.push({ ...alert, fired: describeFiring(await occurrencesOf(db, alert)) })
  return folded
}

async function occurrencesOf(db: Db | Trx, { source, fingerprint }: AlertRow): Promise<Occurrences | undefined> {
  const { rows } = await sql<Occurrences>`
    select count(*)::int as times, min(starts_at) as since,
      (min(extract(epoch from ends_at - starts_at)) filter (where status = 'resolved') * 1000)::float8 as "shortestMs",
      (max(extract(epoch from ends_at - starts_at)) filter (where status = 'resolved') * 1000)::float8 as "longestMs"
    from alert
    where source = ${source} and fingerprint = ${fingerprint}
      and starts_at > nightshift_now() - make_interval(hours => ${windowHours})`.execute(db)
  return rows[0]
}

/** Formats occurrences: `9 times since 2026-11-25T10:30:33.000Z, 20 s to 10 min each`. */
export function describeFiring(found: Occurrences | undefined): string | null {
  if (!found || found.times < 2) return null
  const { times, since, shortestMs, longestMs } = found
  const [shortest, longest] = [shortestMs, longestMs].map((ms) => (ms === null ? null : formatSpan(ms)))
  const each = shortest && longest ? `, ${shortest === longest ? shortest : `${shortest} to ${longest}`} each` : ''
  return `${times} times since ${since}${each}`
}
