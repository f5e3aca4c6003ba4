import { z } from 'zod'
import { parseDuration, type QueryVerdict } from '../../domain/source.ts'

/**
 * A question to logs, the same for every kind of source: labels that name what it is about, words that lines hold, and a window. The kind writes the
 * query from it, so that no text of a model is a query.
 */
export const logQuery = z.strictObject({
  source: z.string().max(40).optional().describe('which source, where there are several'),
  labels: z
    .record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_.]*$/, 'is no name of a label'), z.string().min(1).max(200))
    .describe('what the lines are about, as { "instance": "web-1" }: one label at least'),
  contains: z.array(z.string().min(1).max(200)).max(5).default([]).describe('texts that each line holds'),
  excludes: z.array(z.string().min(1).max(200)).max(5).default([]).describe('texts that no line holds'),
  pattern: z.string().min(1).max(200).optional().describe('a regular expression (RE2)'),
  window: z.string().max(20).default('1h').describe('how far back, as 30m or 6h'),
  until: z.iso.datetime().optional().describe('end (RFC 3339, UTC); default now'),
})
export type LogQuery = z.output<typeof logQuery>

const mostWindowSeconds = 86_400
const mostLabels = 6
/** Lines that are read of a window; the server counts them all. */
export const mostLines = 2_000

/** May this be asked as it is? Pure. */
export function judgeLogQuery({ labels, window, pattern }: LogQuery): QueryVerdict {
  const refuse = (reason: string, bounded: Record<string, string> | null = null) => ({
    ok: false as const,
    reason,
    bounded,
  })
  const names = Object.keys(labels)
  if (names.length === 0)
    return refuse('it names nothing: give a label of what it is about, as { "instance": "web-1" }')
  if (names.length > mostLabels) return refuse(`it has ${names.length} labels, ${mostLabels} at most`)
  const seconds = parseDuration(window)
  if (seconds === null || seconds <= 0)
    return refuse(`the window ${JSON.stringify(window)} cannot be read: write 30m or 6h`)
  if (seconds > mostWindowSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
  const problem = pattern === undefined ? null : findPatternProblem(pattern)
  return problem === null ? { ok: true } : refuse(problem)
}

/** Only the plain part of RE2: no repeat of a repeat, no counted repeat, nothing that some engines lack. */
function findPatternProblem(pattern: string): string | null {
  if (/\(\?(?!:)/.test(pattern) || /\\[1-9]/.test(pattern))
    return 'the pattern uses what RE2 does not have: flags, look-around or back references'
  if (/\{\d/.test(pattern)) return 'the pattern counts repeats: write + or *'
  if (/[+*?]\)*[+*]/.test(pattern) || /\([^)]*[+*][^)]*\)[+*]/.test(pattern)) return 'the pattern repeats a repeat'
  if (/^[.*+?^$()|\s]*$/.test(pattern)) return 'the pattern matches every line'
  try {
    new RegExp(pattern, 'u')
    return null
  } catch {
    return 'the pattern is no regular expression'
  }
}

/** The window in milliseconds. */
export function toRange(
  { window, until }: Pick<LogQuery, 'window' | 'until'>,
  nowMs: number,
): { fromMs: number; untilMs: number } {
  const untilMs = until ? Math.min(Date.parse(until), nowMs) : nowMs
  return { fromMs: untilMs - (parseDuration(window) ?? 3_600) * 1_000, untilMs }
}

/** A text as a regular expression that matches it and nothing else (RE2). */
export const quotePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
