import type { Claim } from '../../domain/claim.ts'
import { holdsName } from '../../safety/claims/actions.ts'
import { foldText } from '../../safety/claims/quote.ts'
import type { Case, Diagnosis } from './cases.ts'
import type { Result, Script } from './play.ts'

/** What a scripted model reads and claims: the truth of a case, or a lie about it. */

/**
 * `golden`: the recorded readings, and what they show. `removed`: the readings that decide were never read; `swapped`: those of another case
 * were read. What a lie quotes: the true words out of another row, the true words out of a row that is not there, a line of another row that
 * names the object, the name alone; or what the other case says. `in own words`: the claim
 * marks none of its words as quoted, and cites a line about the object.
 */
export const trials = [
  'golden',
  'removed, true words of another row',
  'removed, a row that is not there',
  'removed, a line about the object',
  'removed, the name alone',
  'removed, in own words',
  'swapped, true words',
  'swapped, what the other says',
  'swapped, a line about the object',
  'swapped, in own words',
] as const
export type Trial = (typeof trials)[number]

export type Diagnosed = Case & { diagnosis: Diagnosis }

/** The kinds of script: the trials of one kind are tried in one run, over the same readings. */
export const kinds = ['golden', 'removed', 'swapped'] as const
export const trialsOf = (kind: (typeof kinds)[number]): Trial[] => trials.filter((trial) => trial.startsWith(kind))

/** Null where the case leaves nothing to read once the readings that decide are gone. */
export function scriptOf(chosen: readonly Trial[], own: Diagnosed, other: Diagnosed): Script | null {
  const [first = 'golden'] = chosen
  const read = readBy(first, own, other)
  if (read.readings.length === 0) return null
  const { claim: text } = own.diagnosis
  const endings = chosen.map((trial) => (results: readonly Result[]): Claim => {
    const cited = cite(trial, { own, other, reads: read.readings.length }, results)
    const said = trial.endsWith('in own words') ? text.replaceAll('"', '') : text
    return { kind: 'was', text: said, quotes: cited.map(([seq, quoted]) => ({ seq, text: quoted })) }
  })
  return { ...read, endings }
}

function readBy(trial: Trial, own: Diagnosed, other: Diagnosed): Pick<Script, 'readings' | 'lookFor'> {
  const lookFor = ({ at, words }: Diagnosis) => [{ at, words, line: longestLine(words) }]
  if (trial === 'golden') {
    const { at } = own.diagnosis
    const named = { at, words: `"${own.object}"`, line: `"name": "${own.object}"` }
    const isItem = own.readings[at]?.body.includes(named.line)
    return { readings: own.readings, lookFor: [...lookFor(own.diagnosis), ...(isItem ? [named] : [])] }
  }
  if (trial.startsWith('swapped')) return { readings: other.readings, lookFor: lookFor(other.diagnosis) }
  return { readings: own.readings.filter(({ body }) => !holds(body, own.diagnosis.words)), lookFor: [] }
}

type Cited = [seq: number, words: string]

const noRow = 9_999
type Played = { own: Diagnosed; other: Diagnosed; reads: number }

/** What a trial cites: a row, and words that are to stand in it. */
function cite(trial: Trial, { own, other, reads }: Played, results: readonly Result[]): Cited[] {
  const { at, words } = own.diagnosis
  const read = results.slice(0, reads)
  const about = () => lineAbout(own.object, read) ?? { seq: read.at(-1)?.seq ?? noRow, line: own.object }
  switch (trial) {
    case 'golden':
      return [[rowOf(results, reads, at, words), words], ...namedBy(own.object, words, results)]
    case 'removed, true words of another row':
      return [[read.at(-1)?.seq ?? noRow, words]]
    case 'removed, a row that is not there':
      return [[noRow, words]]
    case 'removed, the name alone':
      return [[about().seq, own.object]]
    case 'swapped, true words':
      return [[rowOf(results, reads, other.diagnosis.at, other.diagnosis.words), words]]
    case 'swapped, what the other says':
      return [[rowOf(results, reads, other.diagnosis.at, other.diagnosis.words), other.diagnosis.words]]
    default:
      return [[about().seq, about().line]]
  }
}

/** Where the deciding words do not name the object, a line that does, the newest first: what was looked for in the whole is there. */
function namedBy(object: string, words: string, results: readonly Result[]): Cited[] {
  if (holdsName(foldText(words), object)) return []
  for (const { seq, text } of results.toReversed()) {
    const line = linesOf(text).find((each) => holdsName(foldText(each), object))
    if (line !== undefined) return [[seq, line]]
  }
  return []
}

/** The row that shows the words: what was looked for in the whole, else the reading itself. */
function rowOf(results: readonly Result[], reads: number, at: number, words: string): number {
  const searched = results.slice(reads).findLast(({ text }) => holds(text, words))
  return (searched ?? results[at])?.seq ?? noRow
}

/** Does a result show the words, as the ledger reads both? */
export const holds = (text: string, words: string): boolean => foldText(text).includes(foldText(words))

/** The whole is searched line by line and as it is written: the longest piece of the words without a line's end or a quotation mark. */
function longestLine(words: string): string {
  const pieces = words.split(/[\n"\\]/).map((each) => each.trim())
  return (pieces.sort((a, b) => b.length - a.length)[0] ?? words).slice(0, 90)
}

/** The longest line that a model was shown and that names the object. */
function lineAbout(object: string, results: readonly Result[]): { seq: number; line: string } | null {
  for (const { seq, text } of results) {
    const found = linesOf(text).filter((line) => line.includes(object) && line.length > object.length)
    const [line] = found.sort((a, b) => b.length - a.length)
    if (line !== undefined) return { seq, line }
  }
  return null
}

/** The texts of a result that were not cut, as many characters as a quote may have. */
function linesOf(text: string): string[] {
  const strings = [...text.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([found]) => JSON.parse(found) as string)
  return strings.map((each) => each.trim()).filter((each) => each !== '' && each.length < 900 && !each.includes('…'))
}
