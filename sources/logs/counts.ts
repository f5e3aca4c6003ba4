import { formatCount } from '../../domain/format.ts'
import { toList, toText } from '../../domain/say.ts'
import { parseDuration } from '../../domain/source.ts'
import { type AskSource, fitSummary, SourceError, type ToolReading } from '../kind.ts'
import { findUnknownLabels } from './labels.ts'
import type { CountedSeries, Counting, LogQuery, LogReader, Range } from './logs.ts'
import { nameAsked, newSince, rangeBefore, sayUnknown, toAsked } from './summary.ts'

/** Counts lines over time by labels, instead of reading the lines. */

const maxPoints = 120
const maxSeries = 20
const steps = [10, 30, 60, 120, 300, 600, 900, 1_800, 3_600] as const
/** The usual number of points if the query names no step. */
const usualPoints = 60

/**
 * Chooses steps that cover the window. A step begins at a multiple of its length since 1970,
 * because both log stores align steps so.
 */
function chooseGrid({ count }: LogQuery, { fromMs, untilMs }: Range): Counting['grid'] {
  const seconds = (untilMs - fromMs) / 1_000
  const fits = steps.find((step) => seconds / step <= usualPoints) ?? 3_600
  const asked = count?.step === undefined ? fits : Math.ceil(parseDuration(count.step) ?? fits)
  const cover = (stepSeconds: number) => {
    const stepMs = stepSeconds * 1_000
    const [first, end] = [Math.floor(fromMs / stepMs) * stepMs, Math.ceil(untilMs / stepMs) * stepMs]
    return { stepSeconds, fromMs: first, untilMs: end, length: (end - first) / stepMs }
  }
  const grid = cover(Math.max(1, asked, Math.ceil(seconds / maxPoints)))
  // Takes longer steps if the window begins within a step and would need one point too many.
  const { length: _, ...chosen } = grid.length > maxPoints ? cover(Math.ceil(seconds / (maxPoints - 1))) : grid
  return chosen
}

type At = { nowMs: number; incidentBeganMs: number | null }

export async function readCounts(
  reader: LogReader,
  ask: AskSource,
  query: LogQuery,
  range: Range,
  at: At,
): Promise<ToolReading> {
  const by = query.count?.by ?? []
  const grid = chooseGrid(query, range)
  const newSinceMs = newSince(range, at.incidentBeganMs)
  const earlier = { fromMs: rangeBefore(range, newSinceMs).fromMs, untilMs: Math.min(newSinceMs, range.untilMs) }
  const whole = { ...earlier, stepSeconds: Math.max(1, Math.round((earlier.untilMs - earlier.fromMs) / 1_000)) }
  const [found, before] = await Promise.all([
    reader.countBy(ask, query, { by, grid, window: range }),
    reader.countBy(ask, query, { by, grid: whole, window: earlier }).catch(() => null),
  ])
  refuseWrong(found.series, grid)
  const seen = found.series.filter((each) => sumOf(each) > 0)
  const unknownBy = by.filter((name) => seen.every(({ labels }) => !labels[name] && !labels[name.replaceAll('.', '_')]))
  const names = await (seen.length === 0
    ? findUnknownLabels(reader, ask, query, range)
    : { unknown: [], there: unknownBy.length > 0 ? await reader.listLabels(ask, range).catch(() => null) : null })
  const isCompared = before !== null && before.partial.length === 0 && found.partial.length === 0
  const known = isCompared ? new Set(before.series.map(toKey)) : null
  return summarizeCounts(query, { ...found, grid, range, known, newSinceMs, unknownBy, names })
}

/** Refuses impossible counts, because they prove neither lines nor their absence. */
function refuseWrong(series: readonly CountedSeries[], { fromMs, untilMs }: Range): void {
  const refuse = (text: string) => {
    throw new SourceError('BAD_ANSWER', `the response has ${text}`)
  }
  for (const { points } of series) {
    if (points.some(([ms, count]) => !Number.isFinite(ms) || !Number.isSafeInteger(count) || count < 0))
      refuse('a count or a time that cannot be read')
    if (points.some(([ms]) => ms < fromMs || ms >= untilMs)) refuse('a count of another time than was asked for')
    if (new Set(points.map(([ms]) => ms)).size < points.length) refuse('two counts of one step')
  }
  if (new Set(series.map(toKey)).size < series.length) refuse('the same labels twice')
}

const toKey = ({ labels }: CountedSeries) => JSON.stringify(Object.entries(labels).sort())
const toTime = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
const sumOf = ({ points }: CountedSeries) => points.reduce((sum, [, count]) => sum + count, 0)

