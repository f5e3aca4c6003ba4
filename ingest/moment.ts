import type { Alert } from '../domain/alert.ts'
import { isInFuture } from '../domain/occurrence.ts'

const firstMs = Date.UTC(1971, 0, 1)
const lastMs = Date.UTC(9000, 0, 1)

/** A time as RFC 3339 in UTC, or null. Go's zero time (year 1) and whatever no calendar holds are null. */
export function momentOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > 64) return null
  const ms = Date.parse(value)
  return ms >= firstMs && ms <= lastMs ? new Date(ms).toISOString() : null
}

const accepted = 'RFC 3339 is accepted, as 2026-11-22T03:04:05Z, not more than five minutes ahead'

/**
 * The times of an alert as far as they can be believed. What is absent, unreadable or ahead of the clock becomes the time of
 * receipt, and `timeNotes` says so; an end before its own start is kept, because it ends nothing.
 */
export function timesOf(
  given: { startsAt: unknown; endsAt: unknown },
  status: Alert['status'],
  nowIso: string,
): Pick<Alert, 'startsAt' | 'startGiven' | 'endsAt' | 'timeNotes'> {
  const timeNotes: string[] = []
  const read = (name: string, value: unknown): string | null => {
    if (value === undefined || value === null || value === '') return null
    const moment = momentOf(value)
    if (moment !== null && !isInFuture(Date.parse(moment), Date.parse(nowIso))) return moment
    const problem = moment === null ? 'cannot be read' : `lies in the future (${moment})`
    timeNotes.push(`${name} ${problem}: the time of receipt is used; ${accepted}`)
    return null
  }
  const startsAt = read('startsAt', given.startsAt)
  // While an alert fires, Alertmanager's endsAt is year 1 or the time at which Prometheus would give up on it.
  const endsAt = status === 'resolved' ? (read('endsAt', given.endsAt) ?? nowIso) : null
  if (startsAt !== null && endsAt !== null && endsAt < startsAt) {
    timeNotes.push(`endsAt ${endsAt} lies before startsAt ${startsAt}: such an end ends nothing`)
  }
  return { startsAt: startsAt ?? nowIso, startGiven: startsAt !== null, endsAt, timeNotes }
}
