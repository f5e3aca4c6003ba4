import { z } from 'zod'
import { describeItems, toWords } from '../../domain/say.ts'
import { parseDuration } from '../../domain/source.ts'
import { chooseStep, judgePromql, listFixedLabels } from '../../safety/query/promql.ts'
import { type AskSource, defineSourceTool, fitSummary, SourceError, type SourceKind } from '../kind.ts'
import { quoteText } from '../logs/logs.ts'
import { findRule, listTargets, type Remarks, readData, readRemarks } from './rule.ts'
import { meanOf, type Point, type Series, saySeries, seriesKey, summarizeSeries, summarizeValues } from './summary.ts'

/**
 * Servers that speak Prometheus' HTTP API (https://prometheus.io/docs/prometheus/latest/querying/api/): Prometheus, VictoriaMetrics,
 * Thanos, Mimir. Where one lives under a path, the path is part of the source's address.
 */

const duration = z.string().max(20)
const queryInput = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  promql: z.string().min(1).max(2_000).describe('each selector names a metric, or a resource as instance="web-1:9100"'),
  window: duration.default('1h').describe('as 30m, 6h, 2d; "now": one value each'),
  step: duration.optional().describe('as 1m'),
  until: z.iso.datetime().optional().describe('RFC 3339; default now'),
})
type QueryInput = z.output<typeof queryInput>

function readTimes({ promql, window, step }: QueryInput): { windowSeconds: number; stepSeconds: number } | string {
  const windowSeconds = window === 'now' ? 0 : parseDuration(window)
  if (windowSeconds === null) return `the window ${JSON.stringify(window)} cannot be read: write 30m, 6h or now`
  const stepSeconds = step === undefined ? chooseStep(promql, windowSeconds) : parseDuration(step)
  if (stepSeconds === null || stepSeconds < 1)
    return `the step ${JSON.stringify(step)} cannot be read: write 1m, or leave it out`
  return { windowSeconds, stepSeconds }
}

const queryMetrics = defineSourceTool({
  name: 'query_metrics',
  description:
    'Query metrics with PromQL: what each series did, when its level changed, and how it was a day and a week before.',
  input: queryInput,
  judge(args) {
    const times = readTimes(args)
    return typeof times === 'string' ? { ok: false, reason: times, bounded: null } : judgePromql({ ...args, ...times })
  },
  labels: ({ promql }) => listFixedLabels(promql),
  say: saySeries,
  async read(ask, args, { nowMs }) {
    const times = readTimes(args)
    if (typeof times === 'string') throw new SourceError('REJECTED', times)
    const untilMs = args.until ? Math.min(Date.parse(args.until), nowMs) : nowMs
    const { windowSeconds, stepSeconds } = times
    if (windowSeconds === 0) {
      const answer = await queryInstant(ask, args.promql, untilMs)
      return toReading(answer, summarizeValues(answer, args.promql, untilMs))
    }
    const range = (backSeconds: number) =>
      queryRange(ask, args.promql, { untilMs: untilMs - backSeconds * 1000, windowSeconds, stepSeconds })
    // What cannot be compared is said; it is no reason to show nothing. Part of an earlier window is no measure.
    const before = (seconds: number) =>
      range(seconds).then(
        (answer) => (answer.remarks.partial ? null : toMeans(answer.series)),
        () => null,
      )
    const [answer, day, week] = await Promise.all([range(0), before(86_400), before(7 * 86_400)])
    const asked = { promql: args.promql, window: args.window, stepSeconds, untilMs }
    return toReading(answer, summarizeSeries(answer, asked, { day, week }))
  },
})

/** Series as text lines of JSON, one a series: what `read_result` shows and the page draws. */
function toReading({ series, remarks }: Answered, summary: Record<string, unknown>) {
  const lines = series.map((each) => JSON.stringify(each))
  const isEmpty = series.every(({ points }) => points.length === 0)
  return { summary, whole: lines.join('\n'), isEmpty, isPartial: remarks.partial !== undefined }
}

function toMeans(series: readonly Series[]): Map<string, number> {
  return new Map(series.filter(({ points }) => points.length > 0).map((each) => [seriesKey(each), meanOf(each.points)]))
}

const describeInput = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  labels: z
    .record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), z.string().min(1).max(200))
    .refine((labels) => Object.keys(labels).length > 0 && Object.keys(labels).length <= 5, 'takes one to five labels')
    .describe('as { "instance": "web-1:9100" }'),
  text: z.string().max(60).optional().describe('part of the name'),
})

/** Counts the series of each metric with these labels. */
function toCountQuery(labels: Record<string, string>): string {
  const matchers = Object.entries(labels).map(([name, value]) => `${name}=${quoteText(value)}`)
  return `count by (__name__) ({${matchers.join(',')}})`
}

