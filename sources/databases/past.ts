import type { StatementCount, StatementCounts, StatementSnapshot } from '../../domain/statement-snapshot.ts'

/** Statements a week before, by two snapshots of counters; in week one, by the oldest. */

const hourMs = 3_600_000
const weekMs = 7 * 24 * hourMs
/** Two snapshots that are closer say little of a day. */
const apartMs = 6 * hourMs

/** One statement then. Without `callsAnHour` nobody knows over how long it was counted. */
export type PastCost = { meanMs: number; touchedACall: number; callsAnHour?: number }

type Past = {
  /** With which day is compared, or why with none; one clause. */
  against: string
  /** Null: nothing is compared. */
  of: ((key: string) => PastCost | 'not called' | 'not kept') | null
}

const none = (against: string): Past => ({ against, of: null })
const day = (iso: string) => iso.slice(0, 10)
const minute = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`

/**
 * Compares with a snapshot of seven days ago, or the oldest of the same counters. `snapshots`: of
 * one source, in any order.
 */
export function findPast(now: StatementCounts, snapshots: readonly StatementSnapshot[], nowMs: number): Past {
  const sorted = snapshots.toSorted((a, b) => Date.parse(a.takenAt) - Date.parse(b.takenAt))
  const last = sorted.at(-1)
  if (!last) return none('nothing yet: the first snapshot of its counters is taken within minutes')
  const end = findEnd(now, last)
  if (end !== null) return none(`nothing: ${end}`)
  const began = sorted.findLastIndex((each, at) => at + 1 < sorted.length && findEnd(sorted[at + 1]!, each) !== null)
  const same = sorted.slice(began + 1)
  // The newest that is a week old: rounds of a day are never to the second.
  const from = same.findLast(({ takenAt }) => nowMs - Date.parse(takenAt) >= weekMs - apartMs) ?? same[0]!
  const until = same.find(({ takenAt }) => Date.parse(takenAt) - Date.parse(from.takenAt) >= apartMs)
  const isWeek = nowMs - Date.parse(from.takenAt) >= weekMs - apartMs
  const since =
    began >= 0 ? `, the oldest snapshot since ${findEnd(same[0]!, sorted[began]!)}` : ', the oldest snapshot'
  const against = `${day(from.takenAt)}${isWeek ? ', a week before' : since}`
  return { against: until ? against : `${against}: with all before it`, of: compareBetween(from, until ?? null) }
}

/** Why the counters of two moments are not the same ones, counted on; null where they are. */
function findEnd(later: StatementCounts, earlier: StatementSnapshot): string | null {
  if (later.server !== earlier.server) return `another server answers since ${day(earlier.takenAt)}`
  if (later.version !== earlier.version)
    return `version ${earlier.version} became ${later.version} after ${day(earlier.takenAt)}`
  const [since, before] = [later.countedSince, earlier.countedSince]
  // Servers and our rows write the same moment with more digits or fewer.
  if (since !== null && before !== null && Math.abs(Date.parse(since) - Date.parse(before)) >= 1_000)
    return `its counters were reset at ${minute(since)}`
  return hasFallen(later.counts, earlier.counts) ? `its counters were reset after ${minute(earlier.takenAt)}` : null
}

/**
 * Most common ones were called less often: one that fell alone was dropped by the server, and
 * begins at nothing.
 */
function hasFallen(later: readonly StatementCount[], earlier: readonly StatementCount[]): boolean {
  const before = new Map(earlier.map((each) => [each.key, each.calls]))
  const both = later.filter(({ key }) => before.has(key))
  return both.length > 0 && both.filter(({ key, calls }) => calls < before.get(key)!).length * 2 > both.length
}

/** What statements took between two snapshots; before the first one where there is no other. */
function compareBetween(from: StatementSnapshot, until: StatementSnapshot | null): Past['of'] {
  const earlier = new Map(until ? from.counts.map((each) => [each.key, each]) : [])
  const last = until ?? from
  const later = new Map(last.counts.map((each) => [each.key, each]))
  const begin = until ? from.takenAt : from.countedSince
  const hours = begin === null ? null : (Date.parse(last.takenAt) - Date.parse(begin)) / hourMs
  return (key) => {
    const end = later.get(key)
    if (!end) return last.isWhole ? 'not called' : 'not kept'
    const start = earlier.get(key)
    const isNew = until !== null && !start && from.isWhole
    const since = start && end.calls >= start.calls && end.ms >= start.ms ? start : null
    const calls = end.calls - (since?.calls ?? 0)
    // Not called on that day: what it took before.
    const [cost, base] = calls > 0 ? [calls, since] : [end.calls, null]
    if (cost <= 0) return 'not called'
    // It began at nothing, or was not kept at the first: over how long it was counted is not known.
    const isTimed = hours !== null && hours > 0 && (until === null || since !== null || isNew)
    return {
      meanMs: (end.ms - (base?.ms ?? 0)) / cost,
      touchedACall: Math.max(0, end.touched - (base?.touched ?? 0)) / cost,
      ...(isTimed && { callsAnHour: calls / hours }),
    }
  }
}
