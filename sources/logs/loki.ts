import { z } from 'zod'
import { connectHttp } from '../connect-http.ts'
import { type AskSource, quoteRemarks, SourceError, type SourceKind } from '../kind.ts'
import { readLastLines } from './last.ts'
import { placeLabels, toLogql, toLokiName } from './logql.ts'
import { type CountedSeries, type LogReader, parseCount, type Range } from './logs.ts'
import { searchLogs } from './search.ts'

/** Reads Loki (https://grafana.com/docs/loki/latest/reference/loki-http-api/) in LogQL. */

const streams = z.looseObject({
  warnings: z.unknown().optional(),
  data: z.looseObject({
    resultType: z.literal('streams'),
    result: z.array(z.looseObject({ values: z.array(z.tuple([z.string(), z.string()]).rest(z.unknown())) })),
  }),
})
const countedByLoki = z.looseObject({
  warnings: z.unknown().optional(),
  data: z.looseObject({
    result: z.array(
      z.looseObject({
        metric: z.looseObject({ kind: z.string().optional() }).default({}),
        value: z.tuple([z.number(), z.string()]),
      }),
    ),
  }),
})
const matrix = z.looseObject({
  warnings: z.unknown().optional(),
  data: z.looseObject({
    result: z.array(
      z.looseObject({ metric: z.record(z.string(), z.string()), values: z.array(z.tuple([z.number(), z.string()])) }),
    ),
  }),
})
const vector = z.looseObject({
  warnings: z.unknown().optional(),
  data: z.looseObject({
    result: z.array(
      z.looseObject({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) }),
    ),
  }),
})
const lokiNames = z.looseObject({ data: z.array(z.string()).default([]) })

const toNanoseconds = (ms: number): string => `${Math.round(ms)}000000`

const readLokiLines: LogReader['readLines'] = async (ask, { query, also, limit }, { fromMs, untilMs }) => {
  const search = new URLSearchParams({
    query: toLogql(query, also),
    start: toNanoseconds(fromMs),
    end: toNanoseconds(untilMs),
    limit: String(limit),
    direction: 'backward',
  })
  const parsed = streams.safeParse(await ask({ path: `/loki/api/v1/query_range?${search}` }))
  if (!parsed.success) throw notOfLoki('lines')
  const lines = parsed.data.data.result.flatMap(({ values }) =>
    values.map(([at, text]) => ({ atMs: /^\d{7,19}$/.test(at) ? Number(at.slice(0, -6)) : Number.NaN, text })),
  )
  return { lines, partial: quoteRemarks(parsed.data.warnings) }
}

type Counts = Awaited<ReturnType<LogReader['countBy']>>

/** Counts lines in whole steps. A point of Loki counts the step that ends at this point. */
async function askSteps(ask: AskSource, query: string, steps: Range & { stepMs: number }): Promise<Counts> {
  const { fromMs, untilMs, stepMs } = steps
  const times = { start: toNanoseconds(fromMs + stepMs), end: toNanoseconds(untilMs), step: `${stepMs / 1_000}s` }
  const form = { query, ...times }
  const parsed = matrix.safeParse(await ask({ method: 'POST', path: '/loki/api/v1/query_range', form }))
  if (!parsed.success) throw notOfLoki('counts')
  const series = parsed.data.data.result.map(({ metric, values }) => ({
    labels: metric,
    points: values.map(([at, count]): [number, number] => [Math.round(at * 1_000 - stepMs), parseCount(count)]),
  }))
  return { series, partial: quoteRemarks(parsed.data.warnings) }
}

/**
 * Counts lines in a part of a step. The result is the count for the step that begins at
 * `stepFromMs`.
 */
async function askPart(ask: AskSource, query: string, untilMs: number, stepFromMs: number): Promise<Counts> {
  const form = { query, time: toNanoseconds(untilMs) }
  const parsed = vector.safeParse(await ask({ method: 'POST', path: '/loki/api/v1/query', form }))
  if (!parsed.success) throw notOfLoki('counts')
  const series = parsed.data.data.result.map(({ metric, value: [at, count] }) => {
    const isThen = Math.abs(at * 1_000 - untilMs) < 1_000
    return { labels: metric, points: [[isThen ? stepFromMs : Number.NaN, parseCount(count)] as [number, number]] }
  })
  return { series, partial: quoteRemarks(parsed.data.warnings) }
}

const notOfLoki = (what: string) => new SourceError('BAD_ANSWER', `the response (${what}) does not fit the Loki API`)

async function listStreamLabels(ask: AskSource, { fromMs, untilMs }: Range, of?: string): Promise<string[]> {
  const times = { start: toNanoseconds(fromMs), end: toNanoseconds(untilMs) }
  const search = new URLSearchParams({ ...times, ...(of !== undefined && { query: of }) })
  return lokiNames.parse(await ask({ path: `/loki/api/v1/labels?${search}` })).data
}

