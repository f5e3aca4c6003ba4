import { narrowsLabels } from '../../safety/query/pattern.ts'
import { SourceError } from '../kind.ts'
import { type LogQuery, listMatchers, quoteText } from './logs.ts'

/** Questions to Loki as LogQL (https://grafana.com/docs/loki/latest/query/log_queries/). */

/** Loki's labels have no dots: it writes `_` for them in labels and in a line's fields. */
export const toLokiName = (name: string) => name.replaceAll('.', '_')

const toMatcher = ({ name, op, value }: ReturnType<typeof listMatchers>[number]) =>
  `${toLokiName(name)}${op}${quoteText(value)}`

/** Both parsers mark a line of another format; it has no fields then, and is counted. */
const parsers = '| json | logfmt | drop __error__, __error_details__'

/**
 * A question as LogQL, perhaps with one more pattern. Values and texts are quoted, so that none is
 * read as part of the query. The search of the line comes before reading its fields, which costs
 * more.
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
 * The question with names that are no label of its streams, by the server's word: those are read
 * from the line. The first narrowing label's streams may have fewer labels than all.
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
    throw new SourceError(
      'REJECTED',
      `${names} ${is} of its streams, which a question has to name: add one of ${there}`,
    )
  }
  const others = asked.filter((name) => name !== toLokiName(first.name))
  const isOpen = others.some((name) => all.includes(name))
  const ofThese = isOpen ? await listLabels(`{${toMatcher(first)}}`).catch(() => []) : []
  // A server that does not know the parameter answers with the labels of all.
  const there = ofThese.includes(toLokiName(first.name)) ? ofThese : all
  return { ...query, inLine: others.filter((name) => !there.includes(name)) }
}