const describeMetrics = defineSourceTool({
  name: 'describe_metrics',
  isSituational: true,
  description: 'Names and types of the metrics about a resource, for query_metrics.',
  input: describeInput,
  judge: ({ labels }) => judgePromql({ promql: toCountQuery(labels), windowSeconds: 0, stepSeconds: 1 }),
  labels: ({ labels }) => labels,
  say: ({ metricsFound, metrics }, { labels }) =>
    `${describeItems(toWords(metrics), 'metric', Number(metricsFound))} of ${Object.values(labels).join(', ')}`,
  async read(ask, { labels, text }, { nowMs }) {
    const { series, remarks } = await queryInstant(ask, toCountQuery(labels), nowMs)
    const names = series
      .map(({ labels: { __name__: name = '' } }) => name)
      .filter((name) => !text || name.includes(text))
    const help = await readHelp(ask)
    const metrics = names.sort().map((name) => ({ name, ...help(name) }))
    return {
      summary: fitSummary(metrics, (kept, omitted) => ({
        ...remarks,
        labels,
        metricsFound: metrics.length,
        metrics: kept.map(({ name, type }) => `${name}${type ? ` (${type})` : ''}`),
        ...(omitted > 0 && { notShown: omitted, narrow: 'with text' }),
      })),
      whole: metrics.map(({ name, type = '', help: words = '' }) => `${name} ${type} ${words}`.trim()).join('\n'),
      isEmpty: metrics.length === 0,
      isPartial: remarks.partial !== undefined,
    }
  },
})

const metadata = z.record(z.string(), z.array(z.looseObject({ type: z.string(), help: z.string() })))

/** Type and help of metrics; nothing where the server keeps none. */
async function readHelp(ask: AskSource): Promise<(name: string) => { type?: string; help?: string }> {
  try {
    const known = metadata.parse(readData(await ask({ path: '/api/v1/metadata?limit_per_metric=1' })))
    return (name) => {
      const [entry] = known[name] ?? known[name.replace(/_(total|bucket|sum|count)$/, '')] ?? []
      return entry ? { type: entry.type, help: entry.help.slice(0, 200) } : {}
    }
  } catch {
    return () => ({})
  }
}

const sample = z.tuple([z.number(), z.string()])
/** The year 5138: later is no time. */
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
  if (!parsed.success)
    throw new SourceError('BAD_ANSWER', 'it answered series in a shape that is not of the Prometheus API')
  const found = parsed.data.result
  if (isSample(found)) return [{ labels: {}, points: toPoints([found]) }]
  return found.map(({ metric, values, value }) => ({
    labels: metric,
    points: toPoints(values ?? (value ? [value] : [])),
  }))
}

const isSample = (value: unknown): value is z.output<typeof sample> => sample.safeParse(value).success

/** Points in the order of time, without those that have no number or no time that a date can hold. */
const toPoints = (values: readonly z.output<typeof sample>[]): Point[] =>
  values
    .map(([at, text]): Point => [at, text.trim() === '' ? Number.NaN : Number(text)])
    .filter(([at, value]) => Number.isFinite(value) && at >= 0 && at < latestSeconds)
    .sort(([left], [right]) => left - right)

/** Series, and what the server says of them. */
type Answered = { series: Series[]; remarks: Remarks }

function readSeries(answer: unknown): Answered {
  return { series: toSeries(readData(answer)), remarks: readRemarks(answer) }
}

async function queryInstant(ask: AskSource, promql: string, untilMs: number): Promise<Answered> {
  const form = { query: promql, time: String(untilMs / 1000), timeout: '10s' }
  return readSeries(await ask({ method: 'POST', path: '/api/v1/query', form }))
}

async function queryRange(
  ask: AskSource,
  promql: string,
  { untilMs, windowSeconds, stepSeconds }: { untilMs: number; windowSeconds: number; stepSeconds: number },
): Promise<Answered> {
  const end = untilMs / 1000
  const form = {
    query: promql,
    start: String(end - windowSeconds),
    end: String(end),
    step: String(stepSeconds),
    timeout: '10s',
  }
  const answer = readSeries(await ask({ method: 'POST', path: '/api/v1/query_range', form }))
  const max = Math.floor(windowSeconds / stepSeconds) + 2
  if (answer.series.some(({ points }) => points.length > max))
    throw new SourceError('BAD_ANSWER', `it answered more than the ${max} points of each series that were asked for`)
  return answer
}

export const prometheus: SourceKind = {
  kind: 'prometheus',
  title: 'Prometheus, VictoriaMetrics, Thanos or Mimir',
  options: z.strictObject({}),
  async probe(ask) {
    const [up] = (await queryInstant(ask, 'count(up)', Date.now())).series
    return `it answers queries; ${up?.points[0]?.[1] ?? 0} targets`
  },
  findRule,
  listTargets,
  tools: [queryMetrics, describeMetrics],
}
