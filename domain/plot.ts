/** A series of samples for a chart. Each point has the seconds since 1970 and a value. */
export type ChartSeries = { labels: Record<string, string>; points: [number, number][] }
/**
 * An event to mark in a chart. `word`: the short label. `detail`: the full text. `isAlert`: the
 * event is an alert that began to fire.
 */
export type ChartMark = { at: number; word: string; detail: string; isAlert?: boolean }
type Range = [from: number, to: number]
/**
 * The summary of a query of metrics. `figures`: values that code computed from some of the series,
 * with the gaps of the series.
 */
export type Reading = {
  promql: string
  unit: string | null
  range: Range | null
  stepSeconds: number | null
  figures: { labels: Record<string, string>; gaps: Range[] }[]
}
export type PlottedSeries = { name: string; points: [number, number][]; pieces: [number, number][][]; gaps: Range[] }

/** Maximum number of lines in a chart. */
const maxLines = 6

const toSeconds = (iso: unknown): number => Date.parse(String(iso)) / 1_000
const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** Reads the summary of a query of metrics. Missing parts become null or empty. */
export function readSummary(summary: Record<string, unknown>): Reading {
  const series = (Array.isArray(summary.series) ? summary.series : []) as Record<string, unknown>[]
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(String(summary.window)) ?? []
  const until = toSeconds(summary.until)
  const from = until - Number(count) * (unitSeconds[unit] ?? Number.NaN)
  return {
    promql: String(summary.promql ?? ''),
    unit: typeof series[0]?.unit === 'string' ? series[0].unit : null,
    range: Number.isFinite(from) ? [from, until] : null,
    stepSeconds: Number(summary.stepSeconds) || null,
    figures: series.map(({ labels, gaps }) => ({
      labels: { ...(summary.sharedLabels as object), ...(labels as object) },
      gaps: (Array.isArray(gaps) ? gaps : []).map(([begin, end]) => [toSeconds(begin), toSeconds(end)]),
    })),
  }
}

/**
 * Cuts the series at their gaps. Returns the drawn series, the time range of the chart, and how
 * many series are not drawn.
 */
export function layOut(all: readonly ChartSeries[], reading: Reading) {
  const chosen = all.filter(({ points }) => points.length > 1).slice(0, maxLines)
  const times = chosen.flatMap(({ points }) => points.map(([at]) => at))
  const [first, last] = getRange(times)
  const range: Range = reading.range
    ? [Math.min(first, reading.range[0]), Math.max(last, reading.range[1])]
    : [first, last]
  const shared = Object.entries(chosen[0]?.labels ?? {}).filter(([name, value]) =>
    chosen.every(({ labels }) => labels[name] === value),
  )
  const isShared = new Set(chosen.length > 1 ? shared.map(([name]) => name) : [])
  const drawn = chosen.map(({ labels, points }): PlottedSeries => {
    const told = reading.figures.find((each) =>
      Object.entries(each.labels).every(([key, value]) => labels[key] === value),
    )
    const gaps = findGaps(points, range, { stepSeconds: reading.stepSeconds, told: told?.gaps ?? [] })
    const own = Object.fromEntries(Object.entries(labels).filter(([name]) => !isShared.has(name)))
    return { name: describeLabels(own), points, gaps, pieces: cutAt(points, gaps) }
  })
  const [one, ...others] = drawn
  // Ranges of time in which no drawn series has a sample.
  const empty = (one?.gaps ?? []).filter(([from, to]) =>
    others.every(({ gaps }) => gaps.some((gap) => gap[0] <= from && to <= gap[1])),
  )
  return { drawn, range, empty, left: all.length - drawn.length }
}

/**
 * Finds the gaps of a series: the gaps in its figures, and the gaps between points that are further
 * apart than the step.
 */
