import { type Unit, unitOf, unitOfKey } from './measure.ts'
import type { QuotePlace } from './quote.ts'

/** A number with its unit. `noun`: the next word if it is not a unit, as in 3 hosts. */
export type Figure = {
  value: number
  decimals: number
  unit: Unit | null
  noun: string | null
  at: number
  end: number
  isAbout: boolean
  bound: 'at most' | 'at least' | null
  isWord: boolean
}

/** A number in a quote, with what its key tells about it. */
export type QuotedNumber = {
  value: number
  decimals: number
  unit: Unit | null
  path: readonly string[]
  place: QuotePlace
  at: number
}

const spelled = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
]
const aboutWords = 'about|around|roughly|nearly|almost|approximately|approx\\.?|circa|some|~|≈'
const bounds: [NonNullable<Figure['bound']>, string][] = [
  ['at most', 'at most|under|below|less than|fewer than|up to|within|no more than|<'],
  ['at least', 'at least|over|above|more than|greater than|exceeding|>'],
]
const figure = /(?<![\w.:/#-])([-−]?\d{1,3}(?:[,_ ]\d{3})+(?!\d)|[-−]?\d+)(\.\d+)?(?: ?(%|°c\b)|[ -]?([a-zµ]+)\b)?/gi
const rest = /^(?:million|billion|thousand)$/i
const scale: Record<string, number> = { thousand: 1e3, million: 1e6, billion: 1e9 }
/** Matches references to rows, which are not numbers. Names and times were removed before. */
export const references =
  /\b(?:rows?|seqs?|steps?|attempts?|turns?|events?|evidence):?\s+#?\d+(?:\s*(?:,|and|to|-|–)\s*#?\d+)*|#\d+/gi

/** Lists the numbers of a clause in which names and times are already blanked. */
export function figuresIn(clause: string): Figure[] {
  const text = clause.replace(references, (found) => ' '.repeat(found.length))
  const figures: Figure[] = []
  for (const match of text.matchAll(figure)) {
    const [whole, digits, fraction = '', sign, word] = match as unknown as [string, string, string?, string?, string?]
    const attached = word !== undefined && !/[ -]/.test(whole[digits.length + fraction.length] ?? '')
    // Skips 1st, 5xx and 3rd, which are not numbers.
    if (attached && unitOf(word) === null && !rest.test(word)) continue
    const value =
      Number(`${digits.replace(/[,_ ]/g, '').replace('−', '-')}${fraction}`) * (scale[word?.toLowerCase() ?? ''] ?? 1)
    const before = text.slice(Math.max(0, match.index - 24), match.index).toLowerCase()
    figures.push({
      value,
      decimals: Math.max(0, fraction.length - 1),
      ...unitAndNoun(sign ?? word ?? null, text.slice(match.index + whole.length), attached),
      ...approximation(before),
      at: match.index,
      end: match.index + digits.length + fraction.length,
      isWord: false,
    })
  }
  for (const match of text.matchAll(
    /\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|zero|both)\b(?:[ -]([a-z%]+))?/gi,
  )) {
    const word = (match[1] as string).toLowerCase()
    const value = word === 'both' ? 2 : spelled.indexOf(word)
    const before = text.slice(Math.max(0, match.index - 24), match.index).toLowerCase()
    const end = match.index + word.length
    figures.push({
      value,
      decimals: 0,
      ...unitAndNoun(match[2] ?? null, text.slice(end), false),
      ...approximation(before),
      at: match.index,
      end,
      isWord: true,
    })
  }
  for (const match of text.matchAll(/\b(twice|double[ds]?|half|halved|triple[ds]?)\b/gi)) {
    const word = (match[1] as string).toLowerCase()
    const value = word.startsWith('h') ? 0.5 : word.startsWith('t') && word !== 'twice' ? 3 : 2
    const before = text.slice(Math.max(0, match.index - 24), match.index).toLowerCase()
    const { bound } = approximation(before)
    const end = match.index + word.length
    figures.push({
      value,
      decimals: 1,
      unit: null,
      noun: null,
      isAbout: true,
      bound,
      at: match.index,
      end,
      isWord: true,
    })
  }
  return figures.sort((a, b) => a.at - b.at)
}

/**
 * Reads the unit or noun after a number. A letter after a blank, as in "3 a day", is not a unit,
 * except s, h and b.
 */
function unitAndNoun(
  word: string | null,
  _after: string,
  isAttached: boolean,
): { unit: Unit | null; noun: string | null } {
  if (word === null) return { unit: null, noun: null }
  const isLetter = word.length === 1 && !'sSbB%'.includes(word)
  const unit = isLetter && !isAttached ? null : unitOf(word)
  return { unit, noun: unit ? null : word.toLowerCase() }
}

function approximation(before: string): Pick<Figure, 'isAbout' | 'bound'> {
  const isAbout = new RegExp(`(?:${aboutWords}) ?$`).test(before)
  const without = before.replace(new RegExp(`(?:${aboutWords}) ?$`), '')
  const bound = bounds.find(([, words]) => new RegExp(`(?:^|[^a-z])(?:${words}) ?$`).test(without))?.[0] ?? null
  return { isAbout, bound }
}

/** Lists the numbers in the quoted piece of a line. */
export function valuesAt(place: QuotePlace): QuotedNumber[] {
  const { leaf, line, from, to } = place
  if (typeof leaf.value === 'boolean' || leaf.value === null) return []
  const values: QuotedNumber[] = []
  const keyUnit = typeof leaf.value === 'number' ? (unitOfKey(leaf.path) ?? unitOf(leaf.unit ?? null)) : null
  // Blanks the digits of times, which are not numbers.
  const plain = momentsIn(line).reduce(
    (text, { at, text: time }) => text.slice(0, at) + '¤'.repeat(time.length) + text.slice(at + time.length),
    line,
  )
  for (const match of plain.matchAll(/(?<![\w.])(-?\d{1,3}(?:,\d{3})+(?!\d)|-?\d+)(\.\d+)?(?: ?(%|[a-zµ°]+))?/gi)) {
    const [, digits, fraction = '', word] = match as unknown as [string, string, string?, string?]
    const end = match.index + digits.length + fraction.length
    if (match.index < from || end > to) continue
    const unit = unitOf(word ?? null)
    const isUnit = unit !== null && (word as string).length > (line[end] === ' ' ? 1 : 0)
    values.push({
      value: Number(`${digits.replaceAll(',', '')}${fraction}`),
      decimals: Math.max(0, fraction.length - 1),
      unit: keyUnit ?? (isUnit || /^[sb%]$/.test(word ?? '') ? unit : null),
      path: leaf.path,
      place,
      at: match.index,
    })
  }
  return values
}

/** Matches a time of day, with its date if there is one, as logs and JSON write it. */
const time = /(?<![\d:.])(?:(\d{4}-\d{2}-\d{2})[t ])?([0-2]?\d):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?z?(?![\d:])/gi

export type QuotedMoment = {
  text: string
  date: string | null
  hour: number
  minute: number
  second: string | null
  at: number
}

export function momentsIn(text: string): QuotedMoment[] {
  return [...text.matchAll(time)].map((match) => ({
    text: match[0],
    date: match[1] ?? null,
    second: match[4] ?? null,
    at: match.index,
    hour: Number(match[2]),
    minute: Number(match[3]),
  }))
}

/**
 * Whether the other text contains this moment to the same precision: 00:45:41 matches 00:45:41.463.
 */
export function holdsMoment(said: QuotedMoment, other: string): boolean {
  return momentsIn(other).some(
    (each) =>
      (said.date === null || each.date === null || said.date === each.date) &&
      each.hour === said.hour &&
      each.minute === said.minute &&
      (said.second === null || (each.second ?? '').startsWith(said.second)),
  )
}

export function secondsBetween(first: string, second: string): number | null {
  const [a] = momentsIn(first)
  const [b] = momentsIn(second)
  if (!a || !b || (a.date === null) !== (b.date === null)) return null
  return Math.abs(ofAll(b) - ofAll(a))
}

function ofAll({ date, hour, minute, second }: QuotedMoment): number {
  return (date ? Date.parse(date) / 1000 : 0) + hour * 3600 + minute * 60 + Number(second ?? 0)
}
