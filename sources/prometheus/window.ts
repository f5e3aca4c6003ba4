import { judgePromql } from '../../safety/query/promql.ts'
import { type AskSource, SourceError, type ToolReading } from '../kind.ts'
import { findDoubt } from './absence.ts'
import { type Figures, figuresOfPoints, findTimes, meanOf, readFigures, readMeans } from './figures.ts'
import { type Answered, type Grid, type Point, queryInstant, queryRange, type Series, seriesKey } from './query.ts'
import { findPlain, type Plain, toSelector } from './selector.ts'
import {
  type Described,
  findChange,
  type LevelChange,
  movementOf,
  summarizeSeries,
  summarizeValues,
} from './summary.ts'

/**
 * Reads metrics at a moment or over a window. Reports which parts of the result are complete,
 * computed only from points, or unknown.
 */

export async function readMoment(ask: AskSource, promql: string, untilMs: number): Promise<ToolReading> {
  const answer = await queryInstant(ask, promql, untilMs / 1_000)
  const isTold = answer.series.some(hasPoints) || answer.remarks.partial !== undefined
  const doubt = isTold ? null : await findDoubt(ask, promql, { untilSeconds: untilMs / 1_000, windowSeconds: 0 })
  const remarks = addDoubt(answer.remarks, doubt)
  return toReading(answer.series, summarizeValues({ ...answer, remarks }, promql, untilMs), { remarks, doubt })
}

type Asked = { promql: string; window: string; windowSeconds: number; stepSeconds: number; untilMs: number }

const daySeconds = 86_400
const maxShown = 5

/**
 * Reads points for the chart, and figures. Figures of a plain selector come from all its samples;
 * otherwise from the points and the value at the end. If all series have too many samples, only the
 * samples of the shown series are read.
 */
export async function readWindow(ask: AskSource, asked: Asked): Promise<ToolReading> {
  const { promql, windowSeconds, stepSeconds, untilMs } = asked
  const untilSeconds = untilMs / 1_000
  const grid: Grid = { end: untilSeconds, step: stepSeconds, count: Math.floor(windowSeconds / stepSeconds) + 1 }
  const plain = findPlain(promql)
  const isWide = plain !== null && isAsked(plain, windowSeconds)
  const [answer, exact, atEnd] = await Promise.all([
    queryRange(ask, promql, grid),
    isWide ? readExact(ask, [plain.text], asked) : null,
    plain ? null : readOfPoints(ask, asked, grid),
  ])
  let figures = exact
  if (plain && !figures?.figures && answer.series.length > 0) {
    const shown = choose(describe(answer.series, { grid, atEnd: null, exact: null }))
    figures = await readExact(
      ask,
      shown.map((each) => toSelector({ ...each.labels, __name__: plain.name })),
      asked,
    )
  }
  const all = plain && isWide ? withUnseen(answer.series, figures?.series ?? [], plain) : answer.series
  const compared = figures ?? atEnd
  const described = describe(all, { grid, atEnd: atEnd?.last ?? null, exact: figures?.figures ?? null }).map((each) => {
    const key = keyOf(each, plain)
    return { ...each, dayBefore: compared?.day?.get(key), weekBefore: compared?.week?.get(key) }
  })
  const shown = await withTimes(ask, choose(described), plain, { ...asked, untilSeconds })
  const told = joinRemarks(answer.remarks, compared?.remarks)
  const isTold = described.length > 0 || told.partial !== undefined || (isWide && figures?.figures)
  const doubt = isTold ? null : await findDoubt(ask, promql, { untilSeconds, windowSeconds })
  const remarks = addDoubt(told, doubt)
  const has = { day: compared?.day != null, week: compared?.week != null }
  return toReading(withExact(all, shown), summarizeSeries(shown, all, { ...asked, remarks }, has), { remarks, doubt })
}

/** Whether the server may be queried for all samples of all series in the window. */
const isAsked = ({ text }: Plain, windowSeconds: number): boolean =>
  judgePromql({ promql: `max_over_time(${text}[${windowSeconds}s])`, windowSeconds: 0, stepSeconds: 1 }).ok

/**
 * Returns null for a part that the source refused, so that the other parts are still shown. The
 * caller reports the missing part.
 */
const orNull = (error: unknown): null => {
  if (error instanceof SourceError) return null
  throw error
}

type Compared = { day: Map<string, number> | null; week: Map<string, number> | null; remarks: Answered['remarks'] }
type Exact = Compared & { figures: Map<string, Figures> | null; series: Series[] }

async function readExact(ask: AskSource, selectors: readonly string[], asked: Asked): Promise<Exact> {
  const { windowSeconds, untilMs } = asked
  const at = (backSeconds: number) => ({ untilSeconds: untilMs / 1_000 - backSeconds, windowSeconds })
  const [now, day, week] = await Promise.all([
    readFigures(ask, selectors, at(0)).catch(orNull),
    readMeans(ask, selectors, at(daySeconds)).catch(orNull),
    readMeans(ask, selectors, at(7 * daySeconds)).catch(orNull),
  ])
  return { figures: now?.figures ?? null, series: now?.series ?? [], remarks: now?.remarks ?? {}, day, week }
}

