import { narrowsLabels } from '../../safety/query/pattern.ts'
import { SourceError } from '../kind.ts'
import { type LogQuery, listMatchers, quoteText } from './logs.ts'

/** Writes queries to Loki in LogQL (https://grafana.com/docs/loki/latest/query/log_queries/). */

/**
 * Converts a name to Loki's form. Loki writes `_` instead of a dot, in labels and in fields of a
 * line.
 */
export const toLokiName = (name: string) => name.replaceAll('.', '_')

const toMatcher = ({ name, op, value }: ReturnType<typeof listMatchers>[number]) =>
  `${toLokiName(name)}${op}${quoteText(value)}`

/**
 * Parses fields of a line. Both parsers mark a line in another format with an error label, which is
 * dropped. Such a line has no fields, but still counts.
 */
const parsers = '| json | logfmt | drop __error__, __error_details__'

/**
 * Writes a query in LogQL, with one more pattern if given. Values and texts are quoted, so that no
 * text is read as part of the query. The text of a line is searched before its fields are parsed,
 * because parsing costs more.
 */
export function toLogql({ labels, contains, excludes, pattern, inLine = [] }: LogQuery, also?: string): string {
  const matchers = listMatchers(labels)
  const isInLine = ({ name }: { name: string }) => inLine.includes(toLokiName(name))
  return [
    `{${matchers
      .filter((each) => !isInLine(each))
      .map(toMatcher)
      .join(', ')}}`,
    ...contains.map((text) => `|= ${quoteText(text)}`),
    ...excludes.map((text) => `!= ${quoteText(text)}`),
    ...[pattern, also].flatMap((each) => (each === undefined ? [] : [`|~ ${quoteText(each)}`])),
    ...(inLine.length > 0 ? [parsers] : []),
    ...matchers.filter(isInLine).map((each) => `| ${toMatcher(each)}`),
  ].join(' ')
}

const maxNamed = 20

/**
 * Finds the names in the query that are not labels of the streams; these names are read from the
 * line. The streams of the first condition may have fewer labels than all streams together.
 */
export async function placeLabels(
  query: LogQuery,
  listLabels: (selector?: string) => Promise<string[]>,
): Promise<LogQuery> {
  const asked = [...new Set([...Object.keys(query.labels), ...(query.count?.by ?? [])].map(toLokiName))]
  const all = await listLabels()
  if (all.length === 0) return query
  const narrowing = listMatchers(query.labels).filter(
    ({ op, value }) => (op === '=' && value !== '') || (op === '=~' && narrowsLabels(value)),
  )
  const first = narrowing.find(({ name }) => all.includes(toLokiName(name)))
  if (!first) {
    const names = narrowing.map(({ name }) => name).join(', ')
    const there = all.slice(0, maxNamed).join(', ')
    const is = narrowing.length > 1 ? 'are no labels' : 'is no label'
    throw new SourceError('REJECTED', `${names} ${is} of the streams, and a query must name one: add one of ${there}`)
  }
  const others = asked.filter((name) => name !== toLokiName(first.name))
  const isOpen = others.some((name) => all.includes(name))
  const ofThese = isOpen ? await listLabels(`{${toMatcher(first)}}`).catch(() => []) : []
  // Uses the labels of all streams if the server ignores the selector.
  const there = ofThese.includes(toLokiName(first.name)) ? ofThese : all
  return { ...query, inLine: others.filter((name) => !there.includes(name)) }
}
