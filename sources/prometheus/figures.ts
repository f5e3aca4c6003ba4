import type { AskSource } from '../kind.ts'
import {
  type Answered,
  type Grid,
  joinParts,
  type Point,
  type QueryPart,
  queryInstant,
  queryRange,
  type Series,
  seriesKey,
  splitParts,
} from './query.ts'

/**
 * Figures of a series over all its samples. The server computes the figures over the window, and
 * finds the time of an extreme in a part of the window. The points of a range are single samples,
 * and show neither.
 */
export type Figures = {
  last: number
  /** The time of the newest sample. Null as long as only the part of the window is known. */
  lastAt: number | null
  min: number
  max: number
  mean: number
  /** The slope per second, by the regression line. */
  slope: number
  minAt?: number
  maxAt?: number
  beganAt?: number
  endedAt?: number
  gaps?: Gap[]
  /** True if the figures were computed from the points of a range. */
  ofPoints?: true
}

/** A gap in a series: the time of the last sample before it, and of the first sample after it. */
type Gap = readonly [from: number, to: number]

type Window = { untilSeconds: number; windowSeconds: number }

/**
 * Reads the figures of all series of these selectors in one query, by the series' keys.
 * `windowSeconds` is 1 or more.
 */
export async function readFigures(ask: AskSource, selectors: readonly string[], window: Window): Promise<FiguresRead> {
  const { untilSeconds, windowSeconds } = window
  const parts = selectors.flatMap((text): QueryPart[] => [
    ...['last', 'min', 'max', 'avg'].map((name): QueryPart => [name, `${name}_over_time(${text}[${windowSeconds}s])`]),
    ['slope', `deriv(${text}[${windowSeconds}s])`],
    ['lastAt', `timestamp(${text})`],
  ])
  const answer = await queryInstant(ask, joinParts(parts), untilSeconds)
  const found = splitParts(answer)
  const valuesOf = (name: string) => toValues(found.get(name) ?? [])
  const [min, max, mean, slope, lastAt] = ['min', 'max', 'avg', 'slope', 'lastAt'].map(valuesOf)
  const figures = new Map<string, Figures>()
  const series: Series[] = []
  for (const each of found.get('last') ?? []) {
    const [key, last] = [seriesKey(each), each.points.at(-1)?.[1]]
    const [low, high, middle] = [min?.get(key), max?.get(key), mean?.get(key)]
    if (last === undefined || low === undefined || high === undefined || middle === undefined) continue
    figures.set(key, {
      last,
      lastAt: lastAt?.get(key) ?? null,
      min: low,
      max: high,
      mean: middle,
      slope: slope?.get(key) ?? 0,
    })
    series.push({ labels: each.labels, points: [] })
  }
  return { figures, series, remarks: answer.remarks }
}
type FiguresRead = { figures: Map<string, Figures>; series: Series[]; remarks: Answered['remarks'] }

/**
 * Reads the mean of each series of these selectors, by the series' keys. Null if the response is
 * partial.
 */
export async function readMeans(
  ask: AskSource,
  selectors: readonly string[],
  { untilSeconds, windowSeconds }: Window,
): Promise<Map<string, number> | null> {
  const parts = selectors.map((text): QueryPart => ['mean', `avg_over_time(${text}[${windowSeconds}s])`])
  const answer = await queryInstant(ask, joinParts(parts), untilSeconds)
  return answer.remarks.partial ? null : toValues(splitParts(answer).get('mean') ?? [])
}

const toValues = (series: readonly Series[]): Map<string, number> =>
  new Map(series.flatMap((each) => (each.points[0] ? [[seriesKey(each), each.points[0][1]] as const] : [])))

/** A series whose times are to be found. `change`: the points between which its level changed. */
type SoughtSeries = {
  selector: string
  figures: Figures
  change: { from: number; to: number; level: number; isRise: boolean } | null
}
type TimedFigures = { figures: Figures; changedAt?: number }

/**
 * Number of evaluations with which a part of the window is searched for a time, and the most
 * evaluations for series that are scraped often.
 */
const evaluations = [2_000, 10_000] as const
/** The most characters of a query, because VictoriaMetrics allows 16 kB. */
const maxQueryCharacters = 14_000
/** The least seconds without a sample after which a series counts as ended. */
const minLateSeconds = 60
const maxGaps = 3

/**
 * Finds the times of all series' figures with two queries. The first query finds the part of the
 * window that contains a time, and the second finds the time. A time that is not found is left out.
 */
