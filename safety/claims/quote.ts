import type { ClaimQuote } from '../../domain/claim.ts'
import { withoutFolding } from '../../domain/inert-text.ts'
import { quote } from '../ruling.ts'
import type { Part } from './rows.ts'

/**
 * A scalar value of a result, with its place in the folded text. A string may have several lines.
 */
type Leaf = {
  path: readonly string[]
  value: unknown
  item: QuotedElement
  lines: { start: number; end: number }[]
  /** The value of a field `unit` next to a number. */
  unit?: string
}

/**
 * An element of a list, or the whole result. `hasId`: the element names its subject. `own`: the
 * element's text, cached.
 */
type QuotedElement = {
  start: number
  end: number
  hasId: boolean
  list: { item: QuotedElement; length: number; of: QuotedElement[] } | null
  own?: string
}

export type Document = { text: string; leaves: Leaf[]; items: QuotedElement[] }

const maxCharacters = 2_000_000

/**
 * Folds text so that quotes can be compared: lower case, no JSON escapes or quotation marks, no
 * fences, single blanks, and no blanks beside punctuation. Folding twice changes nothing more.
 */
export function foldText(text: string): string {
  return withoutFolding(text.slice(0, maxCharacters))
    .toLowerCase()
    .replace(/\\+u([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)).toLowerCase())
    .replace(/\\+[nrt]/g, ' ')
    .replace(/[\\"“”„«»`]/g, '')
    .replace(/[‘’]/g, "'")
    .replace(/\s+/g, ' ')
    .replace(/ ?([:,{}[\]=]) ?/g, '$1')
    .trim()
}

type Writer = { pieces: string[]; length: number; last: string; doc: Document }

/** Folds a result like its JSON text, and records to which scalar each character belongs. */
export function documentOf(value: unknown): Document {
  const root: QuotedElement = { start: 0, end: 0, hasId: false, list: null }
  const writer: Writer = { pieces: [], length: 0, last: '', doc: { text: '', leaves: [], items: [root] } }
  writeAny(writer, value, [], root)
  root.end = writer.length
  writer.doc.text = writer.pieces.join('')
  return writer.doc
}

function add(writer: Writer, piece: string): { start: number; end: number } {
  const start = writer.length
  if (piece !== '') {
    writer.pieces.push(piece)
    writer.length += piece.length
    writer.last = piece.at(-1) as string
  }
  return { start, end: writer.length }
}

function writeAny(writer: Writer, value: unknown, path: readonly string[], item: QuotedElement): void {
  if (writer.length > maxCharacters) return
  if (Array.isArray(value)) writeList(writer, value, path, item)
  else if (value !== null && typeof value === 'object')
    writeObject(writer, value as Record<string, unknown>, path, item)
  else writeScalar(writer, value, path, item)
}

function writeScalar(writer: Writer, value: unknown, path: readonly string[], item: QuotedElement): void {
  const lines = typeof value === 'string' ? value.split(/\r?\n|\\+n/) : [String(value)]
  const leaf: Leaf = { path, value, item, lines: [] }
  for (const line of lines) {
    const folded = foldText(line)
    if (folded === '') continue
    const joins = leaf.lines.length > 0 && !punctuation.test(writer.last) && !punctuation.test(folded[0] as string)
    if (joins) add(writer, ' ')
    leaf.lines.push(add(writer, folded))
  }
  writer.doc.leaves.push(leaf)
}

function writeObject(
  writer: Writer,
  value: Record<string, unknown>,
  path: readonly string[],
  item: QuotedElement,
): void {
  add(writer, '{')
  let isFirst = true
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue
    add(writer, `${isFirst ? '' : ','}${foldText(key)}:`)
    isFirst = false
    writeAny(writer, inner, [...path, key], item)
    const leaf = writer.doc.leaves.at(-1)
    if (leaf && typeof inner === 'number' && typeof value.unit === 'string') leaf.unit = value.unit
  }
  add(writer, '}')
}

function writeList(writer: Writer, values: unknown[], path: readonly string[], item: QuotedElement): void {
  const opened = add(writer, '[')
  const of: QuotedElement[] = []
  for (const [index, inner] of values.entries()) {
    if (index > 0) add(writer, ',')
    const isObject = inner !== null && typeof inner === 'object' && !Array.isArray(inner)
    const list = { item, length: values.length, of }
    const own: QuotedElement = { start: writer.length, end: writer.length, hasId: isObject && 'id' in inner, list }
    of.push(own)
    writer.doc.items.push(own)
    writeAny(writer, inner, path, own)
    own.end = writer.length
  }
  const closed = add(writer, ']')
  // Records an empty list too, because an empty list is an answer.
  if (values.length === 0) {
    writer.doc.leaves.push({ path, value: null, item, lines: [{ start: opened.start, end: closed.end }] })
  }
}

const punctuation = /[:,{}[\]=]/

/** A place where quoted words occur: one line of one scalar. */
export type QuotePlace = {
  part: Part
  leaf: Leaf
  item: QuotedElement
  /** The whole folded line, and the quoted piece of it. */
  line: string
  from: number
  to: number
  /**
   * Folded text that names the subject of a line: the line, its list element, and the row if the
   * element names nothing.
   */
  about: string
}

const maxPlaces = 60

/** Finds a quote in the parts that it names, line by line; empty if it is absent. */
export function placesOf(quote: ClaimQuote, parts: readonly Part[]): QuotePlace[] {
  const exact = foldText(quote.text)
  for (const words of [exact, exact.replace(/^[,{}[\]]+|[,{}[\]]+$/g, '')]) {
    if (words === '') continue
    const found = parts.flatMap((part) => (part.seqs.includes(quote.seq) ? placesIn(part, words) : []))
    if (found.length > 0) return found.slice(0, maxPlaces)
  }
  return parts.flatMap((part) => (part.seqs.includes(quote.seq) ? fieldsIn(part, quote.text) : [])).slice(0, maxPlaces)
}

/**
 * Finds several fields of one object that the model quotes side by side, without the fields between
 * them that the model was not shown. Each field is in the row as quoted.
 */
function fieldsIn(part: Part, text: string): QuotePlace[] {
  const fields = text.split(/,(?=\s*"\w+"\s*:)/).map((field) => foldText(field).replace(/^\{|\}$/g, ''))
  if (fields.length < 2 || fields.some((field) => !/^\w+:./.test(field))) return []
  const places = fields.map((field) => placesIn(part, field).filter((place) => isField(place, field)))
  const besideOf = ({ item, leaf }: QuotePlace) => [item, leaf.path.slice(0, -1).join('.')] as const
  const isBeside = (a: QuotePlace, b: QuotePlace) => besideOf(a).every((each, at) => each === besideOf(b)[at])
  const [first = [], ...others] = places
  const together = first.filter((place) => others.every((some) => some.some((other) => isBeside(place, other))))
  return places.flatMap((some) => some.filter((place) => together.some((other) => isBeside(place, other))))
}

/**
 * Whether a place is the field itself, and not a part of a text or the end of another field's name.
 */
function isField({ leaf }: QuotePlace, field: string): boolean {
  return foldText(leaf.path.at(-1) ?? '') === field.slice(0, field.indexOf(':'))
}

/**
 * Number of lines up to which all lines of a part are searched. In a longer part, only lines with a
 * searched word are used.
 */
const maxLines = 300

/**
 * Lists the lines of a part as if they were quoted whole. For a long part, lists only the lines
 * with one of these words.
 */
export function allPlaces(part: Part, words: readonly string[]): QuotePlace[] {
  const { leaves, text } = part.document()
  const lines = leaves.flatMap((leaf) => leaf.lines.map((line) => ({ leaf, line })))
  const isLong = lines.length > maxLines
  const chosen = isLong
    ? lines.filter(({ line }) => words.some((word) => text.slice(line.start, line.end).includes(word)))
    : lines
  return chosen.slice(0, maxLines).map(({ leaf, line }) => placeOf(part, leaf, line, line.start, line.end))
}

function placesIn(part: Part, words: string): QuotePlace[] {
  const { text, leaves } = part.document()
  const places: QuotePlace[] = []
  for (let at = text.indexOf(words); at >= 0 && places.length < maxPlaces; at = text.indexOf(words, at + 1)) {
    const end = at + words.length
    if (!isWholeTokens(text, at, end)) continue
    for (const leaf of leaves) {
      for (const line of leaf.lines) {
        if (line.start < end && line.end > at) {
          places.push(placeOf(part, leaf, line, Math.max(at, line.start), Math.min(end, line.end)))
        }
      }
    }
  }
  return places
}

function placeOf(part: Part, leaf: Leaf, line: { start: number; end: number }, from: number, to: number): QuotePlace {
  const { text } = part.document()
  const { item } = leaf
  return {
    part,
    leaf,
    item,
    line: text.slice(line.start, line.end),
    from: from - line.start,
    to: to - line.start,
    about: `${aboutItem(text, leaf, item, line)} ${item.hasId ? '' : part.head}`,
  }
}

/**
 * Returns the text that names what a value is about: its line if the value is a text of several
 * lines, otherwise its element.
 */
function aboutItem(text: string, leaf: Leaf, item: QuotedElement, line: { start: number; end: number }): string {
  if (leaf.lines.length > 1) return text.slice(line.start, line.end)
  item.own ??= ownText(text, item)
  return item.list === null ? `${item.own} ${lineOf(leaf, text)}` : item.own
}

const maxAbout = 20_000

function ownText(text: string, item: QuotedElement): string {
  const whole = text.slice(item.start, item.end)
  if (item.list !== null || !whole.includes('[')) return whole.slice(0, maxAbout)
  return whole.replace(/\[[^[\]]*\]/g, ' ').slice(0, maxAbout)
}

function lineOf(leaf: Leaf, text: string): string {
  return leaf.lines.map(({ start, end }) => text.slice(start, end)).join(' ')
}

/** Whether a quote begins and ends between words or numbers: 7 % is not in 97 %. */
function isWholeTokens(text: string, at: number, end: number): boolean {
  const before = text[at - 1] ?? ' '
  const after = text[end] ?? ' '
  const first = text[at] as string
  const last = text[end - 1] as string
  if (isWord(first) && isWord(before)) return false
  if (isWord(last) && isWord(after)) return false
  if (isDigit(first) && /\d[.,]$/.test(text.slice(Math.max(0, at - 2), at))) return false
  if (isDigit(first) && before === '-') return !/[\s:,(=]$/.test(text.slice(Math.max(0, at - 2), at - 1))
  return !(isDigit(last) && /^[.,]\d/.test(text.slice(end, end + 2)))
}

const isWord = (character: string) => /[\p{L}\p{N}_]/u.test(character)
const isDigit = (character: string) => /\d/.test(character)

/** Problems of a claim's citations, each with its remedy. */
const problems = {
  QUOTE_NOT_FOUND: 'Copy the words from the result of that row, or quote another row.',
  NO_READ: 'Quote a read (or send the claim as kind "did", quoting the write).',
  READ_BEFORE_WRITE:
    'Read again after the last write and quote that row, also for an unchanged state, or claim the state before (kind "was").',
  OWN_WORDS: 'Quote the result of a tool.',
  NOT_TOLD: 'Quote the line that states this about the resource, or leave the statement out.',
  OTHER_VERB: 'Describe the write in its own words.',
  CONTRADICTED: 'State what the row shows.',
  NOT_WRITTEN: 'Quote the finished write that did this, or leave the statement out.',
  WRITE_NOT_HELD: 'State that the write failed, or leave the statement out.',
  WRITE_HELD: 'State what the verification of the write found.',
  OTHER_RESOURCE: 'Quote a row about that resource.',
  OTHER_DIRECTION: 'State the source and the destination as the row does.',
  STATE_NOT_SHOWN: 'Quote the words or the field that show this state for the resource.',
  NOT_ALL: 'Quote each item, or state how many there are.',
  NUMBER_NOT_SHOWN: 'Quote the number with its field, and state the number in its unit; "about" allows 5 %.',
  TIME_NOT_SHOWN: 'Quote the row that gives that time.',
  STILL_THERE: 'Read again, or state that the object exists.',
  CUT: 'Read the rest, or a range small enough to be complete, and cite that row.',
  NOT_ASKED: 'Cite a row that searched for this text without an error.',
  NOT_ABSENT:
    'An absent claim names what does not exist, and quotes those words; put the rest into a claim of another kind.',
} as const satisfies Record<string, string>
export type ProblemCode = keyof typeof problems

/** The first part of a claim that the evidence does not show: a code, a sentence, and a hint. */
export type ClaimProblem = { code: ProblemCode; why: string; remedy: string }

export function problem(code: ProblemCode, why: string): ClaimProblem {
  return { code, why, remedy: problems[code] }
}

/** Returns the quoted line with its key: `status: critical`. */
export function lineWithKey({ leaf, line }: QuotePlace): string {
  const key = leaf.path.findLast((step) => !/^\d+$/.test(step))
  return key ? `${key}: ${line}` : line
}

/** Quotes a piece of the claim, escaped and short. */
export const said = (text: string) => quote(text.trim())
