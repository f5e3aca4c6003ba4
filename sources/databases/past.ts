import type { StatementCount, StatementCounts, StatementSnapshot } from '../../domain/statement-snapshot.ts'

/**
 * The costs of statements on a day a week ago, from two snapshots of counters. In the first week,
 * the oldest snapshots are used.
 */

const hourMs = 3_600_000
const weekMs = 7 * 24 * hourMs
/** The minimum time between the two snapshots that describe a day. */
const apartMs = 6 * hourMs

/**
 * The earlier cost of one statement. `callsAnHour` is absent if it is unknown for how long the
 * calls were counted.
 */
export type PastCost = { meanMs: number; touchedACall: number; callsAnHour?: number }

type Past = {
  /** A clause that names the compared day, or the reason why no day is compared. */
  against: string
  /** Returns the earlier cost of a statement by its key. Null if no day is compared. */
  of: ((key: string) => PastCost | 'not called' | 'not kept') | null
}

const none = (against: string): Past => ({ against, of: null })
const day = (iso: string) => iso.slice(0, 10)
const minute = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`

/**
 * Finds the earlier costs: of seven days ago, or of the oldest snapshot that the present counters
 * continue. `snapshots` are of one source, in any order.
 */
export function findPast(now: StatementCounts, snapshots: readonly StatementSnapshot[], nowMs: number): Past {
  const sorted = snapshots.toSorted((a, b) => Date.parse(a.takenAt) - Date.parse(b.takenAt))
  const last = sorted.at(-1)
  if (!last) return none('no earlier snapshot: the first snapshot of the counters is taken within minutes')
  const end = findEnd(now, last)
  if (end !== null) return none(`nothing: ${end}`)
  const began = sorted.findLastIndex((each, at) => at + 1 < sorted.length && findEnd(sorted[at + 1]!, each) !== null)
  const same = sorted.slice(began + 1)
  // Takes the newest snapshot that is about a week old, because the rounds are not exact.
  const from = same.findLast(({ takenAt }) => nowMs - Date.parse(takenAt) >= weekMs - apartMs) ?? same[0]!
  const until = same.find(({ takenAt }) => Date.parse(takenAt) - Date.parse(from.takenAt) >= apartMs)
  const isWeek = nowMs - Date.parse(from.takenAt) >= weekMs - apartMs
  const since =
    began >= 0 ? `, the oldest snapshot since ${findEnd(same[0]!, sorted[began]!)}` : ', the oldest snapshot'
  const against = `${day(from.takenAt)}${isWeek ? ', a week before' : since}`
  return { against: until ? against : `${against}: with all before it`, of: compareBetween(from, until ?? null) }
}

/** Returns why the later counters do not continue the earlier counters. Null if they do. */
function findEnd(later: StatementCounts, earlier: StatementSnapshot): string | null {
  if (later.server !== earlier.server) return `another server has answered since ${day(earlier.takenAt)}`
  if (later.version !== earlier.version)
    return `version ${earlier.version} became ${later.version} after ${day(earlier.takenAt)}`
  const [since, before] = [later.countedSince, earlier.countedSince]
  // Allows a difference of a second, because the server and stored rows write the same time with
  // different numbers of digits.
  if (since !== null && before !== null && Math.abs(Date.parse(since) - Date.parse(before)) >= 1_000)
    return `the counters were reset at ${minute(since)}`
  return hasFallen(later.counts, earlier.counts) ? `the counters were reset after ${minute(earlier.takenAt)}` : null
}

/**
 * Whether most statements of both snapshots have lower counts, which means that the counters were
 * reset. A server also drops single statements, which are then counted again from zero.
 */
function hasFallen(later: readonly StatementCount[], earlier: readonly StatementCount[]): boolean {
  const before = new Map(earlier.map((each) => [each.key, each.calls]))
  const both = later.filter(({ key }) => before.has(key))
  return both.length > 0 && both.filter(({ key, calls }) => calls < before.get(key)!).length * 2 > both.length
}

/**
 * Computes the costs between two snapshots. With only one snapshot, computes the costs up to it.
 */
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
    // Uses the statement's total cost if the statement was not called between the snapshots.
    const [cost, base] = calls > 0 ? [calls, since] : [end.calls, null]
    if (cost <= 0) return 'not called'
    // Whether the counting time is known. It is not if the statement began at zero again, or if the
    // first snapshot may have left it out.
    const isTimed = hours !== null && hours > 0 && (until === null || since !== null || isNew)
    return {
      meanMs: (end.ms - (base?.ms ?? 0)) / cost,
      touchedACall: Math.max(0, end.touched - (base?.touched ?? 0)) / cost,
      ...(isTimed && { callsAnHour: calls / hours }),
    }
  }
}