function findGaps(
  points: readonly [number, number][],
  [from, to]: Range,
  { stepSeconds, told }: { stepSeconds: number | null; told: Range[] },
): Range[] {
  const times = [from, ...points.map(([at]) => at), to]
  const steps = times.slice(1).map((at, index) => at - (times[index] ?? at))
  const step = stepSeconds ?? steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0
  const wide = steps.flatMap((width, index): Range[] =>
    width > 1.5 * step ? [[times[index] ?? from, (times[index] ?? from) + width]] : [],
  )
  const all = [...told, ...wide]
  const isWithin = (inner: Range, outer: Range) => outer[0] <= inner[0] && inner[1] <= outer[1]
  return all
    .filter(
      (gap, at) =>
        !all.some((each, other) => other !== at && isWithin(gap, each) && !(isWithin(each, gap) && at < other)),
    )
    .sort((a, b) => a[0] - b[0])
}

/**
 * Cuts the points of a series at the gaps. A server repeats the last value at the beginning of a
 * gap, so a point inside a gap is not a sample.
 */
function cutAt(points: readonly [number, number][], gaps: readonly Range[]): [number, number][][] {
  const pieces: [number, number][][] = []
  let before: number | null = null
  for (const point of points) {
    const [at] = point
    if (gaps.some(([from, to]) => from < at && at < to)) continue
    const isCut = before === null || gaps.some(([from, to]) => (before ?? 0) <= from && to <= at)
    if (isCut) pieces.push([point])
    else pieces.at(-1)?.push(point)
    before = at
  }
  return pieces
}

/** Returns the value of a series at a time; null if it has no sample there. */
export function valueAt({ pieces }: PlottedSeries, at: number): number | null {
  const piece = pieces.find((each) => (each[0]?.[0] ?? 0) <= at && at <= (each.at(-1)?.[0] ?? 0))
  return piece?.findLast(([time]) => time <= at)?.[1] ?? null
}

/**
 * Finds the threshold of an alert rule if the chart draws the rule's expression. The query may
 * select fewer series than the rule.
 */
export function findLimit(rule: { expression: string; threshold?: unknown } | null, promql: string) {
  const [, sign = '', number = ''] = /^(\S+) (.+)$/.exec(String(rule?.threshold ?? '')) ?? []
  const chosen = listMatchers(promql)
  const isSame =
    rule !== null &&
    toBare(rule.expression) === toBare(`${promql} ${sign} ${number}`) &&
    listMatchers(rule.expression).every((matcher) => chosen.includes(matcher))
  return isSame && number !== '' && Number.isFinite(Number(number)) ? { sign, value: Number(number) } : null
}

const toBare = (expression: string): string => expression.replace(/\{[^{}]*\}|\s+/g, '')
const listMatchers = (expression: string): string[] =>
  [...expression.matchAll(/(\w+)\s*([=!]~?|!=)\s*("[^"]*"|'[^']*')/g)].map(([, ...parts]) => parts.join(''))

function describeLabels({ __name__: name = '', ...labels }: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`)
  return [name, ...pairs].filter(Boolean).join(' ') || 'all'
}

export function getRange(values: readonly number[]): Range {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return [low, high]
}

/**
 * Widens the range of a constant line, so that the line is drawn in the middle. A line at zero is
 * drawn at the bottom.
 */
export const widen = ([low, high]: Range): Range =>
  low === high
    ? [low === 0 ? 0 : low - Math.max(1, Math.abs(low) / 2), high + Math.max(1, Math.abs(high) / 2)]
    : [low, high]

/**
 * Returns the position of a value in a range, 0 to 1. Computes with halves, so that the largest
 * numbers do not overflow.
 */
export const shareOf = ([low, high]: Range, value: number): number => (value / 2 - low / 2) / (high / 2 - low / 2)

const prefixes: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e4, 'k'],
]

/**
 * Formats a value with three digits and a prefix for thousands. A number that is too long becomes a
 * power of ten.
 */
export function formatValue(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e16 || (size > 0 && size < 1e-6)) return value.toExponential(2)
  const [factor, prefix] = prefixes.find(([each]) => size >= each) ?? [1, '']
  const scaled = value / (prefix === 'k' ? 1e3 : factor)
  return `${scaled.toLocaleString('en', { maximumSignificantDigits: 3 })}${prefix && ` ${prefix}`}`
}
