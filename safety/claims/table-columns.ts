import { keyWords } from './measure.ts'
import type { QuotePlace } from './quote.ts'
import { keySynonyms } from './word-tables.ts'

/**
 * A column in a quoted line of a table: the words of its heading, its value, and the place of the
 * value in the line.
 */
type Column = { at: number; words: string[]; value: string; from: number; to: number }

const isHeading = (token: string) => /^(?:[%#a-z(][\w%()./+-]*|1[kb]-blocks|)$/.test(token)

/** Reads the columns of a table row under printed headings; none if the text has no headings. */
export function columnsOf({ leaf, line, part }: QuotePlace): Column[] {
  const [first] = leaf.lines
  if (!first || leaf.lines.length < 2) return []
  const heading = part.document().text.slice(first.start, first.end)
  const mark = heading.includes('|') ? '|' : ' '
  const headings = heading.split(mark).map((each) => each.trim())
  if (heading === line || headings.length < 2 || !headings.every((each) => each.split(' ').every(isHeading))) return []
  let from = 0
  const columns: Column[] = []
  for (const [at, token] of line.split(mark).entries()) {
    const named = headings[at]
    // Stops at a value of several words, which shifts every column after it.
    if (named === undefined || (mark === ' ' && token.startsWith('('))) break
    columns.push({ at, words: wordsOfHeading(named), value: token.trim(), from, to: from + token.length })
    from += token.length + 1
  }
  return columns
}

function wordsOfHeading(heading: string): string[] {
  const own = keyWords([heading.replaceAll('%', ' ')])
  return own.flatMap((word) => [word, ...(keySynonyms[word]?.split(' ') ?? [])])
}

/** Returns the columns that are within the quoted piece. */
export const quotedColumns = (place: QuotePlace): Column[] =>
  columnsOf(place).filter(({ from, to }) => from < place.to && to > place.from)
