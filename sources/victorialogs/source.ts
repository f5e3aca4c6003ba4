import { z } from 'zod'
import { parseTime } from '../../domain/format.ts'
import { type Ask, SourceError, type SourceKind } from '../kind.ts'
import { readLastLines } from '../logs/last.ts'
import {
  type LogAnswer,
  type LogQuery,
  type LogReader,
  mostLines,
  quotePattern,
  quoteText,
  type Range,
  searchLogs,
} from '../logs/logs.ts'

/** VictoriaLogs' HTTP API (https://docs.victoriametrics.com/victorialogs/querying/) in LogsQL. */

/** A question as LogsQL. Each name and text is quoted, so that none is read as part of the query. */
export function toLogsql({ labels, contains, excludes, pattern }: LogQuery): string {
  return [
    ...Object.entries(labels).map(([name, value]) => `${quoteText(name)}:=${quoteText(value)}`),
    ...contains.map((text) => `_msg:~${quoteText(quotePattern(text))}`),
    ...excludes.map((text) => `!_msg:~${quoteText(quotePattern(text))}`),
    ...(pattern === undefined ? [] : [`_msg:~${quoteText(pattern)}`]),
  ].join(' AND ')
}

const line = z.looseObject({ _time: z.string(), _msg: z.string().default('') })

type Rows = { rows: unknown[]; partial: string[] }

/**
 * Asks for a whole answer. A cluster that misses storage nodes refuses that with 502 (https://docs.victoriametrics.com/victorialogs/querying/#partial-responses);
 * then for what the others hold, which nothing in the answer tells from a whole one.
 */
async function askRows(ask: Ask, form: Record<string, string>): Promise<Rows> {
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

async function readLines(ask: Ask, query: LogQuery, range: Range): Promise<LogAnswer> {
  const { rows, partial } = await askRows(ask, {
    query: `${toLogsql(query)} | fields _time, _msg`,
    limit: String(mostLines),
    ...toTimes(range),
  })
  const lines = rows.map((row) => {
    const parsed = line.safeParse(row)
    if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered lines without a time')
    return { atMs: parseTime(parsed.data._time), text: parsed.data._msg }
  })
  return { lines, partial }
}

const counted = z.looseObject({ total: z.coerce.number() })
const names = z.looseObject({ values: z.array(z.looseObject({ value: z.string() })) })

const reader: LogReader = {
  readLines,
  async countLines(ask, query, range) {
    const form = { query: `${toLogsql(query)} | stats count() as total`, ...toTimes(range) }
    const { rows, partial } = await askRows(ask, form)
    const parsed = counted.safeParse(rows[0])
    return parsed.success && partial.length === 0 ? parsed.data.total : null
  },
  async listLabels(ask, range) {
    const path = `/select/logsql/field_names?${new URLSearchParams({ query: '*', ...toTimes(range) })}`
    return names.parse(await ask({ path })).values.map(({ value }) => value)
  },
}

export const victorialogs: SourceKind = {
  kind: 'victorialogs',
  title: 'VictoriaLogs',
  options: z.strictObject({}),
  async probe(ask) {
    const now = Date.now()
    const { rows } = await askRows(ask, {
      query: '* | stats count() as total',
      ...toTimes({ fromMs: now - 300_000, untilMs: now }),
    })
    return `it answers queries; ${counted.parse(rows[0] ?? { total: 0 }).total} lines in the last five minutes`
  },
  lastLines: (ask, subject, nowMs) => readLastLines(reader, ask, subject, nowMs),
  tools: [searchLogs(reader)],
}