export async function findTimes(
  ask: AskSource,
  sought: readonly SoughtSeries[],
  window: Window & { count: number },
): Promise<TimedFigures[]> {
  const { untilSeconds, windowSeconds } = window
  // Rounds to whole milliseconds, as a query writes a range.
  const step = Math.ceil((windowSeconds * 1_000) / window.count) / 1_000
  const range = `[${Math.round(step * 1_000)}ms]`
  const parts = sought.flatMap(({ selector }, at): QueryPart[] =>
    ['min', 'max', 'count'].map((name) => [`${name}-${at}`, `${name}_over_time(${selector}${range})`]),
  )
  const grid: Grid = { end: untilSeconds, step, count: Math.ceil(windowSeconds / step) }
  const answered = splitParts(await queryRange(ask, joinParts(parts), grid))
  const pointsOf = (name: string): Point[] => answered.get(name)?.[0]?.points ?? []
  const plans = sought.map((each, at) =>
    planTimes(each, { min: pointsOf(`min-${at}`), max: pointsOf(`max-${at}`), count: pointsOf(`count-${at}`) }, grid),
  )
  const times = await askTimes(ask, plans, untilSeconds)
  return sought.map(({ figures }, at) => ({
    ...toFound(figures, plans[at] as Plan, (name) => times.get(`${name}-${at}`)),
  }))
}

/**
 * A search for a time. `expression` returns the time; it is evaluated in a part of the window that
 * ends at `to`.
 */
type Search = { name: string; expression: string; isLast?: boolean; from: number; to: number }
type Plan = {
  searches: Search[]
  resolution: number
  isAlive: boolean
  endOfLast: number
  gaps: { from: number; to: number }[]
  hasBegun: boolean
}

type Parts = { min: Point[]; max: Point[]; count: Point[] }

function planTimes({ selector, figures, change }: SoughtSeries, parts: Parts, grid: Grid): Plan {
  const { step } = grid
  const interval = guessInterval(parts.count, step)
  const search = (name: string, [end]: Point, expression: string, isLast = false): Search[] => [
    { name, expression, isLast, from: end - step, to: end },
  ]
  const when = (condition: string) => `timestamp(${selector}) and (${selector} ${condition})`
  const high = parts.max.find(([, value]) => value >= figures.max)
  const low = parts.min.find(([, value]) => value <= figures.min)
  const there = parts.count
  const silent = Math.max(1, Math.ceil((2.5 * interval) / step))
  const gaps = there
    .slice(1)
    .map(([to], at) => ({ from: (there[at] as Point)[0], to }))
    .filter(({ from, to }) => Math.round((to - from) / step) > silent)
  const [first, last] = [there[0], there.at(-1)]
  const isAlive = figures.lastAt !== null && grid.end - figures.lastAt <= Math.max(minLateSeconds, 4 * interval)
  const hasBegun = first !== undefined && Math.round((first[0] - (grid.end - (grid.count - 1) * step)) / step) >= silent
  const newest = `timestamp(${selector})`
  const kept = gaps
    .toSorted((a, b) => b.to - b.from - (a.to - a.from))
    .slice(0, maxGaps)
    .sort((a, b) => a.from - b.from)
  return {
    resolution: Math.max(
      1,
      Math.min(Math.floor(interval / 2), Math.ceil(step / evaluations[0])),
      Math.ceil(step / evaluations[1]),
    ),
    isAlive,
    endOfLast: last?.[0] ?? grid.end,
    gaps: kept,
    hasBegun,
    searches: [
      ...(high && figures.max !== figures.min ? search('max', high, when(`== ${figures.max}`)) : []),
      ...(low && figures.max !== figures.min ? search('min', low, when(`== ${figures.min}`)) : []),
      ...(figures.lastAt === null && last ? search('last', last, `${newest} <= ${last[0]}`, true) : []),
      ...(change
        ? [
            {
              name: 'change',
              expression: when(`${change.isRise ? '>' : '<'} ${change.level}`),
              from: change.from,
              to: change.to,
            },
          ]
        : []),
      ...(hasBegun && first ? search('began', first, `${newest} > ${first[0] - step}`) : []),
      ...kept.flatMap(({ from, to }, at) => [
        ...search(`from${at}`, [from, 0], `${newest} <= ${from}`, true),
        ...search(`to${at}`, [to, 0], `${newest} > ${to - step}`),
      ]),
    ],
  }
}

/**
 * Estimates the seconds between two samples, from the number of samples in each part of the window.
 */
