import type { AskSource } from '../kind.ts'
import { type LogQuery, type LogReader, listMatchers, type Range } from './logs.ts'

/** The labels of the lines in the window, and the labels in the query that no line has. */
type LabelsThere = { there: readonly string[] | null; unknown: readonly string[] }

/**
 * Finds labels in the query that no line has. A query with one of them finds nothing, which does
 * not prove that no lines exist.
 */
export async function findUnknownLabels(
  reader: LogReader,
  ask: AskSource,
  query: LogQuery,
  range: Range,
): Promise<LabelsThere> {
  const there = await reader.listLabels(ask, range).catch(() => null)
  if (!there || there.length === 0) return { there, unknown: [] }
  const has = (name: string) => there.includes(name) || there.includes(name.replaceAll('.', '_'))
  const missing = listMatchers(query.labels)
    .map(({ name }) => name)
    .filter((name) => !has(name))
  if (!query.inLine || missing.length === 0) return { there, unknown: missing }
  const streams = Object.fromEntries(
    Object.entries(query.labels).filter(([name]) => !query.inLine?.includes(name.replaceAll('.', '_'))),
  )
  // Counts the lines of the streams without the query's other conditions.
  const count = (labels: LogQuery['labels']) =>
    reader
      .countLines(ask, { ...query, labels, contains: [], excludes: [], pattern: undefined }, range)
      .catch(() => null)
  const [all, ...counts] = await Promise.all([
    count(streams),
    ...missing.map((name) => count({ ...streams, [name]: { '!=': '' } })),
  ])
  // Reports no unknown labels if the streams have no line, because no label can be known then.
  return { there, unknown: all ? missing.filter((_, at) => counts[at] === 0) : [] }
}
