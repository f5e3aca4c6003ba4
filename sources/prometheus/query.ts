import { z } from 'zod'
import { type AskSource, SourceError } from '../kind.ts'
import { type Remarks, readData, readRemarks } from './rule.ts'

/** Sends queries to Prometheus, and reads the series of the responses. */

/**
 * Seconds since the epoch, and a value. Values that are not numbers (`NaN`, `+Inf`) are left out.
 */
export type Point = [seconds: number, value: number]
export type Series = { labels: Record<string, string>; points: Point[] }

/** The series of a response, and the server's remarks about them. */
export type Answered = { series: Series[]; remarks: Remarks }

/**
 * Returns a key that identifies a series among others of one metric. Leaves out the metric's name,
 * which functions drop.
 */
export const seriesKey = ({ labels: { __name__: _, ...labels } }: Pick<Series, 'labels'>): string =>
  JSON.stringify(Object.entries(labels).sort())

const sample = z.tuple([z.number(), z.string()])
/** The latest valid time of a sample, in the year 5138. */
const latestSeconds = 1e11
const result = z.looseObject({
  resultType: z.string(),
  result: z.union([
    z.array(
      z.looseObject({
        metric: z.record(z.string(), z.string()),
        values: z.array(sample).optional(),
        value: sample.optional(),
      }),
    ),
    sample,
  ]),
})

function toSeries(data: unknown): Series[] {
  const parsed = result.safeParse(data)
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'the series do not fit the Prometheus API')
  const found = parsed.data.result
  if (isSample(found)) return [{ labels: {}, points: toPoints([found]) }]
  return found.map(({ metric, values, value }) => ({
    labels: metric,
    points: toPoints(values ?? (value ? [value] : [])),
  }))
}

const isSample = (value: unknown): value is z.output<typeof sample> => sample.safeParse(value).success

/** Sorts points by time, and leaves out points without a number or a valid time. */
const toPoints = (values: readonly z.output<typeof sample>[]): Point[] =>
  values
    .map(([at, text]): Point => [at, text.trim() === '' ? Number.NaN : Number(text)])
    .filter(([at, value]) => Number.isFinite(value) && at >= 0 && at < latestSeconds)
    .sort(([left], [right]) => left - right)

function readSeries(answer: unknown): Answered {
  return { series: toSeries(readData(answer)), remarks: readRemarks(answer) }
}

/**
 * Disables the cache, because VictoriaMetrics otherwise aligns a query's times to whole steps, and
 * shifts times in the last 30 s.
 */
const asItIs = { timeout: '10s', nocache: '1' }

export async function queryInstant(ask: AskSource, promql: string, atSeconds: number): Promise<Answered> {
  const form = { query: promql, time: String(atSeconds), ...asItIs }
  return readSeries(await ask({ method: 'POST', path: '/api/v1/query', form }))
}

/** The points of a range query, in whole steps that end at `end`. */
export type Grid = { end: number; step: number; count: number }

export async function queryRange(ask: AskSource, promql: string, { end, step, count }: Grid): Promise<Answered> {
  const times = { start: String(end - (count - 1) * step), end: String(end), step: String(step) }
  const form = { query: promql, ...times, ...asItIs }
  const answer = readSeries(await ask({ method: 'POST', path: '/api/v1/query_range', form }))
  if (answer.series.some(({ points }) => points.length > count + 1))
    throw new SourceError('BAD_ANSWER', `the source sent more than the ${count} points per series that were requested`)
  return answer
}

/** An expression, and the name that its series get in a combined response. */
export type QueryPart = readonly [name: string, promql: string]

const partLabel = 'nightshift_part'

/** Joins several expressions to one query. A label with the part's name separates their series. */
export const joinParts = (parts: readonly QueryPart[]): string =>
  parts.map(([name, promql]) => `label_replace(${promql}, "${partLabel}", "${name}", "", "")`).join(' or ')

/** Returns the series of each part of a joined query, by the part's name. */
export function splitParts({ series }: Answered): Map<string, Series[]> {
  const found = new Map<string, Series[]>()
  for (const { labels, points } of series) {
    const { [partLabel]: name, ...own } = labels
    if (name === undefined || points.length === 0) continue
    found.set(name, [...(found.get(name) ?? []), { labels: own, points }])
  }
  return found
}
