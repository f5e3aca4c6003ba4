import type { AskSource } from '../kind.ts'
import { type LogQuery, type LogReader, listMatchers, type Range } from './logs.ts'

/** Names of labels that lines of the window have, and those asked for that no line has. */
type LabelsThere = { there: readonly string[] | null; unknown: readonly string[] }

/** A name without lines chooses none; another spelling says nothing of lines there. */
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
  // Counted by what a line has: the same streams, without the other conditions.
  const count = (labels: LogQuery['labels']) =>
    reader
      .countLines(ask, { ...query, labels, contains: [], excludes: [], pattern: undefined }, range)
      .catch(() => null)
  const [all, ...counts] = await Promise.all([
    count(streams),
    ...missing.map((name) => count({ ...streams, [name]: { '!=': '' } })),
  ])
  // Streams without a line say nothing of what lines have.
  return { there, unknown: all ? missing.filter((_, at) => counts[at] === 0) : [] }
}
