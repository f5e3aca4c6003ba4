import { z } from 'zod'
import { parseTime } from '../../domain/format.ts'
import { connectHttp } from '../connect-http.ts'
import { type AskSource, quoteRemarks, SourceError, type SourceKind } from '../kind.ts'
import { readLastLines } from './last.ts'
import {
  type CountedSeries,
  type KindCount,
  type LogAnswer,
  type LogQuery,
  type LogReader,
  listMatchers,
  quotePattern,
  quoteText,
  type Range,
} from './logs.ts'
import { searchLogs } from './search.ts'

/**
 * Stores of logs: Loki (https://grafana.com/docs/loki/latest/reference/loki-http-api/) in LogQL,
 * and VictoriaLogs (https://docs.victoriametrics.com/victorialogs/querying/) in LogsQL.
 */

/** Loki's labels have no dots: it writes them as `_` when it takes lines in. */
const toLokiName = (name: string) => name.replaceAll('.', '_')

/** A question as LogQL, perhaps with one more pattern. Each value and text is quoted, so that none is read as part of the query. */
export function toLogql({ labels, contains, excludes, pattern }: LogQuery, also?: string): string {
  const matchers = listMatchers(labels).map(({ name, op, value }) => `${toLokiName(name)}${op}${quoteText(value)}`)
  return [
    `{${matchers.join(', ')}}`,
    ...contains.map((text) => `|= ${quoteText(text)}`),
    ...excludes.map((text) => `!= ${quoteText(text)}`),
    ...[pattern, also].flatMap((each) => (each === undefined ? [] : [`|~ ${quoteText(each)}`])),
  ].join(' ')
}

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
const lokiNames = z.looseObject({ data: z.array(z.string()).default([]) })

/** An empty text is no 0. */
const parseCount = (text = ''): number => (text.trim() === '' ? Number.NaN : Number(text))

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
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered lines in a shape that is not of the Loki API')
  const lines = parsed.data.data.result.flatMap(({ values }) =>
    values.map(([at, text]) => ({ atMs: /^\d{7,19}$/.test(at) ? Number(at.slice(0, -6)) : Number.NaN, text })),
  )
  return { lines, partial: quoteRemarks(parsed.data.warnings) }
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
  // One query: a label tells the kinds and the windows apart.
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
  // A point counts the step that ends at it.
  async countBy(ask, query, { by, grid: { fromMs, untilMs, stepSeconds } }) {
    const sum = by.length > 0 ? `sum by (${by.map(toLokiName).join(', ')})` : 'sum'
    const form = {
      query: `${sum} (count_over_time(${toLogql(query)} [${stepSeconds}s]))`,
      start: toNanoseconds(fromMs + stepSeconds * 1_000),
      end: toNanoseconds(untilMs),
      step: `${stepSeconds}s`,
    }
    const parsed = matrix.safeParse(await ask({ method: 'POST', path: '/loki/api/v1/query_range', form }))
    if (!parsed.success)
      throw new SourceError('BAD_ANSWER', 'it answered counts in a shape that is not of the Loki API')
    const series = parsed.data.data.result.map(({ metric, values }) => ({
      labels: metric,
      points: values.map(([at, count]): [number, number] => [
        Math.round((at - stepSeconds) * 1_000),
        parseCount(count),
      ]),
    }))
    return { series, partial: quoteRemarks(parsed.data.warnings) }
  },
  async listLabels(ask, { fromMs, untilMs }) {
    const search = new URLSearchParams({ start: toNanoseconds(fromMs), end: toNanoseconds(untilMs) })
    return lokiNames.parse(await ask({ path: `/loki/api/v1/labels?${search}` })).data
  },
}

export const loki: SourceKind = {
  kind: 'loki',
  title: 'Loki',
  options: z.strictObject({}),
  connect: connectHttp,
  async probe(ask) {
    const { data } = lokiNames.parse(await ask({ path: '/loki/api/v1/labels' }))
    return `it answers queries; ${data.length} labels`
  },
  contextOf: { lines: (ask, subject, since) => readLastLines(lokiReader, ask, subject, since) },
  tools: [searchLogs(lokiReader)],
}

/** A question as LogsQL, perhaps with one more pattern. Each name and text is quoted, so that none is read as part of the query. */
export function toLogsql({ labels, contains, excludes, pattern }: LogQuery, also?: string): string {
  return [
    ...listMatchers(labels).map(({ name, op, value }) => {
      const not = op.startsWith('!') ? '!' : ''
      const is = op.endsWith('~') ? `:~${quoteText(`^(?:${value})$`)}` : `:=${quoteText(value)}`
      return `${not}${quoteText(name)}${is}`
    }),
    ...contains.map((text) => `_msg:~${quoteText(quotePattern(text))}`),
    ...excludes.map((text) => `!_msg:~${quoteText(quotePattern(text))}`),
    ...[pattern, also].flatMap((each) => (each === undefined ? [] : [`_msg:~${quoteText(each)}`])),
  ].join(' AND ')
}

const line = z.looseObject({ _time: z.string(), _msg: z.string().default('') })

type Rows = { rows: unknown[]; partial: string[] }

/**
 * Asks for a whole answer. A cluster that misses storage nodes refuses that with 502 (https://docs.victoriametrics.com/victorialogs/querying/#partial-responses);
 * then for what the others hold, which nothing in the answer tells from a whole one.
 */
