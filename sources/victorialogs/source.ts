import { z } from 'zod'
import { type Ask, SourceError, type SourceKind } from '../kind.ts'
import { type LogQuery, mostLines, quotePattern, quoteText, type Range, searchLogs } from '../logs/logs.ts'

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

const askRows = async (ask: Ask, path: string, form: Record<string, string>): Promise<unknown[]> => {
  const text = String(await ask({ method: 'POST', path, form, accept: 'lines' }))
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

async function readLines(ask: Ask, query: LogQuery, range: Range) {
  const rows = await askRows(ask, '/select/logsql/query', {
    query: `${toLogsql(query)} | fields _time, _msg`,
    limit: String(mostLines),
    ...toTimes(range),
  })
  return rows.map((row) => {
    const parsed = line.safeParse(row)
    if (!parsed.success) throw new SourceError('BAD_ANSWER', 'it answered lines without a time')
    return { atMs: Date.parse(parsed.data._time), text: parsed.data._msg }
  })
}

const counted = z.looseObject({ total: z.coerce.number() })
const names = z.looseObject({ values: z.array(z.looseObject({ value: z.string() })) })

export const victorialogs: SourceKind = {
  kind: 'victorialogs',
  title: 'VictoriaLogs',
  options: z.strictObject({}),
  async probe(ask) {
    const now = Date.now()
    const rows = await askRows(ask, '/select/logsql/query', {
      query: '* | stats count() as total',
      ...toTimes({ fromMs: now - 300_000, untilMs: now }),
    })
    return `it answers queries; ${counted.parse(rows[0] ?? { total: 0 }).total} lines in the last five minutes`
  },
  tools: [
    searchLogs({
      readLines,
      async countLines(ask, query, range) {
        const form = { query: `${toLogsql(query)} | stats count() as total`, ...toTimes(range) }
        const parsed = counted.safeParse((await askRows(ask, '/select/logsql/query', form))[0])
        return parsed.success ? parsed.data.total : null
      },
      async listLabels(ask, range) {
        const path = `/select/logsql/field_names?${new URLSearchParams({ query: '*', ...toTimes(range) })}`
        return names.parse(await ask({ path })).values.map(({ value }) => value)
      },
    }),
  ],
}
