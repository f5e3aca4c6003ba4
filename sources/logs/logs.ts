import { z } from 'zod'
import { idPattern } from '../../domain/kinds.ts'
import { parseDuration, type QueryVerdict } from '../../domain/source.ts'
import { findLabelPatternProblem, findPatternProblem, narrowsLabels } from '../../safety/query/pattern.ts'
import type { AskSource } from '../kind.ts'
import type { LogLine } from './last.ts'

/**
 * Accepts any value in the model's schema, because an example in words takes less of the model's
 * first turn than a full schema.
 */
const shownByExample = z.unknown()

/** Returns the right form of a value as the error for a wrong type. Other errors stay as usual. */
const formOf = (text: string) => ({
  error: ({ code }: { code?: string }) => (code === 'invalid_type' ? `write ${text}` : undefined),
})
const labelForms = 'write a label as "web-1", or as {"=~": "web-.*"}, {"!=": "web-1"} or {"!~": "web-.*"}: one of them'
const isOneForm = (value: unknown) =>
  typeof value === 'string' || (value instanceof Object && ['=~', '!=', '!~'].includes(Object.keys(value).join()))

/** The conditions on a label besides equality: a regular expression, or a negation. */
const unequal = z.union([
  z.strictObject({ '=~': z.string().min(1).max(200) }),
  z.strictObject({ '!=': z.string().max(200) }),
  z.strictObject({ '!~': z.string().min(1).max(200) }),
])
const labelName = z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_.]*$/, 'is not the name of a label')

/**
 * A query for logs, for every kind of source: labels of the subject, words in lines, and a window.
 * The kind of source writes its own query from these fields, so that no text of a model becomes a
 * query. A query to a device names a unit's journal or a file instead of labels.
 */
export const logQuery = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  labels: z
    .record(
      labelName,
      shownByExample.pipe(
        z.union([z.string().max(200), unequal], { error: ({ input }) => (isOneForm(input) ? undefined : labelForms) }),
      ),
      formOf('{"instance": "web-1"}'),
    )
    .default({})
    .describe('of a source, as {"instance": "web-1", pod: {"=~": "a.*"}}; !='),
  on: z.string().max(100).regex(idPattern, 'is not an identifier of the inventory').optional().describe('a device'),
  unit: z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*$/, 'is not the name of a service')
    .optional()
    .describe('of it: a service'),
  path: z
    .string()
    .max(1_000)
    .regex(/^\/[^\0]*$/, 'is not an absolute path')
    .optional()
    .describe('of it: log or directory'),
  contains: z.array(z.string().min(1).max(200)).max(5).default([]).describe('lines hold these'),
  excludes: z.array(z.string().min(1).max(200)).max(5).default([]).describe('no line holds these'),
  pattern: z.string().min(1).max(200).optional().describe('RE2'),
  window: z.string().max(20).default('1h').describe('as 30m, 6h'),
  until: z.iso.datetime().optional().describe('RFC 3339'),
  count: shownByExample
    .pipe(
      z.strictObject(
        {
          by: z.array(labelName.max(100), formOf('["level"]')).max(2).optional(),
          step: z.string(formOf('"5m"')).max(20).optional(),
        },
        formOf('{"by": ["level"], "step": "5m"}, or {} to count all'),
      ),
    )
    .optional()
    .describe('as {by: ["level"], step: "5m"}'),
})
/**
 * `inLine` lists names that the source has only as fields of the line, in the source's spelling.
 */
export type LogQuery = z.output<typeof logQuery> & { inLine?: readonly string[] }

/** Fields that only devices support, and fields that only sources support. */
export const logFields = {
  deviceFields: ['on', 'unit', 'path'],
  sourceFields: ['source', 'labels', 'excludes', 'pattern', 'until', 'count'],
} as const

const maxWindowSeconds = 86_400
const minDeviceSeconds = 60
const maxLabels = 6
/** The most lines of a window that are read. The server counts all lines. */
export const maxLines = 2_000

const refuse = (reason: string, bounded: Record<string, string> | null = null) => ({
  ok: false as const,
  reason,
  bounded,
})