/** Reads the value at the end, and points of earlier windows. Does not compare a partial window. */
async function readOfPoints(
  ask: AskSource,
  { promql, untilMs }: Asked,
  grid: Grid,
): Promise<Compared & { last: Map<string, number> | null }> {
  const before = (seconds: number) =>
    queryRange(ask, promql, { ...grid, end: grid.end - seconds }).then(
      ({ series, remarks }) =>
        remarks.partial ? null : new Map(series.filter(hasPoints).map((each) => [fullKey(each), meanOf(each.points)])),
      orNull,
    )
  const [last, day, week] = await Promise.all([
    queryInstant(ask, promql, untilMs / 1_000).catch(orNull),
    before(daySeconds),
    before(7 * daySeconds),
  ])
  const values = last?.series.filter(hasPoints).map((each) => [fullKey(each), each.points[0]?.[1] as number] as const)
  return { last: values ? new Map(values) : null, remarks: last?.remarks ?? {}, day, week }
}

const hasPoints = ({ points }: Series): boolean => points.length > 0
const fullKey = ({ labels }: Series): string => JSON.stringify(Object.entries(labels).sort())
const keyOf = (series: Series, plain: Plain | null): string => (plain ? seriesKey(series) : fullKey(series))

/** Adds series whose samples are all between the points. */
function withUnseen(ofPoints: readonly Series[], found: readonly Series[], { name }: Plain): Series[] {
  const known = new Set(ofPoints.map(seriesKey))
  const unseen = found.filter((each) => !known.has(seriesKey(each)))
  return [...ofPoints, ...unseen.map(({ labels, points }) => ({ labels: { __name__: name, ...labels }, points }))]
}

type Known = { grid: Grid; atEnd: Map<string, number> | null; exact: Map<string, Figures> | null }

/**
 * Describes each series with figures. A series whose value at the end is unknown is described by
 * its points.
 */
function describe(all: readonly Series[], { grid, atEnd, exact }: Known): Described[] {
  return all.flatMap((series): Described[] => {
    const newest = series.points.at(-1)
    const last = atEnd ? atEnd.get(fullKey(series)) : newest && newest[0] >= grid.end ? newest[1] : undefined
    const figures = exact?.get(seriesKey(series)) ?? figuresOfPoints(series.points, last, grid)
    return figures ? [{ ...series, figures, change: findChange(series.points) }] : []
  })
}

const choose = (all: readonly Described[]): Described[] =>
  all.toSorted((a, b) => movementOf(b.figures) - movementOf(a.figures)).slice(0, maxShown)

/** Adds times to figures that were computed from all samples. Figures of points have no times. */
async function withTimes(
  ask: AskSource,
  shown: Described[],
  plain: Plain | null,
  { untilSeconds, windowSeconds, stepSeconds }: Asked & { untilSeconds: number },
): Promise<Described[]> {
  const exact = shown.filter(({ figures }) => !figures.ofPoints)
  if (plain === null || exact.length === 0) return shown
  const sought = exact.map(({ labels, figures, change }) => ({
    selector: toSelector({ ...labels, __name__: plain.name }),
    figures,
    change: change && toSought(change, stepSeconds),
  }))
  const count = Math.max(2, Math.ceil(windowSeconds / stepSeconds))
  const found = await findTimes(ask, sought, { untilSeconds, windowSeconds, count }).catch(orNull)
  return shown.map((each) => {
    const of = found?.[exact.indexOf(each)]
    if (!of) return each
    const change = each.change && { ...each.change, at: of.changedAt ?? each.change.at }
    return { ...each, figures: of.figures, change }
  })
}

/** Seconds for which a server looks back from a point for its value. */
const lookbackSeconds = 300

/**
 * Builds the search for the time of a change. Searches only the end of a gap between two points.
 */
const toSought = ({ from, at, before, after }: LevelChange, stepSeconds: number) => ({
  from: Math.max(from, at - stepSeconds - lookbackSeconds),
  to: at,
  level: (before + after) / 2,
  isRise: after > before,
})

/** Adds the extreme and newest samples of the summary to the chart, where it has no point. */
function withExact(all: readonly Series[], shown: readonly Described[]): Series[] {
  return all.map((series) => {
    const of = shown.find(({ labels }) => labels === series.labels)?.figures
    if (!of || of.ofPoints) return series
    const found = [
      [of.minAt, of.min],
      [of.maxAt, of.max],
      [of.lastAt, of.last],
    ] as const
    const known = new Set(series.points.map(([at]) => at))
    const added = found.flatMap(([at, value]): Point[] => (at == null || known.has(at) ? [] : [[at, value]]))
    const points = [...new Map([...series.points, ...added]).entries()].sort(([left], [right]) => left - right)
    return { labels: series.labels, points }
  })
}

function joinRemarks(first: Answered['remarks'], second: Answered['remarks'] = {}): Answered['remarks'] {
  const partial = [...new Set([...(first.partial ?? []), ...(second.partial ?? [])])].slice(0, 4)
  const infos = first.infos ?? second.infos
  return { ...(partial.length > 0 && { partial }), ...(infos && { infos }) }
}

const addDoubt = (remarks: Answered['remarks'], doubt: string | null): Answered['remarks'] =>
  doubt === null ? remarks : joinRemarks(remarks, { partial: [doubt] })

/** Builds the result of a tool. Writes series as lines of JSON, for `read_result` and the page. */
function toReading(
  series: readonly Series[],
  summary: Record<string, unknown>,
  { remarks, doubt }: { remarks: Answered['remarks']; doubt: string | null },
): ToolReading {
  const seen = series.filter(hasPoints)
  return {
    summary,
    whole: seen.map((each) => JSON.stringify(each)).join('\n'),
    isEmpty: seen.length === 0 && doubt === null,
    isPartial: remarks.partial !== undefined,
  }
}
