import { formatCount } from '../../domain/format.ts'
import { toList, toText } from '../../domain/say.ts'
import { fitSummary, type ToolReading } from '../kind.ts'
import { trouble } from './kinds.ts'
import { findTemplates, type LogLine, type LogTemplate, withoutKeys } from './last.ts'
import type { KindCount, LogQuery, Range } from './logs.ts'

/** The lines of a window of logs, and of the time before it. */
type LogWindow = {
  lines: readonly LogLine[]
  /** Number of all lines of the window, as the server counts them. Null without such a count. */
  total: number | null
  /** True if lines of the window were left out. */
  isCut: boolean
  /** All lines from the time before the window. Null if some are missing. */
  before: readonly LogLine[] | null
  /** The time from which an unknown template counts as new. Null if nothing is compared. */
  newSinceMs: number | null
  /** The server's counts of templates, by template. */
  counted?: ReadonlyMap<string, KindCount>
  /** Reasons why lines may be missing, as the server or this code describes them. */
  partial?: readonly string[]
  /** Labels that lines in the window have, given if the query found nothing. */
  labelNames?: readonly string[]
  /** Labels of the query that no line of the window has. */
  unknownLabels?: readonly string[]
}

/** Milliseconds by which a cause may precede the alert. */
const leadMs = 15 * 60_000
const maxTemplateCharacters = 220
const maxSamples = 3
const maxSampleCharacters = 300
const maxLabelNames = 30

/**
 * Returns the time from which templates count as new: the window's beginning, or a quarter of an
 * hour before the incident began.
 */
export const newSince = ({ fromMs }: Range, incidentBeganMs: number | null): number =>
  incidentBeganMs === null ? fromMs : incidentBeganMs - leadMs

/** Returns an equally long range that ends before anything that may be new. */
export function rangeBefore({ fromMs, untilMs }: Range, newSinceMs: number): Range {
  const end = Math.min(fromMs, newSinceMs)
  return { fromMs: end - (untilMs - fromMs), untilMs: end }
}

type LogKind = LogTemplate & { isNew: boolean; isOfRead: boolean; hasFirst: boolean }

/** Lists templates with their counts. If lines were left out, only the server's counts are used. */
function listKinds({ lines, before, isCut, counted, newSinceMs }: LogWindow, { fromMs }: Range): LogKind[] {
  const known = isCut ? [] : (before ?? [])
  return findTemplates([...known, ...lines], fromMs).map((template) => {
    const of = counted?.get(template.text)
    const isSince = newSinceMs !== null && template.lastMs >= newSinceMs
    if (!isCut && before !== null)
      return {
        ...template,
        isNew: isSince && template.firstMs >= Math.max(fromMs, newSinceMs),
        isOfRead: false,
        hasFirst: true,
      }
    const isNew = isSince && of !== undefined && of.before === 0
    if (!isCut || !of) return { ...template, isNew, isOfRead: isCut, hasFirst: !isCut }
    const { count, firstMs, lastMs } = of
    const times = { firstMs: firstMs ?? template.firstMs, lastMs: Math.max(lastMs ?? 0, template.lastMs) }
    return { ...template, ...times, count, isNew, isOfRead: false, hasFirst: firstMs !== null }
  })
}

/**
 * Summarizes templates in at most 2 kB: new ones first, then errors, then the most frequent. The
 * complete text has the lines, the oldest first.
 */