/** Judges a query for logs by its arguments. Pure. */
export function judgeLogQuery(query: LogQuery): QueryVerdict {
  const { labels, window, pattern, on, unit, path } = query
  if (on !== undefined) return judgeDeviceLog(query)
  if (unit !== undefined || path !== undefined) return refuse('the call names a unit or a path and no device: add "on"')
  const names = Object.keys(labels)
  if (names.length === 0)
    return refuse(
      'no log is named: give a label, as { "instance": "web-1" }, or "on" with the device that holds the log',
    )
  if (names.length > maxLabels) return refuse(`the call has ${names.length} labels, ${maxLabels} at most`)
  const labelProblem = findLabelProblem(query)
  if (labelProblem !== null) return refuse(labelProblem)
  const { by = [], step } = query.count ?? {}
  // Refuses a repeated label, which log stores read as one, and their reserved name `_time`.
  if (new Set(by).size < by.length || by.includes('_time'))
    return refuse(
      'by names a label twice, or the time, which each count has anyway: name another label, or leave out "by"',
    )
  if (step !== undefined && !((parseDuration(step) ?? 0) > 0))
    return refuse(`the step ${JSON.stringify(step)} cannot be read: write 5m`)
  const seconds = parseDuration(window)
  if (seconds === null || seconds <= 0)
    return refuse(`the window ${JSON.stringify(window)} cannot be read: write 30m or 6h`)
  if (seconds > maxWindowSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
  // Refuses a longer step than the window: counts use whole steps, and would read more.
  if (step !== undefined && (parseDuration(step) ?? 0) > seconds)
    return refuse(`the step ${step} is longer than the window ${window}: write a shorter one, or leave it out`)
  const problem = pattern === undefined ? null : findPatternProblem(pattern)
  return problem === null ? { ok: true } : refuse(problem)
}

function findLabelProblem({ labels }: LogQuery): string | null {
  const matchers = listMatchers(labels)
  for (const { name, op, value } of matchers) {
    const problem = op === '=~' || op === '!~' ? findLabelPatternProblem(value) : null
    if (problem !== null) return `${name}: ${problem}`
  }
  const names = matchers.some(({ op, value }) => (op === '=' && value !== '') || (op === '=~' && narrowsLabels(value)))
  return names ? null : 'no label narrows the read: give a label with a value, or with =~ that not all values match'
}

type Matcher = { name: string; op: '=' | '=~' | '!=' | '!~'; value: string }

export const listMatchers = (labels: LogQuery['labels']): Matcher[] =>
  Object.entries(labels).map(([name, is]) => {
    if (typeof is === 'string') return { name, op: '=', value: is }
    const [op, value] = Object.entries(is)[0] as [Matcher['op'], string]
    return { name, op, value }
  })

/** Lists the labels that the query fixes to one value. */
export const listFixed = (labels: LogQuery['labels']): Record<string, string> =>
  Object.fromEntries(listMatchers(labels).flatMap(({ name, op, value }) => (op === '=' ? [[name, value]] : [])))

/** Judges a query to a device, which has no labels and reads one journal or one file. */
function judgeDeviceLog({ unit, path, window, labels, excludes, ...rest }: LogQuery): QueryVerdict {
  const unknown = [
    ...(Object.keys(labels).length > 0 ? ['labels'] : []),
    ...(excludes.length > 0 ? ['excludes'] : []),
    ...(['source', 'pattern', 'until', 'count'] as const).filter((field) => rest[field] !== undefined),
  ]
  if (unknown.length > 0) return refuse(`${unknown.join(', ')} cannot be used with "on": leave out one or the other`)
  if ((unit === undefined) === (path === undefined))
    return refuse('on a device, give either a unit, as nginx.service, or the path of a log file')
  const seconds = parseDuration(window)
  if (seconds === null || seconds < minDeviceSeconds)
    return refuse(`the window ${JSON.stringify(window)} is shorter than 1m or not a time: write 30m or 6h`, {
      window: '1h',
    })
  if (seconds > maxWindowSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
  return { ok: true }
}

export type Range = { fromMs: number; untilMs: number }

/** Converts the window of a query to milliseconds. */
export function toRange({ window, until }: Pick<LogQuery, 'window' | 'until'>, nowMs: number): Range {
  const untilMs = until ? Math.min(Date.parse(until), nowMs) : nowMs
  return { fromMs: untilMs - (parseDuration(window) ?? 3_600) * 1_000, untilMs }
}

/** Writes a text as a regular expression (RE2) that matches exactly this text. */
export const quotePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')

/**
 * Quotes a text for LogQL, LogsQL and PromQL with the escapes of Go. Go cannot escape half of a
 * surrogate pair: VictoriaLogs would end the quote there and read the remaining text as a query.
 * Half of a pair becomes U+FFFD.
 */
export const quoteText = (text: string): string => JSON.stringify(text.toWellFormed())

/** Log lines, and the reasons why lines may be missing. `partial` is empty if none is missing. */
export type LogAnswer = { lines: LogLine[]; partial: string[] }

/**
 * Number of a template's lines in the window and before it, and the first and last time if the
 * server reports them.
 */
export type KindCount = { count: number; before: number; firstMs: number | null; lastMs: number | null }

/** `also` is one more pattern (RE2) that lines must match. Code writes the pattern. */
type Narrowed = { query: LogQuery; also?: string; limit: number }

export type CountedSeries = {
  labels: Record<string, string> /** The beginning of each step, and its number of lines. */
  points: [number, number][]
}
/**
 * A count of lines by labels. The grid has whole steps; of the first and last step, only the part
 * within the window counts.
 */
export type Counting = { by: readonly string[]; grid: Range & { stepSeconds: number }; window: Range }

/** Parses the count of a log store. An empty text is not 0 but NaN. */
export const parseCount = (text = ''): number => (text.trim() === '' ? Number.NaN : Number(text))

/**
 * Reads logs from one kind of source. Writes a query for logs in the source's own query language.
 */
export type LogReader = {
  /** Finds the names in the query that are fields of the line and not labels of the store. */
  place?(ask: AskSource, query: LogQuery, range: Range): Promise<LogQuery>
  /** Reads the newest lines of a window. */
  readLines(ask: AskSource, narrowed: Narrowed, range: Range): Promise<LogAnswer>
  /** Counts the lines of the window. Null if the server gives no count, or counts only a part. */
  countLines(ask: AskSource, query: LogQuery, range: Range): Promise<number | null>
  /**
   * Counts the lines that match each pattern (RE2). Null if the server gives no counts, or counts
   * only a part.
   */
  countKinds(
    ask: AskSource,
    query: LogQuery,
    patterns: readonly string[],
    ranges: { window: Range; before: Range },
  ): Promise<KindCount[] | null>
  /** Counts lines by labels in each step. */
  countBy(ask: AskSource, query: LogQuery, counting: Counting): Promise<{ series: CountedSeries[]; partial: string[] }>
  /** Lists the labels of the lines in the window. */
  listLabels(ask: AskSource, range: Range): Promise<string[]>
}
