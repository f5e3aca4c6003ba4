import { fitSummary, type ToolReading } from '../kind.ts'
import { findTemplates, type LogLine, type Template } from './drain.ts'
import { type LogQuery, mostLines } from './query.ts'

/** What a window of logs held, and what the same length of time before it held. */
export type Found = {
  lines: readonly LogLine[]
  /** As the server counts them; null where it does not. */
  total: number | null
  before: readonly LogLine[] | null
  /** Labels that lines here have, where nothing was found. */
  labelNames?: readonly string[]
}

const error =
  /\b(?:error|err|fatal|panic|critical|crit|alert|emerg|exception|fail(?:ed|ure)?|denied|refused|timed? ?out)\b/i
/** A cause begins before its alert does. */
const leadMs = 15 * 60_000
const mostTemplateCharacters = 220
const mostSamples = 3
const mostSampleCharacters = 300

/** Templates: what is new first, then errors, then what is most frequent; 2 kB at most. The whole is the lines as they came, oldest first. */
export function summarizeLogs(
  query: LogQuery,
  found: Found,
  range: { fromMs: number; untilMs: number },
  incidentBeganMs: number | null,
): ToolReading {
  const isNew = ({ firstMs }: Template) =>
    found.before !== null && firstMs >= Math.max(range.fromMs, (incidentBeganMs ?? 0) - leadMs)
  const rank = (template: Template) => (isNew(template) ? 2 : 0) + (error.test(template.sample) ? 1 : 0)
  const templates = findTemplates([...(found.before ?? []), ...found.lines], range.fromMs)
    .map((template) => ({ template, rank: rank(template) }))
    .sort((a, b) => b.rank - a.rank || b.template.count - a.template.count)
  const items = templates.map(({ template }, at) => ({
    template: cut(template.text, mostTemplateCharacters),
    count: template.count,
    ...(isNew(template) && { isNew: true }),
    first: toTime(template.firstMs),
    last: toTime(template.lastMs),
    ...(at < mostSamples && { sample: cut(template.sample, mostSampleCharacters) }),
  }))
  const { labels, contains, excludes, pattern, window } = query
  const head = {
    asked: {
      labels,
      ...(contains.length > 0 && { contains }),
      ...(excludes.length > 0 && { excludes }),
      ...(pattern && { pattern }),
    },
    window,
    until: toTime(range.untilMs),
    lines: found.total ?? found.lines.length,
    ...(found.lines.length >= mostLines && { read: found.lines.length }),
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
  }
}

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`)

const toTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
