import { z } from 'zod'
import { parseTime } from '../../domain/format.ts'
import { connectHttp } from '../connect-http.ts'
import { type AskSource, SourceError, type SourceKind } from '../kind.ts'
import { readLastLines } from './last.ts'
import {
  type CountedSeries,
  type KindCount,
  type LogAnswer,
  type LogQuery,
  type LogReader,
  listMatchers,
  parseCount,
  quotePattern,
  quoteText,
  type Range,
} from './logs.ts'
import { searchLogs } from './search.ts'

/** Reads VictoriaLogs (https://docs.victoriametrics.com/victorialogs/querying/) in LogsQL. */

/**
 * Writes a query in LogsQL, with one more pattern if given. Names and texts are quoted, so that
 * none is read as part of the query.
 */
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
 * Requests a complete response. A cluster without some storage nodes refuses this request with 502
 * (https://docs.victoriametrics.com/victorialogs/querying/#partial-responses). Then requests the
 * data of the remaining nodes, which looks like a complete response.
 */
async function askRows(ask: AskSource, form: Record<string, string>): Promise<Rows> {
  const query = (allow_partial_response: '0' | '1') =>
    ask({ method: 'POST', path: '/select/logsql/query', form: { ...form, allow_partial_response }, accept: 'lines' })
  try {
    return { rows: parseRows(String(await query('0'))), partial: [] }
  } catch (error) {
    if (!(error instanceof SourceError) || error.status !== 502) throw error
    const rows = parseRows(String(await query('1')))
    return { rows, partial: ['some of its storage nodes did not answer (a complete answer was refused with 502)'] }
  }
}

function parseRows(text: string): unknown[] {
  try {
    return text.split('\n').flatMap((row) => (row.trim() === '' ? [] : [JSON.parse(row) as unknown]))
  } catch {
    throw new SourceError('BAD_ANSWER', 'the lines are not JSON: is this the address of VictoriaLogs?')
  }
}

/** Converts a range to parameters of a query. The range's end is not part of it. */
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
    if (!parsed.success) throw new SourceError('BAD_ANSWER', 'the source sent lines without a time')
    return { atMs: parseTime(parsed.data._time), text: parsed.data._msg }
  })
  return { lines, partial }
}

const countedByVictoria = z.looseObject({ total: z.coerce.number() })
const kindsByVictoria = z.record(z.string(), z.string())

/**
 * Writes a query for the counts and times of each pattern in one row. A pattern without a line has
 * no time.
 */
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
  async countBy(ask, query, { by, grid, window }) {
    const groups = [`_time:${grid.stepSeconds}s`, ...by.map(quoteText)].join(', ')
    const form = { query: `${toLogsql(query)} | stats by (${groups}) count() as "lines counted"`, ...toTimes(window) }
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
    return `the source answers queries; ${countedByVictoria.parse(rows[0] ?? { total: 0 }).total} lines in the last five minutes`
  },
  contextOf: { lines: (ask, subject, since) => readLastLines(victoriaReader, ask, subject, since) },
  tools: [searchLogs(victoriaReader)],
}