export function summarizeLogs(query: LogQuery, given: LogWindow, range: Range): ToolReading {
  const found = { ...given, lines: withoutKeys(given.lines), before: given.before && withoutKeys(given.before) }
  const rank = ({ isNew, sample }: LogKind) => (isNew ? 2 : 0) + (trouble.test(sample) ? 1 : 0)
  const kinds = listKinds(found, range).sort((a, b) => rank(b) - rank(a) || b.count - a.count)
  const isAllOfRead = found.isCut && kinds.every(({ isOfRead }) => isOfRead)
  const items = kinds.map((kind, at) => ({
    template: cut(kind.text, maxTemplateCharacters),
    count: kind.count,
    ...(kind.isOfRead && !isAllOfRead && { ofRead: true }),
    ...(kind.isNew && { isNew: true }),
    ...(kind.hasFirst && { first: toTime(kind.firstMs) }),
    last: toTime(kind.lastMs),
    ...(at < maxSamples && { sample: cut(kind.sample, maxSampleCharacters) }),
  }))
  const total = found.total ?? (found.isCut ? null : found.lines.length)
  const head = headOf(query, found, range, {
    total,
    kinds: kinds.length,
    isAllOfRead,
    hasNew: kinds.some(({ isNew }) => isNew),
  })
  const summary = fitSummary(items, (kept, omitted) => {
    const covered = kinds.slice(0, kept.length).reduce((sum, { count }) => sum + count, 0)
    const isCounted = total !== null && kinds.slice(0, kept.length).every(({ isOfRead }) => !isOfRead)
    return {
      ...head,
      templates: kept,
      ...(omitted > 0 && { notShown: omitted }),
      ...(isCounted && total > covered && { otherLines: total - covered }),
    }
  })
  const { partial = [] } = found
  return {
    summary,
    whole: found.lines
      .map(({ atMs, text }) => `${new Date(atMs).toISOString()} ${text.replace(/\s+/g, ' ')}`)
      .join('\n'),
    isEmpty: found.lines.length === 0 && !found.isCut && !found.unknownLabels?.length,
    isPartial: partial.length > 0,
    ...(found.isCut && { isCut: true }),
  }
}

/** Returns the query's conditions on lines. */
export const toAsked = ({ labels, contains, excludes, pattern }: LogQuery) => ({
  labels,
  ...(contains.length > 0 && { contains }),
  ...(excludes.length > 0 && { excludes }),
  ...(pattern && { pattern }),
})

type Counted = { total: number | null; kinds: number; isAllOfRead: boolean; hasNew: boolean }

function headOf(query: LogQuery, found: LogWindow, { untilMs }: Range, { total, kinds, isAllOfRead, hasNew }: Counted) {
  const { partial = [], labelNames, unknownLabels = [], lines, isCut, newSinceMs, before, counted } = found
  const read = formatCount(lines.length, 'line')
  return {
    ...(partial.length > 0 && { partial }),
    asked: toAsked(query),
    window: query.window,
    until: toTime(untilMs),
    ...(total === null ? { linesMoreThan: lines.length } : { lines: total }),
    ...(isCut && {
      read: lines.length,
      counts: isAllOfRead ? `of the ${read} read alone` : 'by the store, of all lines',
    }),
    templatesFound: kinds,
    ...(hasNew && newSinceMs !== null && { newSince: toTime(newSinceMs) }),
    ...((newSinceMs === null || (before === null && !counted)) && { notCompared: 'the window before' }),
    ...(unknownLabels.length > 0 && { unknownLabels }),
    ...(labelNames && lines.length === 0 && { labelsThere: labelNames.slice(0, maxLabelNames) }),
    ...(labelNames && labelNames.length > maxLabelNames && { labelsMore: labelNames.length - maxLabelNames }),
  }
}

