/** A scalar of a result with where it stands in the folded text. A string has a line for each of its lines. */
export type Leaf = {
  path: readonly string[]
  value: unknown
  item: Item
  lines: { start: number; end: number }[]
  /** What the field `unit` beside a number says. */
  unit?: string
}

/** An element of a list, or the whole result. `hasId`: the element names what it is about by itself. `own`: kept once it was asked for. */
export type Item = {
  start: number
  end: number
  hasId: boolean
  list: { item: Item; length: number; of: Item[] } | null
  own?: string
}

export type Document = { text: string; leaves: Leaf[]; items: Item[] }

const mostCharacters = 2_000_000

/**
 * Text as quotes are compared: lower case, JSON escapes and quotation marks taken out, white space one blank, none beside
 * punctuation. Folding what was folded changes nothing.
 */
export function foldText(text: string): string {
  return text
    .slice(0, mostCharacters)
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

/** Folds a result as its JSON text would be folded, and remembers which scalar each character came from. */
export function documentOf(value: unknown): Document {
  const root: Item = { start: 0, end: 0, hasId: false, list: null }
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

function writeAny(writer: Writer, value: unknown, path: readonly string[], item: Item): void {
  if (writer.length > mostCharacters) return
  if (Array.isArray(value)) writeList(writer, value, path, item)
  else if (value !== null && typeof value === 'object')
    writeObject(writer, value as Record<string, unknown>, path, item)
  else writeScalar(writer, value, path, item)
}

function writeScalar(writer: Writer, value: unknown, path: readonly string[], item: Item): void {
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

function writeObject(writer: Writer, value: Record<string, unknown>, path: readonly string[], item: Item): void {
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

function writeList(writer: Writer, values: unknown[], path: readonly string[], item: Item): void {
  const opened = add(writer, '[')
  const of: Item[] = []
  for (const [index, inner] of values.entries()) {
    if (index > 0) add(writer, ',')
    const isObject = inner !== null && typeof inner === 'object' && !Array.isArray(inner)
    const list = { item, length: values.length, of }
    const own: Item = { start: writer.length, end: writer.length, hasId: isObject && 'id' in inner, list }
    of.push(own)
    writer.doc.items.push(own)
    writeAny(writer, inner, path, own)
    own.end = writer.length
  }
  const closed = add(writer, ']')
  // An empty list is an answer too.
  if (values.length === 0) {
    writer.doc.leaves.push({ path, value: null, item, lines: [{ start: opened.start, end: closed.end }] })
  }
}

const punctuation = /[:,{}[\]=]/
