import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { idPattern } from '../../domain/kinds.ts'
import { toList, toText } from '../../domain/say.ts'
import { parseDuration, type QueryVerdict } from '../../domain/source.ts'
import { findPatternProblem } from '../../safety/query/pattern.ts'
import { type AskSource, defineSourceTool, fitSummary, SourceError, type ToolReading } from '../kind.ts'
import { findTemplates, type LogLine, type LogTemplate } from './last.ts'

/**
 * A question to logs, the same for every kind of source: labels that name what it is about, words that lines hold, and a window. The kind writes the
 * query from it, so that no text of a model is a query. A device is asked instead for the journal of a unit, or for a file.
 */
export const logQuery = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  labels: z
    .record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_.]*$/, 'is no name of a label'), z.string().min(1).max(200))
    .default({})
    .describe('of a source, as { "instance": "web-1" }'),
  on: z.string().max(100).regex(idPattern, 'is not an identifier of the inventory').optional().describe('a device'),
  unit: z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9][A-Za-z0-9:_.@\\-]*$/, 'is not the name of a service')
    .optional()
    .describe('of it: a service, as nginx.service'),
  path: z
    .string()
    .max(1_000)
    .regex(/^\/[^\0]*$/, 'is not an absolute path')
    .optional()
    .describe('of it: a log file'),
  contains: z.array(z.string().min(1).max(200)).max(5).default([]).describe('each line holds these'),
  excludes: z.array(z.string().min(1).max(200)).max(5).default([]).describe('no line holds these'),
  pattern: z.string().min(1).max(200).optional().describe('RE2'),
  window: z.string().max(20).default('1h').describe('as 30m, 6h'),
  until: z.iso.datetime().optional().describe('RFC 3339; default now'),
})
export type LogQuery = z.output<typeof logQuery>

/** What means something to a device alone, and to a source alone. */
const logFields = {
  deviceFields: ['on', 'unit', 'path'],
  sourceFields: ['source', 'labels', 'excludes', 'pattern', 'until'],
} as const

const maxWindowSeconds = 86_400
const minDeviceSeconds = 60
const maxLabels = 6
/** Lines that are read of a window; the server counts them all. */
export const maxLines = 2_000

const refuse = (reason: string, bounded: Record<string, string> | null = null) => ({
  ok: false as const,
  reason,
  bounded,
})