const cut = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max - 1)}…`)

const toTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/**
 * The log that a device returns: lines with milliseconds since 1970, or null for a line without a
 * time.
 */
type DeviceLog = {
  lines: readonly (readonly [number | null, string])[]
  untilMs: number
  isMore: boolean
  /** Number of files in the log's directory that were not read. */
  unread?: number
}

/**
 * Summarizes the log of a device like the log of a source. Compares the requested time with the
 * equally long time before it. If no line has a time, all lines get the time of the file's last
 * change, and are not compared.
 */
export function summarizeDeviceLog(
  { lines, untilMs, isMore, unread = 0 }: DeviceLog,
  asked: { labels: Record<string, string>; contains: string[]; sinceSeconds: number },
  at: { nowMs: number; incidentBeganMs: number | null },
): ToolReading {
  const isTimed = lines.some(([atMs]) => atMs !== null)
  const fromMs = isTimed ? at.nowMs - asked.sinceSeconds * 1_000 : Number.NEGATIVE_INFINITY
  // Gives lines before the first line with a time the time of this line, because they are no newer.
  const firstMs = lines.find(([atMs]) => atMs !== null)?.[0] ?? untilMs
  const all = lines.map(([atMs, text]) => ({ atMs: atMs ?? firstMs, text }))
  const found = all.filter(({ atMs }) => atMs >= fromMs)
  const range = { fromMs: isTimed ? fromMs : 0, untilMs: isTimed ? at.nowMs : untilMs }
  const since = newSince(range, at.incidentBeganMs)
  // Counts the window as cut only if the log lacks all lines from before it. A log that is cut at
  // its beginning first lacks those lines.
  const isCut = isMore && found.length === all.length
  const readFromMs = fromMs - asked.sinceSeconds * 1_000
  const before = isTimed && !isMore && readFromMs < since ? all.filter(({ atMs }) => atMs < fromMs) : null
  const query = {
    labels: asked.labels,
    contains: asked.contains,
    excludes: [],
    window: isTimed ? formatWindow(asked.sinceSeconds) : 'unknown: no line has a time',
  }
  // Marks the result as partial: the newest file says nothing about the other files.
  const partial = unread > 0 ? [`only the newest file was read, and ${formatCount(unread, 'other')} not`] : []
  const log = { lines: found, total: null, isCut, before, newSinceMs: before ? since : null, partial }
  return summarizeLogs(query, log, range)
}

const formatWindow = (seconds: number): string =>
  seconds % 3_600 === 0 ? `${seconds / 3_600}h` : `${Math.round(seconds / 60)}m`

/** Returns the label values, the unit or the path that a query is about. */
export function nameAsked({ labels = {}, unit, path }: Record<string, unknown>): string {
  const named = Object.entries(labels as object).map(([name, is]) =>
    typeof is === 'string' ? is : `${name} ${Object.entries(is).flat().join(' ')}`,
  )
  return [unit, path, ...named].map(toText).filter(Boolean).join(', ') || 'the log'
}

/** Describes the query's labels that no line has: such a query finds nothing. */
export function sayUnknown({ unknownLabels }: Record<string, unknown>): string {
  const names = Array.isArray(unknownLabels) ? unknownLabels.map(toText).join(', ') : ''
  return names === '' ? '' : `; no line has a label ${names}`
}

/** Describes the first template of a summary, which is new, an error, or the most frequent. */
export function sayLogs(summary: Record<string, unknown>, asked: Record<string, unknown>): string {
  const { window, until } = asked
  const about = nameAsked(asked)
  const lines = Number(summary.lines ?? summary.linesMoreThan ?? 0)
  const templates = toList(summary.templates)
  const [first] = templates
  const isPart = summary.lines === undefined && summary.linesMoreThan !== undefined
  const of = `${toText(window) && ` in ${toText(window)}`}${toText(until) && ` until ${toText(until)}`}`
  if (lines === 0 || !first) {
    if (summary.partial !== undefined) return `${about}: nothing seen${of}`
    return `${about}: no line${isPart ? ' among what was read' : ''}${of}${sayUnknown(summary)}`
  }
  const max = `${first.isNew ? 'new, ' : ''}${formatCount(Number(first.count), 'time')}: ${toText(first.template)}`
  const all = `${isPart ? 'more than ' : ''}${formatCount(lines, 'line')}`
  return `${about}: ${all} of ${formatCount(Number(summary.templatesFound), 'kind')}; ${max}`
}
