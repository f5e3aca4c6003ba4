import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { toList, toText } from '../../domain/say.ts'
import { fitSummary } from '../kind.ts'
import type { Remarks } from './rule.ts'

/**
 * The unit of what an expression computes, as far as the name of its metric says it (https://prometheus.io/docs/practices/naming/): bytes or seconds.
 * Null where nothing says it, such as a rate or a quotient.
 */
export function findUnit(promql: string): string | null {
  const top = parser.parse(promql).topNode.firstChild
  return top ? unitOfNode(top, promql) : null
}

/** Aggregations and functions whose result has the unit of their argument. */
const keepsUnit =
  /^(?:sum|avg|min|max|quantile|topk|bottomk|(?:avg|min|max|sum|last|quantile)_over_time|abs|ceil|floor|round|clamp(?:_min|_max)?|delta|idelta|increase|sort(?:_desc)?|predict_linear|label_replace|label_join)$/

function unitOfNode(node: SyntaxNode, text: string): string | null {
  const words = text.slice(node.from, node.to)
  switch (node.name) {
    case 'VectorSelector': {
      const [, unit = null] = /^[a-zA-Z_:][\w:]*?_(bytes|seconds)(?:_total|_sum)?(?=[{\s]|$)/.exec(words) ?? []
      return unit
    }
    case 'AggregateExpr':
    case 'FunctionCall': {
      const [, name = ''] = /^\s*([a-z_]+)/i.exec(words) ?? []
      if (name === 'time') return 'seconds'
      const arguments_ = node.getChild('FunctionCallBody')
      return keepsUnit.test(name) && arguments_ ? unitOfAny(arguments_, text) : null
    }
    case 'BinaryExpr': {
      const [left, right] = [node.firstChild, node.lastChild]
      const isSum = node.getChild('Add') !== null || node.getChild('Sub') !== null
      if (!left || !right || !isSum) return null
      const unit = unitOfNode(left, text)
      return unit === unitOfNode(right, text) ? unit : null
    }
    default:
      return unitOfAny(node, text)
  }
}

/** Of the first thing below that has one: what is in parentheses, a range, an offset. */
function unitOfAny(node: SyntaxNode, text: string): string | null {
  for (let child = node.firstChild; child; child = child.nextSibling) {
    const unit = unitOfNode(child, text)
    if (unit) return unit
  }
  return null
}

/** Seconds since the epoch, and a value; what is no number (`NaN`, `+Inf`) is left out. */
export type Point = [seconds: number, value: number]
export type Series = { labels: Record<string, string>; points: Point[] }

/** What a series did, in the words of somebody who looks at a chart. */
type SeriesSummary = {
  labels: Record<string, string>
  /** Of the numbers beside it, where the name of the metric says it. */
  unit?: string
  last: number
  min: number
  max: number
  mean: number
  /** Change for each hour, by the straight line through all points. */
  perHour: number
  /** When its level changed most, if it did. */
  changedAt?: string
  before?: number
  after?: number
  /** The mean of the same window, a day and a week before. */
  dayBefore?: number
  weekBefore?: number
}

/** What was answered. A summary begins with what the server says of it. */
type Seen = { series: readonly Series[]; remarks: Remarks }

type Compared = { day: Map<string, number> | null; week: Map<string, number> | null }

/** The key of a series among others. */
export const seriesKey = ({ labels }: Pick<Series, 'labels'>): string => JSON.stringify(Object.entries(labels).sort())

export const meanOf = (points: readonly Point[]): number =>
  points.reduce((sum, [, value]) => sum + value, 0) / Math.max(1, points.length)

/**
 * The five series that moved most, with what all series share said once. Nothing of it needs a model; 2 kB at most.
 */
export function summarizeSeries(
  { series, remarks }: Seen,
  asked: { promql: string; window: string; stepSeconds: number; untilMs: number },
  compared: Compared,
): Record<string, unknown> {
  const shared = findShared(series)
  const known = series.filter(({ points }) => points.length > 0)
  const moved = known.map((each) => ({ each, by: movement(each.points) })).sort((a, b) => b.by - a.by)
  const unit = findUnit(asked.promql)
  const shown = moved
    .slice(0, 5)
    .map(({ each }): SeriesSummary => ({ ...summarizeOne(each, shared, compared), ...(unit && { unit }) }))
  const head = {
    ...remarks,
    promql: asked.promql,
    window: asked.window,
    until: toTime(asked.untilMs / 1000),
    stepSeconds: asked.stepSeconds,
    seriesFound: series.length,
    ...(Object.keys(shared).length > 0 && { sharedLabels: shared }),
    ...missing(compared),
  }
  return fitSummary(shown, (kept) => ({
    ...head,
    // What moved most comes first.
    series: kept,
    ...(series.length > kept.length && { notShown: series.length - kept.length }),
  }))
}

/** An instant query: values by size. */
export function summarizeValues({ series, remarks }: Seen, promql: string, untilMs: number): Record<string, unknown> {
  const shared = findShared(series)
  const unit = findUnit(promql)
  const values = series
    .flatMap(({ labels, points }) => {
      const last = points.at(-1)
      return last ? [{ labels: without(labels, shared), value: round(last[1]), ...(unit && { unit }) }] : []
    })
    .sort((a, b) => b.value - a.value)
  return fitSummary(values.slice(0, 30), (kept) => ({
    ...remarks,
    promql,
    at: toTime(untilMs / 1000),
    seriesFound: series.length,
    ...(Object.keys(shared).length > 0 && { sharedLabels: shared }),
    values: kept,
    ...(series.length > kept.length && { notShown: series.length - kept.length }),
  }))
}

/** The series that moved most, in words: `…: last 0.97, from 0.2 to 0.98, level changed at … from 0.3 to 0.97`. */
export function saySeries(summary: Record<string, unknown>, { promql }: { promql: string }): string {
  const found = Number(summary.seriesFound ?? 0)
  const [first] = toList(summary.series ?? summary.values)
  if (found === 0 || !first) return `${promql}: no series`
  const labels = Object.values({ ...(summary.sharedLabels as object), ...(first.labels as object) }).map(toText)
  const name = labels.filter(Boolean).slice(0, 3).join(' ')
  const unit = toText(first.unit) && ` ${toText(first.unit)}`
  const range =
    first.last === undefined
      ? `is ${toText(first.value)}${unit}`
      : `is ${toText(first.last)}${unit}, was ${toText(first.min)} to ${toText(first.max)}`
  const change =
    first.changedAt === undefined
      ? ''
      : `; it changed at ${toText(first.changedAt)} from ${toText(first.before)} to ${toText(first.after)}`
  return `${promql}: ${name ? `${name} ` : 'it '}${range}${change}${found > 1 ? ` (${found} series)` : ''}`
}

function missing({ day, week }: Compared): Record<string, string> {
  const none = [...(day ? [] : ['a day before']), ...(week ? [] : ['a week before'])]
  return none.length > 0 ? { notCompared: none.join(', ') } : {}
}

function summarizeOne(series: Series, shared: Record<string, string>, { day, week }: Compared): SeriesSummary {
  const values = series.points.map(([, value]) => value)
  const key = seriesKey(series)
  const [dayBefore, weekBefore] = [day?.get(key), week?.get(key)]
  return {
    labels: without(series.labels, shared),
    last: round(values.at(-1) as number),
    min: round(Math.min(...values)),
    max: round(Math.max(...values)),
    mean: round(meanOf(series.points)),
    perHour: round(slope(series.points) * 3_600),
    ...findChange(series.points),
    ...(dayBefore !== undefined && { dayBefore: round(dayBefore) }),
    ...(weekBefore !== undefined && { weekBefore: round(weekBefore) }),
  }
}

/** How far it went within the window, relative to its size. */
function movement(points: readonly Point[]): number {
  const values = points.map(([, value]) => value)
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return (high - low) / (Math.max(Math.abs(high), Math.abs(low)) || 1)
}

function slope(points: readonly Point[]): number {
  if (points.length < 2) return 0
  const middle = points.reduce((sum, [at]) => sum + at, 0) / points.length
  const mean = meanOf(points)
  let [above, below] = [0, 0]
  for (const [at, value] of points) {
    above += (at - middle) * (value - mean)
    below += (at - middle) ** 2
  }
  return below === 0 ? 0 : above / below
}

/** The split that explains most of the spread; nothing where no split explains half of it. */
function findChange(points: readonly Point[]): { changedAt?: string; before?: number; after?: number } {
  if (points.length < 6) return {}
  const total = spread(points)
  if (total === 0) return {}
  let best = { at: 0, left: Number.POSITIVE_INFINITY }
  for (let at = 2; at <= points.length - 2; at += 1) {
    const left = spread(points.slice(0, at)) + spread(points.slice(at))
    if (left < best.left) best = { at, left }
  }
  // A straight line halves its spread three quarters by one cut: a change has to explain more than that.
  if (best.left > total * 0.2) return {}
  const first = points[best.at] as Point
  return {
    changedAt: toTime(first[0]),
    before: round(meanOf(points.slice(0, best.at))),
    after: round(meanOf(points.slice(best.at))),
  }
}

function spread(points: readonly Point[]): number {
  const mean = meanOf(points)
  return points.reduce((sum, [, value]) => sum + (value - mean) ** 2, 0)
}

function findShared(series: readonly Series[]): Record<string, string> {
  const [first] = series
  if (!first) return {}
  return Object.fromEntries(
    Object.entries(first.labels).filter(([name, value]) => series.every(({ labels }) => labels[name] === value)),
  )
}

const without = (labels: Record<string, string>, shared: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => !(name in shared)))

/** Four significant figures. */
const round = (value: number): number => Number(value.toPrecision(4))

const toTime = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z')