type Found = {
  series: CountedSeries[]
  partial: string[]
  grid: Counting['grid']
  /** The series that had lines before the window. Null if the times cannot be compared. */
  known: ReadonlySet<string> | null
  newSinceMs: number
  /** Labels of `by` that no counted line has. */
  unknownBy: readonly string[]
  names: { there: readonly string[] | null; unknown: readonly string[] }
  range: Range
}

function summarizeCounts(query: LogQuery, found: Found): ToolReading {
  const { grid, range, partial, known, newSinceMs, unknownBy, names } = found
  const seen = found.series.filter((each) => sumOf(each) > 0).sort((a, b) => sumOf(b) - sumOf(a))
  const shown = seen.slice(0, maxSeries)
  const items = shown.map((each) => {
    const filled = each.points.filter(([, count]) => count > 0).sort((a, b) => a[0] - b[0])
    const [maxAt, max] = filled.reduce((best, point) => (point[1] > best[1] ? point : best))
    const [first, last] = [filled[0]?.[0] ?? maxAt, filled.at(-1)?.[0] ?? maxAt]
    const isNew = known !== null && !known.has(toKey(each)) && last + grid.stepSeconds * 1_000 > newSinceMs
    // Begins no earlier than the window, because the first step may begin before it.
    const at = (ms: number) => toTime(Math.max(ms, range.fromMs))
    const times = { maxAt: at(maxAt), first: at(first), last: at(last) }
    return { labels: each.labels, total: sumOf(each), ...(isNew && { isNew }), max, ...times }
  })
  const summary = fitSummary(items, (kept) => ({
    ...(partial.length > 0 && { partial }),
    asked: toAsked(query),
    window: query.window,
    from: toTime(range.fromMs),
    until: toTime(range.untilMs),
    stepSeconds: grid.stepSeconds,
    ...(grid.fromMs < range.fromMs && { firstStepIncomplete: true }),
    ...(grid.untilMs > range.untilMs && { lastStepIncomplete: true }),
    lines: seen.reduce((sum, each) => sum + sumOf(each), 0),
    seriesFound: seen.length,
    series: kept,
    ...(seen.length > kept.length && { otherSeries: seen.length - kept.length }),
    ...(seen.length > kept.length && {
      otherLines: seen.slice(kept.length).reduce((sum, each) => sum + sumOf(each), 0),
    }),
    ...(known === null && { notCompared: 'the window before' }),
    ...(seen.length > 0 && unknownBy.length > 0 && { withoutLabel: unknownBy }),
    ...(names.unknown.length > 0 && { unknownLabels: names.unknown }),
    ...(names.there && { labelsThere: names.there.slice(0, 30) }),
  }))
  return {
    summary,
    whole: shown.map((each) => JSON.stringify({ labels: each.labels, points: toPoints(each, grid) })).join('\n'),
    // Is not empty if the query names an unknown label: such a query finds nothing anyway.
    isEmpty: seen.length === 0 && names.unknown.length === 0,
    isPartial: partial.length > 0,
    ...(seen.length > shown.length && { isCut: true }),
  }
}

/** Writes each step by its beginning in seconds. A step without lines has 0. */
function toPoints({ points }: CountedSeries, { fromMs, untilMs, stepSeconds }: Counting['grid']): [number, number][] {
  const counts = new Map(points)
  const steps = Math.round((untilMs - fromMs) / 1_000 / stepSeconds)
  return Array.from({ length: steps }, (_, at) => {
    const ms = fromMs + at * stepSeconds * 1_000
    return [ms / 1_000, counts.get(ms) ?? 0]
  })
}

/** Describes how many lines were counted, and which group is the largest. */
export function sayCounts(summary: Record<string, unknown>, asked: Record<string, unknown>): string {
  const about = nameAsked(asked)
  const lines = Number(summary.lines ?? 0)
  const span = `from ${toText(summary.from)} until ${toText(summary.until)}`
  const [first] = toList(summary.series)
  if (lines === 0 || !first)
    return `${about}: ${summary.partial === undefined ? 'no line' : 'nothing seen'} ${span}${sayUnknown(summary)}`
  const names = Object.entries(first.labels as object).map(([name, value]) => `${name} ${toText(value)}`)
  const most = names.length > 0 ? `; most ${names.join(', ')}: ${toText(first.total)}` : ''
  const unknown = Array.isArray(summary.withoutLabel) ? summary.withoutLabel.map(toText).join(', ') : ''
  const without = unknown === '' ? '' : `; no counted line has ${unknown}`
  return `${about}: ${formatCount(lines, 'line')} ${span}${most}${without}, at most ${toText(first.max)} in ${toText(summary.stepSeconds)} s at ${toText(first.maxAt)}`
}