const lokiReader: LogReader = {
  readLines: readLokiLines,
  async countLines(ask, query, { fromMs, untilMs }) {
    const seconds = Math.max(1, Math.round((untilMs - fromMs) / 1_000))
    const search = new URLSearchParams({
      query: `sum(count_over_time(${toLogql(query)} [${seconds}s]))`,
      time: toNanoseconds(untilMs),
    })
    const parsed = countedByLoki.safeParse(await ask({ path: `/loki/api/v1/query?${search}` }))
    if (!parsed.success || quoteRemarks(parsed.data.warnings).length > 0) return null
    return Number(parsed.data.data.result[0]?.value[1] ?? 0)
  },
  // Counts with one query, in which a label separates templates and windows.
  async countKinds(ask, query, patterns, { window, before }) {
    const terms = patterns.flatMap((pattern, at) =>
      [window, before].map(({ fromMs, untilMs }, which) => {
        const [seconds, back] = [untilMs - fromMs, window.untilMs - untilMs].map((ms) => Math.round(ms / 1_000))
        const counted = `count_over_time(${toLogql(query, pattern)} [${seconds}s]${back ? ` offset ${back}s` : ''})`
        return `label_replace(sum(${counted}), "kind", "${at}-${which}", "", "")`
      }),
    )
    const form = { query: terms.join(' or '), time: toNanoseconds(window.untilMs) }
    const parsed = countedByLoki.safeParse(await ask({ method: 'POST', path: '/loki/api/v1/query', form }))
    if (!parsed.success || quoteRemarks(parsed.data.warnings).length > 0) return null
    const found = new Map(parsed.data.data.result.map(({ metric, value }) => [metric.kind, Number(value[1])]))
    if ([...found.keys()].some((kind) => kind === undefined)) return null
    const of = (at: number, which: number) => found.get(`${at}-${which}`) ?? 0
    return patterns.map((_, at) => ({ count: of(at, 0), before: of(at, 1), firstMs: null, lastMs: null }))
  },
  async countBy(ask, query, { by, grid, window }) {
    const sum = by.length > 0 ? `sum by (${by.map(toLokiName).join(', ')})` : 'sum'
    const within = (ms: number) =>
      `${sum} (count_over_time(${toLogql(query)} [${ms % 1_000 ? `${ms}ms` : `${ms / 1_000}s`}]))`
    const stepMs = grid.stepSeconds * 1_000
    const stepOf = (ms: number) => (ms - grid.fromMs) / stepMs
    const whole = {
      fromMs: grid.fromMs + Math.ceil(stepOf(window.fromMs)) * stepMs,
      untilMs: grid.fromMs + Math.floor(stepOf(window.untilMs)) * stepMs,
    }
    // Counts the incomplete steps at both ends separately, because whole steps would reach beyond
    // the window.
    const parts =
      whole.fromMs > whole.untilMs
        ? [window]
        : [
            { fromMs: window.fromMs, untilMs: whole.fromMs },
            { fromMs: whole.untilMs, untilMs: window.untilMs },
          ]
    const answers = await Promise.all([
      ...(whole.untilMs > whole.fromMs ? [askSteps(ask, within(stepMs), { ...whole, stepMs })] : []),
      ...parts
        .filter(({ fromMs, untilMs }) => untilMs > fromMs)
        .map((part) =>
          askPart(
            ask,
            within(part.untilMs - part.fromMs),
            part.untilMs,
            grid.fromMs + Math.floor(stepOf(part.fromMs)) * stepMs,
          ),
        ),
    ])
    const series = new Map<string, CountedSeries>()
    for (const { labels, points } of answers.flatMap((answer) => answer.series)) {
      const key = JSON.stringify(Object.entries(labels).sort())
      const known = series.get(key)
      if (known) known.points.push(...points)
      else series.set(key, { labels, points })
    }
    return { series: [...series.values()], partial: [...new Set(answers.flatMap(({ partial }) => partial))] }
  },
  listLabels: (ask, range) => listStreamLabels(ask, range),
  place: async (ask, query, range) => await placeLabels(query, (of) => listStreamLabels(ask, range, of)),
}

export const loki: SourceKind = {
  kind: 'loki',
  title: 'Loki',
  options: z.strictObject({}),
  connect: connectHttp,
  async probe(ask) {
    const { data } = lokiNames.parse(await ask({ path: '/loki/api/v1/labels' }))
    return `the source answers queries; ${data.length} labels`
  },
  contextOf: { lines: (ask, subject, since) => readLastLines(lokiReader, ask, subject, since) },
  tools: [searchLogs(lokiReader)],
}
