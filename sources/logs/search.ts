import { type AskSource, defineSourceTool, SourceError } from '../kind.ts'
import { readCounts, sayCounts } from './counts.ts'
import { findPatterns, trouble, troublePattern } from './kinds.ts'
import { findUnknownLabels } from './labels.ts'
import { groupLines, type LogLine, type LogTemplate } from './last.ts'
import {
  judgeLogQuery,
  type KindCount,
  type LogAnswer,
  type LogQuery,
  type LogReader,
  listFixed,
  logFields,
  logQuery,
  maxLines,
  type Range,
  toRange,
} from './logs.ts'
import { newSince, rangeBefore, sayLogs, summarizeLogs } from './summary.ts'

/**
 * The tool `search_logs` of a kind of source. Any part of the result except the lines may be
 * missing; the tool then reports it.
 */
export const searchLogs = (reader: LogReader) =>
  defineSourceTool({
    name: 'search_logs',
    description: 'Search logs of a source (labels) or a device (on): templates with counts, new and errors first.',
    input: logQuery,
    alsoOfDevices: logFields,
    judge: judgeLogQuery,
    labels: ({ labels }) => listFixed(labels),
    say: (summary, asked) => (Array.isArray(summary.series) ? sayCounts : sayLogs)(summary, asked),
    async read(ask, asked, { nowMs, incidentBeganMs }) {
      const range = toRange(asked, nowMs)
      const query = (await reader.place?.(ask, asked, range)) ?? asked
      if (query.count) return await readCounts(reader, ask, query, range, { nowMs, incidentBeganMs })
      const newSinceMs = newSince(range, incidentBeganMs)
      const earlier = rangeBefore(range, newSinceMs)
      const [newest, total, before] = await Promise.all([
        readNewest(reader, ask, { query, limit: maxLines }, range),
        reader.countLines(ask, query, range).catch(() => null),
        readNewest(reader, ask, { query, limit: maxLines }, earlier).catch(() => null),
      ])
      const { partial } = newest
      const isCut = newest.lines.length >= maxLines || (total ?? 0) > newest.lines.length
      const isWhole = before !== null && before.partial.length === 0 && before.lines.length < maxLines
      const lines =
        isCut && partial.length === 0 ? await addTrouble(reader, ask, query, range, newest.lines) : newest.lines
      const isAsked = partial.length === 0 && (isCut || (before !== null && !isWhole && before.partial.length === 0))
      const counted = isAsked
        ? await countKinds(reader, ask, query, {
            lines,
            window: range,
            before: { fromMs: earlier.fromMs, untilMs: Math.min(newSinceMs, range.untilMs) },
          })
        : null
      const names = lines.length === 0 ? await findUnknownLabels(reader, ask, query, range) : undefined
      const found = {
        lines,
        partial,
        isCut,
        total: partial.length > 0 ? null : isCut ? total : lines.length,
        // Compares nothing if lines from before the window are missing, because a known line would
        // then look new.
        before: isWhole ? before.lines : null,
        newSinceMs: partial.length > 0 || (isCut && !counted) ? null : newSinceMs,
        ...(counted && { counted }),
        ...(names && { labelNames: names.there ?? [], unknownLabels: names.unknown }),
      }
      return summarizeLogs(query, found, range)
    },
  })

/**
 * Reads half of the lines of a large window by words of trouble, because the newest lines may cover
 * only one minute.
 */
async function addTrouble(
  reader: LogReader,
  ask: AskSource,
  query: LogQuery,
  range: Range,
  newest: readonly LogLine[],
): Promise<readonly LogLine[]> {
  const half = maxLines / 2
  const ordered = newest.toSorted((a, b) => b.atMs - a.atMs).slice(0, half)
  const sinceMs = ordered.at(-1)?.atMs ?? range.untilMs
  const older = { fromMs: range.fromMs, untilMs: sinceMs }
  if (older.untilMs <= older.fromMs) return ordered
  const found = await readNewest(reader, ask, { query, also: troublePattern, limit: half }, older).catch(() => null)
  return [...ordered, ...(found?.lines ?? []).filter(({ atMs, text }) => atMs < sinceMs && trouble.test(text))]
}

/** The most templates that are counted, and the most characters of their patterns in a query. */
const maxKinds = 12
const maxPatternCharacters = 2_500

type Counting = { lines: readonly LogLine[]; window: Range; before: Range }

/** Returns the server's counts of the shown templates. Null if the server gives no counts. */
async function countKinds(
  reader: LogReader,
  ask: AskSource,
  query: LogQuery,
  { lines, window, before }: Counting,
): Promise<Map<string, KindCount> | null> {
  const groups = groupLines(lines)
  const rank = ({ sample }: LogTemplate) => Number(trouble.test(sample))
  const kinds = [...new Set(groups)].sort((a, b) => rank(b) - rank(a) || b.count - a.count).slice(0, maxKinds)
  let left = maxPatternCharacters
  const asked = findPatterns(kinds, lines, groups).flatMap((pattern, at) => {
    left -= pattern?.length ?? 0
    return pattern === null || left < 0 ? [] : [{ pattern, text: (kinds[at] as LogTemplate).text }]
  })
  if (asked.length === 0) return null
  const patterns = asked.map(({ pattern }) => pattern)
  const counts = await reader.countKinds(ask, query, patterns, { window, before }).catch(() => null)
  return counts && new Map(asked.flatMap(({ text }, at) => (counts[at] ? [[text, counts[at]] as const] : [])))
}

type Narrowed = Parameters<LogReader['readLines']>[1]

/** Reads the newest lines. Keeps lines with a valid time, and no more lines than requested. */
async function readNewest(reader: LogReader, ask: AskSource, narrowed: Narrowed, range: Range): Promise<LogAnswer> {
  const answer = await reader.readLines(ask, narrowed, range)
  const { lines } = answer
  if (lines.length > narrowed.limit)
    throw new SourceError(
      'BAD_ANSWER',
      `the source sent ${lines.length} lines, but at most ${narrowed.limit} were requested`,
    )
  if (lines.some(({ atMs }) => Number.isNaN(new Date(atMs).getTime())))
    throw new SourceError('BAD_ANSWER', 'the source sent a line with a time that cannot be read')
  return answer
}
