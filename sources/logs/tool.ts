import { type Ask, defineSourceTool } from '../kind.ts'
import type { LogLine } from './drain.ts'
import { judgeLogQuery, type LogQuery, logQuery, toRange } from './query.ts'
import { summarizeLogs } from './summary.ts'

export type Range = { fromMs: number; untilMs: number }

/** How a kind of source is asked: it writes its own query from the question. */
export type LogReader = {
  /** The newest lines of a window. */
  readLines(ask: Ask, query: LogQuery, range: Range): Promise<LogLine[]>
  /** How many lines the window has. */
  countLines(ask: Ask, query: LogQuery, range: Range): Promise<number | null>
  /** Names of labels that lines of the window have. */
  listLabels(ask: Ask, range: Range): Promise<string[]>
}

/** `search_logs` of a kind of source. Everything but the lines themselves may be missing, and is said then. */
export const searchLogs = ({ readLines, countLines, listLabels }: LogReader) =>
  defineSourceTool({
    name: 'search_logs',
    description: 'Search logs: templates with counts, first and last seen, and samples; what is new and errors first.',
    input: logQuery,
    judge: judgeLogQuery,
    labels: ({ labels }) => labels,
    async read(ask, query, { nowMs, incidentBeganMs }) {
      const range = toRange(query, nowMs)
      const earlier = { fromMs: range.fromMs - (range.untilMs - range.fromMs), untilMs: range.fromMs }
      const [lines, total, before] = await Promise.all([
        readLines(ask, query, range),
        countLines(ask, query, range).catch(() => null),
        readLines(ask, query, earlier).catch(() => null),
      ])
      const labelNames = lines.length === 0 ? await listLabels(ask, range).catch(() => []) : undefined
      return summarizeLogs(query, { lines, total, before, ...(labelNames && { labelNames }) }, range, incidentBeganMs)
    },
  })