async function askRows(ask: AskSource, form: Record<string, string>): Promise<Rows> {
  const query = (allow_partial_response: '0' | '1') =>
    ask({ method: 'POST', path: '/select/logsql/query', form: { ...form, allow_partial_response }, accept: 'lines' })
  try {
    return { rows: parseRows(String(await query('0'))), partial: [] }
  } catch (error) {
    if (!(error instanceof SourceError) || error.status !== 502) throw error
    const rows = parseRows(String(await query('1')))
    return { rows, partial: ['some of its storage nodes gave no answer (it refused a whole one with 502)'] }
  }
}

function parseRows(text: string): unknown[] {
  try {
    return text.split('\n').flatMap((row) => (row.trim() === '' ? [] : [JSON.parse(row) as unknown]))
  } catch {
    throw new SourceError('BAD_ANSWER', 'it answered lines that are no JSON: is that the address of VictoriaLogs?')
  }
}

/** The end of a window is not part of it. */
const toTimes = ({ fromMs, untilMs }: Range) => ({
  start: new Date(fromMs).toISOString(),
  end: new Date(untilMs - 1).toISOString(),
  timeout: '10s',
})

const readVictoriaLines: LogReader['readLines'] = async (ask, { query, also, limit }, range): Promise<LogAnswer> => {
  const { rows, partial } = await askRows(ask, {
    query: `${toLogsql(query, also)} | fields _time, _msg`,
    limit: String(limit),
    ...toTimes(range),
  })
  const lines = rows.map((row) => {
    const parsed = line.safeParse(row)
    if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered lines without a time')
    return { atMs: parseTime(parsed.data._time), text: parsed.data._msg }
  })
  return { lines, partial }
}

const countedByVictoria = z.looseObject({ total: z.coerce.number() })
const kindsByVictoria = z.record(z.string(), z.string())

/** Counts and times of each pattern in one row; what no line matches has no time. */
function toStats(patterns: readonly string[], { window, before }: { window: Range; before: Range }): string {
  const within = ({ fromMs, untilMs }: Range) =>
    `_time:[${new Date(fromMs).toISOString()}, ${new Date(untilMs).toISOString()})`
  return patterns
    .flatMap((pattern, at) => {
      const kind = `_msg:~${quoteText(pattern)}`
      const here = `if (${within(window)} AND ${kind})`
      return [
        `count() ${here} as c${at}`,
        `count() if (${within(before)} AND ${kind}) as b${at}`,
        `min(_time) ${here} as f${at}`,
        `max(_time) ${here} as l${at}`,
      ]
    })
    .join(', ')
}
const victoriaNames = z.looseObject({ values: z.array(z.looseObject({ value: z.string() })) })

const victoriaReader: LogReader = {
  readLines: readVictoriaLines,
  async countLines(ask, query, range) {
    const form = { query: `${toLogsql(query)} | stats count() as total`, ...toTimes(range) }
    const { rows, partial } = await askRows(ask, form)
    const parsed = countedByVictoria.safeParse(rows[0])
    return parsed.success && partial.length === 0 ? parsed.data.total : null
  },
  async countKinds(ask, query, patterns, ranges) {
    const { window, before } = ranges
    const all = { fromMs: Math.min(window.fromMs, before.fromMs), untilMs: window.untilMs }
    const form = { query: `${toLogsql(query)} | stats ${toStats(patterns, ranges)}`, ...toTimes(all) }
    const { rows, partial } = await askRows(ask, form)
    const parsed = kindsByVictoria.safeParse(rows[0])
    if (!parsed.success || partial.length > 0 || parsed.data.c0 === undefined) return null
    const at = (name: string) => (parsed.data[name] ? parseTime(parsed.data[name]) : null)
    return patterns.map((_, index): KindCount => {
      const [count, earlier] = [Number(parsed.data[`c${index}`]), Number(parsed.data[`b${index}`])]
      return { count, before: earlier, firstMs: at(`f${index}`), lastMs: at(`l${index}`) }
    })
  },
  async countBy(ask, query, { by, grid }) {
    const groups = [`_time:${grid.stepSeconds}s`, ...by.map(quoteText)].join(', ')
    const form = { query: `${toLogsql(query)} | stats by (${groups}) count() as "lines counted"`, ...toTimes(grid) }
    const { rows, partial } = await askRows(ask, form)
    const series = new Map<string, CountedSeries>()
    for (const row of rows) {
      const { _time, 'lines counted': count, ...rest } = z.record(z.string(), z.string()).parse(row)
      const labels = Object.fromEntries(by.flatMap((name) => (rest[name] ? [[name, rest[name]]] : [])))
      const key = JSON.stringify(labels)
      const known = series.get(key) ?? { labels, points: [] }
      series.set(key, known)
      known.points.push([parseTime(_time ?? ''), parseCount(count)])
    }
    return { series: [...series.values()], partial }
  },
  async listLabels(ask, range) {
    const path = `/select/logsql/field_names?${new URLSearchParams({ query: '*', ...toTimes(range) })}`
    return victoriaNames.parse(await ask({ path })).values.map(({ value }) => value)
  },
}

export const victorialogs: SourceKind = {
  kind: 'victorialogs',
  title: 'VictoriaLogs',
  options: z.strictObject({}),
  connect: connectHttp,
  async probe(ask) {
    const now = Date.now()
    const { rows } = await askRows(ask, {
      query: '* | stats count() as total',
      ...toTimes({ fromMs: now - 300_000, untilMs: now }),
    })
    return `it answers queries; ${countedByVictoria.parse(rows[0] ?? { total: 0 }).total} lines in the last five minutes`
  },
  contextOf: { lines: (ask, subject, since) => readLastLines(victoriaReader, ask, subject, since) },
  tools: [searchLogs(victoriaReader)],
}