function guessInterval(counts: readonly Point[], step: number): number {
  const middle = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? step
  const most = middle(counts.map(([, count]) => count))
  return most > 1 ? step / most : middle(counts.slice(1).map(([at], index) => at - (counts[index] as Point)[0]))
}

/** Sends the searches in one query, as many as fit. The first search of each plan has priority. */
async function askTimes(ask: AskSource, plans: readonly Plan[], untilSeconds: number): Promise<Map<string, number>> {
  const all = plans.flatMap(({ searches, resolution }, at) =>
    searches.map((each, rank) => ({ part: toPart(each, resolution, at), rank })),
  )
  let left = maxQueryCharacters
  const parts = all
    .sort((a, b) => a.rank - b.rank)
    .flatMap(({ part }) => {
      left -= part[1].length + 60
      return left < 0 ? [] : [part]
    })
  if (parts.length === 0) return new Map()
  const found = splitParts(await queryInstant(ask, joinParts(parts), untilSeconds))
  return new Map([...found].flatMap(([name, series]) => (series[0]?.points[0] ? [[name, series[0].points[0][1]]] : [])))
}

/**
 * Writes a search as a part of a query. A sample counts until the next sample, so one more step at
 * each end misses no sample.
 */
function toPart({ name, expression, isLast, from, to }: Search, given: number, at: number): QueryPart {
  const resolution = Math.max(given, Math.ceil((to - from) / evaluations[1]))
  const seconds = Math.ceil(to - from) + 2 * resolution
  const fold = isLast ? 'max_over_time' : 'min_over_time'
  const end = Math.round((to + resolution) * 1_000) / 1_000
  return [`${name}-${at}`, `${fold}((${expression})[${seconds}s:${resolution}s] @ ${end})`]
}

function toFound(figures: Figures, plan: Plan, timeOf: (name: string) => number | undefined): TimedFigures {
  const [minAt, maxAt, began, changedAt] = ['min', 'max', 'began', 'change'].map(timeOf)
  const lastAt = figures.lastAt ?? timeOf('last') ?? null
  const gaps = plan.gaps.map(({ from, to }, at): Gap => [timeOf(`from${at}`) ?? from, timeOf(`to${at}`) ?? to])
  return {
    figures: {
      ...figures,
      lastAt,
      ...(minAt !== undefined && { minAt }),
      ...(maxAt !== undefined && { maxAt }),
      ...(plan.hasBegun && began !== undefined && { beganAt: began }),
      ...(!plan.isAlive && { endedAt: lastAt ?? plan.endOfLast }),
      ...(gaps.length > 0 && { gaps }),
    },
    ...(changedAt !== undefined && { changedAt }),
  }
}

/**
 * Computes the figures of a series from the points of a range, and the value at its end. Null
 * without points.
 */
export function figuresOfPoints(
  points: readonly Point[],
  atEnd: number | undefined,
  { end, step, count }: Grid,
): Figures | null {
  const all: readonly Point[] = atEnd === undefined ? points : [...points.filter(([at]) => at < end), [end, atEnd]]
  const [first, last] = [all[0], all.at(-1)]
  if (!first || !last) return null
  const [low, high] = [pick(all, (a, b) => a < b), pick(all, (a, b) => a > b)]
  const missed = (from: number, to: number) => (to - from) / step > 2.5
  const gaps = all
    .slice(1)
    .map(([to], at): Gap => [(all[at] as Point)[0], to])
    .filter(([from, to]) => missed(from, to))
  const longest = gaps.toSorted((a, b) => b[1] - b[0] - (a[1] - a[0])).slice(0, maxGaps)
  return {
    last: last[1],
    lastAt: last[0],
    min: low[1],
    max: high[1],
    mean: meanOf(all),
    slope: slopeOf(all),
    ...(low[1] !== high[1] && { minAt: low[0], maxAt: high[0] }),
    ...(missed(end - (count - 1) * step, first[0]) && { beganAt: first[0] }),
    ...(atEnd === undefined && { endedAt: last[0] }),
    ...(longest.length > 0 && { gaps: longest.sort((a, b) => a[0] - b[0]) }),
    ofPoints: true,
  }
}

const pick = (points: readonly Point[], isBetter: (value: number, than: number) => boolean): Point =>
  points.reduce((best, each) => (isBetter(each[1], best[1]) ? each : best))

export const meanOf = (points: readonly Point[]): number =>
  points.reduce((sum, [, value]) => sum + value, 0) / Math.max(1, points.length)

function slopeOf(points: readonly Point[]): number {
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
