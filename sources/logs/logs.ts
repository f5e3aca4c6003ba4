import { z } from 'zod'
import { idPattern } from '../../domain/kinds.ts'
import { parseDuration, type QueryVerdict } from '../../domain/source.ts'
import { findLabelPatternProblem, findPatternProblem, narrowsLabels } from '../../safety/query/pattern.ts'
import type { AskSource } from '../kind.ts'
import type { LogLine } from './last.ts'

/** An example in words for the model: its schema would take more of the first turn than it says. */
const shownByExample = z.unknown()

/** A refusal's words for the right form, where a value has another; the rest is every schema's. */
const formOf = (text: string) => ({
  error: ({ code }: { code?: string }) => (code === 'invalid_type' ? `write ${text}` : undefined),
})
const labelForms = 'write a label as "web-1", or as {"=~": "web-.*"}, {"!=": "web-1"} or {"!~": "web-.*"}: one of them'
const isOneForm = (value: unknown) =>
  typeof value === 'string' || (value instanceof Object && ['=~', '!=', '!~'].includes(Object.keys(value).join()))

/** What a label is besides equal: a regular expression of its whole value, or not this. */
const unequal = z.union([
  z.strictObject({ '=~': z.string().min(1).max(200) }),
  z.strictObject({ '!=': z.string().max(200) }),
  z.strictObject({ '!~': z.string().min(1).max(200) }),
])
const labelName = z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_.]*$/, 'is no name of a label')

/**
 * A question to logs, alike for every kind of source: labels of the subject, words in lines, and a
 * window. The kind writes the query from it, so that no model's text is a query. A device is asked
 * instead for a unit's journal, or a file.
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
/** `inLine`: names that the source has only as fields of the line, by its spelling. */
export type LogQuery = z.output<typeof logQuery> & { inLine?: readonly string[] }

/** What means something to a device alone, and to a source alone. */
export const logFields = {
  deviceFields: ['on', 'unit', 'path'],
  sourceFields: ['source', 'labels', 'excludes', 'pattern', 'until', 'count'],
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
  const labelProblem = findLabelProblem(query)
  if (labelProblem !== null) return refuse(labelProblem)
  const { by = [], step } = query.count ?? {}
  // Each store has its own word for the step that a count is of, and a label twice is one.
  if (new Set(by).size < by.length || by.includes('_time'))
    return refuse(
      'it counts by one label twice, or by the time, which each count has: write another label, or leave it out',
    )
  if (step !== undefined && !((parseDuration(step) ?? 0) > 0))
    return refuse(`the step ${JSON.stringify(step)} cannot be read: write 5m`)
  const seconds = parseDuration(window)
  if (seconds === null || seconds <= 0)
    return refuse(`the window ${JSON.stringify(window)} cannot be read: write 30m or 6h`)
  if (seconds > maxWindowSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
  // Whole steps are counted: a longer one reads more than the window.
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
  return names
    ? null
    : 'no label of it narrows what is read: give one as a value, or as =~ of what not all values match'
}

type Matcher = { name: string; op: '=' | '=~' | '!=' | '!~'; value: string }

export const listMatchers = (labels: LogQuery['labels']): Matcher[] =>
  Object.entries(labels).map(([name, is]) => {
    if (typeof is === 'string') return { name, op: '=', value: is }
    const [op, value] = Object.entries(is)[0] as [Matcher['op'], string]
    return { name, op, value }
  })

/** Labels that the question fixes to one value. */
export const listFixed = (labels: LogQuery['labels']): Record<string, string> =>
  Object.fromEntries(listMatchers(labels).flatMap(({ name, op, value }) => (op === '=' ? [[name, value]] : [])))

/** A device knows no labels: it is asked for one journal or one file. */
function judgeDeviceLog({ unit, path, window, labels, excludes, ...rest }: LogQuery): QueryVerdict {
  const unknown = [
    ...(Object.keys(labels).length > 0 ? ['labels'] : []),
    ...(excludes.length > 0 ? ['excludes'] : []),
    ...(['source', 'pattern', 'until', 'count'] as const).filter((field) => rest[field] !== undefined),
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

export type Range = { fromMs: number; untilMs: number }

/** The window in milliseconds. */
export function toRange({ window, until }: Pick<LogQuery, 'window' | 'until'>, nowMs: number): Range {
  const untilMs = until ? Math.min(Date.parse(until), nowMs) : nowMs
  return { fromMs: untilMs - (parseDuration(window) ?? 3_600) * 1_000, untilMs }
}

/** A text as a regular expression that matches it and nothing else (RE2). */
export const quotePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')

/**
 * A text in quotes of LogQL, LogsQL and PromQL, with Go's escapes, which have no half of a
 * surrogate pair: VictoriaLogs would give the quotes up and take the rest for a query. Such a half
 * becomes U+FFFD.
 */
export const quoteText = (text: string): string => JSON.stringify(text.toWellFormed())

/** Lines, and why some may be missing; nothing there: they are all. */
export type LogAnswer = { lines: LogLine[]; partial: string[] }

/** A kind's lines in the window and before, and their times there, if the server tells. */
export type KindCount = { count: number; before: number; firstMs: number | null; lastMs: number | null }

/** Only lines that match this besides: RE2, written by us. */
type Narrowed = { query: LogQuery; also?: string; limit: number }

export type CountedSeries = {
  labels: Record<string, string> /** The beginning of a step, and lines in it. */
  points: [number, number][]
}
/** The grid has whole steps; only the window's part of the first and last counts. */
export type Counting = { by: readonly string[]; grid: Range & { stepSeconds: number }; window: Range }

/** An empty text is no 0. */
export const parseCount = (text = ''): number => (text.trim() === '' ? Number.NaN : Number(text))

/** How a kind of source is asked: it writes its own query from the question. */
export type LogReader = {
  /** Finds which asked names are fields of the line, where the store tells them from labels. */
  place?(ask: AskSource, query: LogQuery, range: Range): Promise<LogQuery>
  /** The newest lines of a window. */
  readLines(ask: AskSource, narrowed: Narrowed, range: Range): Promise<LogAnswer>
  /** How many lines the window has; null where the server does not say, or says it of a part. */
  countLines(ask: AskSource, query: LogQuery, range: Range): Promise<number | null>
  /**
   * The same for each of these patterns (RE2); null where the server does not say, or says it of a
   * part.
   */
  countKinds(
    ask: AskSource,
    query: LogQuery,
    patterns: readonly string[],
    ranges: { window: Range; before: Range },
  ): Promise<KindCount[] | null>
  /** Lines by these labels in each step. */
  countBy(ask: AskSource, query: LogQuery, counting: Counting): Promise<{ series: CountedSeries[]; partial: string[] }>
  /** Names of labels that lines of the window have. */
  listLabels(ask: AskSource, range: Range): Promise<string[]>
}