/** May this be asked as it is? Pure. */
export function judgeLogQuery(query: LogQuery): QueryVerdict {
  const { labels, window, pattern, on, unit, path } = query
  if (on !== undefined) return judgeDeviceLog(query)
  if (unit !== undefined || path !== undefined) return refuse('it names a unit or a path and no device: add on')
  const names = Object.keys(labels)
  if (names.length === 0)
    return refuse(
      'it names nothing: give a label of what it is about, as { "instance": "web-1" }, or on with the device that holds the log',
    )
  if (names.length > maxLabels) return refuse(`it has ${names.length} labels, ${maxLabels} at most`)
  const seconds = parseDuration(window)
  if (seconds === null || seconds <= 0)
    return refuse(`the window ${JSON.stringify(window)} cannot be read: write 30m or 6h`)
  if (seconds > maxWindowSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
  const problem = pattern === undefined ? null : findPatternProblem(pattern)
  return problem === null ? { ok: true } : refuse(problem)
}

/** A device knows no labels: it is asked for one journal or one file. */
function judgeDeviceLog({ unit, path, window, labels, excludes, ...rest }: LogQuery): QueryVerdict {
  const unknown = [
    ...(Object.keys(labels).length > 0 ? ['labels'] : []),
    ...(excludes.length > 0 ? ['excludes'] : []),
    ...(['source', 'pattern', 'until'] as const).filter((field) => rest[field] !== undefined),
  ]
  if (unknown.length > 0) return refuse(`a device takes no ${unknown.join(', ')}: leave them out, or leave out on`)
  if ((unit === undefined) === (path === undefined))
    return refuse('of a device it names a unit, as nginx.service, or the path of a log file: one of them')
  const seconds = parseDuration(window)
  if (seconds === null || seconds < minDeviceSeconds)
    return refuse(`the window ${JSON.stringify(window)} is not one of 1m or more: write 30m or 6h`, { window: '1h' })
  if (seconds > maxWindowSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
  return { ok: true }
}

/** The window in milliseconds. */
function toRange(
  { window, until }: Pick<LogQuery, 'window' | 'until'>,
  nowMs: number,
): { fromMs: number; untilMs: number } {
  const untilMs = until ? Math.min(Date.parse(until), nowMs) : nowMs
  return { fromMs: untilMs - (parseDuration(window) ?? 3_600) * 1_000, untilMs }
}

/** A text as a regular expression that matches it and nothing else (RE2). */
export const quotePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')

/**
 * A text in the quotes of LogQL, LogsQL and PromQL. They take the escapes of Go, which have no half of a surrogate pair: VictoriaLogs would
 * give the quotes up and take the rest for a query. Such a half becomes U+FFFD.
 */
export const quoteText = (text: string): string => JSON.stringify(text.toWellFormed())

/** What a window of logs held, and what the same length of time before it held. */
type LogWindow = {
  lines: readonly LogLine[]
  /** As the server counts them; null where it does not. */
  total: number | null
  before: readonly LogLine[] | null
  /** Why lines may be missing, in the server's words or ours. */
  partial?: readonly string[]
  /** Labels that lines here have, where nothing was found. */
  labelNames?: readonly string[]
}

const error =
  /\b(?:error|err|fatal|panic|critical|crit|alert|emerg|exception|fail(?:ed|ure)?|denied|refused|timed? ?out)\b/i
/** A cause begins before its alert does. */
const leadMs = 15 * 60_000
const maxTemplateCharacters = 220
const maxSamples = 3
const maxSampleCharacters = 300

/** Templates: what is new first, then errors, then what is most frequent; 2 kB at most. The whole is the lines as they came, oldest first. */
function summarizeLogs(
  query: LogQuery,
  found: LogWindow,
  range: { fromMs: number; untilMs: number },
  incidentBeganMs: number | null,
): ToolReading {
  const isNew = ({ firstMs }: LogTemplate) =>
    found.before !== null && firstMs >= Math.max(range.fromMs, (incidentBeganMs ?? 0) - leadMs)
  const rank = (template: LogTemplate) => (isNew(template) ? 2 : 0) + (error.test(template.sample) ? 1 : 0)
  const templates = findTemplates([...(found.before ?? []), ...found.lines], range.fromMs)
    .map((template) => ({ template, rank: rank(template) }))
    .sort((a, b) => b.rank - a.rank || b.template.count - a.template.count)
  const items = templates.map(({ template }, at) => ({
    template: cut(template.text, maxTemplateCharacters),
    count: template.count,
    ...(isNew(template) && { isNew: true }),
    first: toTime(template.firstMs),
    last: toTime(template.lastMs),
    ...(at < maxSamples && { sample: cut(template.sample, maxSampleCharacters) }),
  }))
  const { labels, contains, excludes, pattern, window } = query
  const { partial = [] } = found
  const head = {
    ...(partial.length > 0 && { partial }),
    asked: {
      labels,
      ...(contains.length > 0 && { contains }),
      ...(excludes.length > 0 && { excludes }),
      ...(pattern && { pattern }),
    },
    window,
    until: toTime(range.untilMs),
    lines: found.total ?? found.lines.length,
    ...(found.lines.length >= maxLines && { read: found.lines.length }),
    templatesFound: templates.length,
    ...(found.before === null && { notCompared: 'the window before' }),
    ...(found.labelNames && found.lines.length === 0 && { labelsThere: found.labelNames.slice(0, 30) }),
  }
  const summary = fitSummary(items, (kept, omitted) => ({
    ...head,
    templates: kept,
    ...(omitted > 0 && { notShown: omitted }),
  }))
  const ordered = found.lines.toSorted((a, b) => a.atMs - b.atMs)
  return {
    summary,
    whole: ordered.map(({ atMs, text }) => `${new Date(atMs).toISOString()} ${text.replace(/\s+/g, ' ')}`).join('\n'),
    isEmpty: found.lines.length === 0,
    isPartial: partial.length > 0,
  }
}

const cut = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max - 1)}…`)

const toTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** What a device answered of a log: lines with milliseconds since 1970, or null where a line tells no time. */
type DeviceLog = { lines: readonly (readonly [number | null, string])[]; untilMs: number; isMore: boolean }

/**
 * The same summary as of a source of logs. The time that was asked for is compared with as long before it; lines that tell no time count as
 * written when the file was, and are compared with nothing.
 */
export function summarizeDeviceLog(
  { lines, untilMs, isMore }: DeviceLog,
  asked: { labels: Record<string, string>; contains: string[]; sinceSeconds: number },
  at: { nowMs: number; incidentBeganMs: number | null },
): ToolReading {
  const isTimed = lines.some(([atMs]) => atMs !== null)
  const fromMs = isTimed ? at.nowMs - asked.sinceSeconds * 1_000 : Number.NEGATIVE_INFINITY
  const all = lines.map(([atMs, text]) => ({ atMs: atMs ?? untilMs, text }))
  const found = all.filter(({ atMs }) => atMs >= fromMs)
  // What was cut off at the beginning is missing from the time before.
  const before = isTimed && !isMore ? all.filter(({ atMs }) => atMs < fromMs) : null
  const query = {
    labels: asked.labels,
    contains: asked.contains,
    excludes: [],
    window: formatWindow(asked.sinceSeconds),
  }
  const range = { fromMs: isTimed ? fromMs : 0, untilMs: isTimed ? at.nowMs : untilMs }
  const total = isMore && found.length >= maxLines ? null : found.length
  return summarizeLogs(query, { lines: found, total, before }, range, at.incidentBeganMs)
}

const formatWindow = (seconds: number): string =>
  seconds % 3_600 === 0 ? `${seconds / 3_600}h` : `${Math.round(seconds / 60)}m`

export type Range = { fromMs: number; untilMs: number }

/** Lines, and why some may be missing; nothing there: they are all. */
export type LogAnswer = { lines: LogLine[]; partial: string[] }

/** How a kind of source is asked: it writes its own query from the question. */
export type LogReader = {
  /** The newest lines of a window. */
  readLines(ask: AskSource, query: LogQuery, range: Range): Promise<LogAnswer>
  /** How many lines the window has; null where the server does not say, or says it of a part. */
  countLines(ask: AskSource, query: LogQuery, range: Range): Promise<number | null>
  /** Names of labels that lines of the window have. */
  listLabels(ask: AskSource, range: Range): Promise<string[]>
}

/** What lines say: of templates the first, which is new, an error or the most frequent. */
function sayLogs(summary: Record<string, unknown>, asked: Record<string, unknown>): string {
  const { labels = {}, unit, path, window } = asked
  const about = [unit, path, ...Object.values(labels as object)].map(toText).filter(Boolean).join(', ') || 'the log'
  const lines = Number(summary.lines ?? 0)
  const templates = toList(summary.templates)
  const [first] = templates
  if (lines === 0 || !first) return `${about}: no line${toText(window) && ` in ${toText(window)}`}`
  const max = `${first.isNew ? 'new, ' : ''}${formatCount(Number(first.count), 'time')}: ${toText(first.template)}`
  return `${about}: ${formatCount(lines, 'line')} of ${formatCount(Number(summary.templatesFound), 'kind')}; ${max}`
}

/** `search_logs` of a kind of source. Everything but the lines themselves may be missing, and is said then. */
export const searchLogs = ({ readLines, countLines, listLabels }: LogReader) =>
  defineSourceTool({
    name: 'search_logs',
    description:
      'Search logs of a source (labels) or a device (on): templates with counts, first and last seen, samples; new ones and errors first.',
    input: logQuery,
    alsoOfDevices: logFields,
    judge: judgeLogQuery,
    labels: ({ labels }) => labels,
    say: sayLogs,
    async read(ask, query, { nowMs, incidentBeganMs }) {
      const range = toRange(query, nowMs)
      const earlier = { fromMs: range.fromMs - (range.untilMs - range.fromMs), untilMs: range.fromMs }
      const [{ lines, partial }, total, before] = await Promise.all([
        readLines(ask, query, range).then(check),
        countLines(ask, query, range).catch(() => null),
        readLines(ask, query, earlier)
          .then(check)
          .catch(() => null),
      ])
      const labelNames = lines.length === 0 ? await listLabels(ask, range).catch(() => []) : undefined
      const found = {
        lines,
        partial,
        total: partial.length > 0 ? null : total,
        // What is missing from the time before would be new here.
        before: before && before.partial.length === 0 ? before.lines : null,
        ...(labelNames && { labelNames }),
      }
      return summarizeLogs(query, found, range, incidentBeganMs)
    },
  })

/** Lines that were asked for have a time that a date can hold, and are no more than were asked for. */
function check(answer: LogAnswer): LogAnswer {
  const { lines } = answer
  if (lines.length > maxLines)
    throw new SourceError('BAD_ANSWER', `it answered ${lines.length} lines where ${maxLines} were asked for`)
  if (lines.some(({ atMs }) => Number.isNaN(new Date(atMs).getTime())))
    throw new SourceError('BAD_ANSWER', 'it answered a line with a time that cannot be read')
  return answer
}
