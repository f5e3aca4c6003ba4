/** A series as it was read: seconds since 1970 and a value. */
export type ChartSeries = { labels: Record<string, string>; points: [number, number][] }
/** An event at a moment, in a word; `detail` in full. `isAlert`: the beginning of what fires. */
export type ChartMark = { at: number; word: string; detail: string; isAlert?: boolean }
type Range = [from: number, to: number]
/** `figures`: what code read of some series, with the times between which they have no sample. */
export type Reading = {
  promql: string
  unit: string | null
  range: Range | null
  stepSeconds: number | null
  figures: { labels: Record<string, string>; gaps: Range[] }[]
}
export type PlottedSeries = { name: string; points: [number, number][]; pieces: [number, number][][]; gaps: Range[] }

/** More lines than this tell nothing apart. */
const maxLines = 6

const toSeconds = (iso: unknown): number => Date.parse(String(iso)) / 1_000
const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** What a summary of series says of them; whatever of it is missing is not known. */
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

/** Series cut where they have no samples, the window that all share, and what is not drawn. */
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
  // A time is empty where nothing that is drawn has a sample.
  const empty = (one?.gaps ?? []).filter(([from, to]) =>
    others.every(({ gaps }) => gaps.some((gap) => gap[0] <= from && to <= gap[1])),
  )
  return { drawn, range, empty, left: all.length - drawn.length }
}

/** Gaps without a sample: as the figures say, and between points further apart than the step. */
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

/** A server fills a gap's beginning with the value before it: no point within one is a sample. */
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

/** The sample that holds at a moment, or null where there is none. */
export function valueAt({ pieces }: PlottedSeries, at: number): number | null {
  const piece = pieces.find((each) => (each[0]?.[0] ?? 0) <= at && at <= (each.at(-1)?.[0] ?? 0))
  return piece?.findLast(([time]) => time <= at)?.[1] ?? null
}

/**
 * The threshold of an alert, where a chart draws what its rule computes, by the words of both. A
 * query may select less than the rule.
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

/** A level line stands in the middle; one at nothing at the foot: counts are never less. */
export const widen = ([low, high]: Range): Range =>
  low === high
    ? [low === 0 ? 0 : low - Math.max(1, Math.abs(low) / 2), high + Math.max(1, Math.abs(high) / 2)]
    : [low, high]

/**
 * A value's place between two others, 0 to 1; by halves, so that the largest numbers have a
 * difference.
 */
export const shareOf = ([low, high]: Range, value: number): number => (value / 2 - low / 2) / (high / 2 - low / 2)

const prefixes: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e4, 'k'],
]

/** Three figures with the prefix of thousands; a power of ten for a row of zeros. */
export function formatValue(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e16 || (size > 0 && size < 1e-6)) return value.toExponential(2)
  const [factor, prefix] = prefixes.find(([each]) => size >= each) ?? [1, '']
  const scaled = value / (prefix === 'k' ? 1e3 : factor)
  return `${scaled.toLocaleString('en', { maximumSignificantDigits: 3 })}${prefix && ` ${prefix}`}`
}
