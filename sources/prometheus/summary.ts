import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { toList, toText } from '../../domain/say.ts'
import { fitSummary } from '../kind.ts'
import { type Figures, meanOf } from './figures.ts'
import type { Answered, Point, Series } from './query.ts'
import type { Remarks } from './rule.ts'

/**
 * Finds the unit of an expression from its metric's name
 * (https://prometheus.io/docs/practices/naming/): bytes or seconds. Null if the unit is unknown, as
 * for a rate or quotient.
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

/** Finds the first unit below a node, such as parentheses, a range or an offset. */
function unitOfAny(node: SyntaxNode, text: string): string | null {
  for (let child = node.firstChild; child; child = child.nextSibling) {
    const unit = unitOfNode(child, text)
    if (unit) return unit
  }
  return null
}

/** A series with its figures, from all its samples or from points. */
export type Described = Series & {
  figures: Figures
  change: LevelChange | null
  dayBefore?: number | undefined
  weekBefore?: number | undefined
}

/** The query that a summary describes, and the server's remarks. */
type Asked = { promql: string; window: string; stepSeconds: number; untilMs: number; remarks: Remarks }

/** Whether the window could be compared with the equal window a day and a week before. */
type Compared = { day: boolean; week: boolean }

/**
 * Summarizes the series that moved most in at most 2 kB. Labels that all series share are written
 * once.
 */
export function summarizeSeries(
  shown: readonly Described[],
  all: readonly Series[],
  { promql, window, stepSeconds, untilMs, remarks }: Asked,
  compared: Compared,
): Record<string, unknown> {
  const shared = findShared(all)
  const unit = findUnit(promql)
  const ofPoints = shown.filter(({ figures }) => figures.ofPoints).length
  const isOfPoints = ofPoints > 0 && ofPoints === shown.length
  const items = shown.map((each) => ({
    ...summarizeOne(each, shared),
    ...(!isOfPoints && each.figures.ofPoints && { ofPoints: true }),
    ...(unit && { unit }),
  }))
  const head = {
    ...remarks,
    promql,
    window,
    until: toTime(untilMs / 1000),
    stepSeconds,
    seriesFound: all.length,
    ...(Object.keys(shared).length > 0 && { sharedLabels: shared }),
    ...(isOfPoints && { ofPoints: `figures are from points ${stepSeconds} s apart; values between them are not seen` }),
    ...missing(compared),
  }
  return fitSummary(items, (kept) => ({
    ...head,
    // Keeps the first series, which moved most.
    series: kept,
    ...(all.length > kept.length && { notShown: all.length - kept.length }),
  }))
}

/** Summarizes the result of an instant query, with values sorted by size. */
export function summarizeValues(
  { series, remarks }: Answered,
  promql: string,
  untilMs: number,
): Record<string, unknown> {
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

/**
 * Describes the series that moved most: `…: last 0.97, from 0.2 to 0.98, level changed at … from
 * 0.3 to 0.97`.
 */
export function saySeries(
  summary: Record<string, unknown>,
  { promql, until }: { promql: string; until?: string | undefined },
): string {
  const found = Number(summary.seriesFound ?? 0)
  const [first] = toList(summary.series ?? summary.values)
  if (found === 0 || !first) return `${promql}: ${summary.partial ? 'nothing seen' : 'no series'}`
  const labels = Object.values({ ...(summary.sharedLabels as object), ...(first.labels as object) }).map(toText)
  const name = labels.filter(Boolean).slice(0, 3).join(' ')
  const unit = toText(first.unit) && ` ${toText(first.unit)}`
  const ended = first.endedAt === undefined ? '' : ` until ${toText(first.endedAt)}`
  // Uses "was" for a past moment, because its value says nothing about now.
  const verb = ended || until !== undefined ? 'was' : 'is'
  const at = until === undefined || ended ? '' : ` at ${toText(summary.until ?? summary.at)}`
  const range =
    first.last === undefined
      ? `${verb} ${toText(first.value)}${unit}${at}`
      : `${verb} ${toText(first.last)}${unit}${ended}${at}, was ${toText(first.min)} to ${toText(first.max)}`
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

/** Describes a series as a reader of its chart would. Each extreme has its time. */
function summarizeOne({ labels, figures, change, dayBefore, weekBefore }: Described, shared: Record<string, string>) {
  const { last, lastAt, min, minAt, max, maxAt, mean, slope, beganAt, endedAt, gaps } = figures
  const isFlat = Math.abs(slope) * 86_400 <= noise * Math.max(Math.abs(min), Math.abs(max))
  return {
    labels: without(labels, shared),
    last: round(last),
    ...timeOf('lastAt', lastAt),
    min: round(min),
    ...timeOf('minAt', minAt),
    max: round(max),
    ...timeOf('maxAt', maxAt),
    mean: round(mean),
    // Converts the slope to one hour.
    perHour: isFlat ? 0 : round(slope * 3_600),
    ...timeOf('beganAt', beganAt),
    ...timeOf('endedAt', endedAt),
    ...(gaps && { gaps: gaps.map((gap) => gap.map(toTime)) }),
    ...(change && { changedAt: toTime(change.at), before: round(change.before), after: round(change.after) }),
    ...(dayBefore !== undefined && { dayBefore: round(dayBefore) }),
    ...(weekBefore !== undefined && { weekBefore: round(weekBefore) }),
  }
}

const timeOf = (name: string, seconds: number | null | undefined): Record<string, string> =>
  seconds == null ? {} : { [name]: toTime(seconds) }

/** The largest relative difference that may be a rounding error of floating-point sums. */
const noise = 1e-9

/**
 * Returns how much a series moved: the range of its values in the window, relative to their size.
 */
export function movementOf({ min, max }: Figures): number {
  return (max - min) / (Math.max(Math.abs(max), Math.abs(min)) || 1)
}

/** The largest change of a series' level. It began at `from` or later, and was complete at `at`. */
export type LevelChange = { from: number; at: number; before: number; after: number }

/**
 * Finds the split of points that explains most of their spread. Null if no split explains enough.
 */
export function findChange(points: readonly Point[]): LevelChange | null {
  if (points.length < 6) return null
  const total = spread(points)
  let best = { at: 0, left: Number.POSITIVE_INFINITY }
  for (let at = 2; at <= points.length - 2; at += 1) {
    const left = spread(points.slice(0, at)) + spread(points.slice(at))
    if (left < best.left) best = { at, left }
  }
  // Requires a split to explain more than the three quarters that it explains of a straight line's
  // spread.
  if (best.left > total * 0.2) return null
  const [before, after] = [meanOf(points.slice(0, best.at)), meanOf(points.slice(best.at))]
  if (Math.abs(after - before) <= noise * Math.max(Math.abs(before), Math.abs(after))) return null
  const [[from], [at]] = points.slice(best.at - 1) as [Point, Point]
  return { from, at, before, after }
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

const round = (value: number): number => Number(value.toPrecision(4))

const toTime = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z')
