import { keyWords } from './measure.ts'
import type { QuotePlace } from './quote.ts'
import type { Part } from './rows.ts'
import { quotedColumns } from './table-columns.ts'
import { keySynonyms, noWords, sourceWords, valueWords, yesWords } from './word-tables.ts'

/** Not within a name: /run/no-cleanup denies nothing. */
export const denialWords =
  /(?<![\w./-])(?:no|not|never|without|none|nothing|nobody|neither|nor|cannot|[a-z]+n't)(?![\w-]|\.\w)/
export const subjectKeys =
  /^(?:id|name|host|hostname|node|shard|service|unit|kind|type|region|tenant|device|mount|path|file|container|namespace|pod|instance|job|alertname|user|database|resource|target|role|labels)$/
/**
 * A denial of these says that it is not that one; other words of a field are denied only by a row
 * that does.
 */
const deniedKeys = /^(?:id|name|host|hostname|node|shard|service|unit|tenant|device|path|file|container|pod|instance)$/
/** Arguments that name what a call was about; what it looked for says nothing of what is there. */
const lookedFor = /^(?:text|match|contains|excludes|query|promql|pattern|grep|command|argv|reason)$/

export const keyOf = ({ leaf }: QuotePlace) => leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''

/** A word and what it is without its ending: nodes and node, stopped and stop. */
export function formsOf(word: string): string[] {
  const stems = [/s$/, /es$/, /ed$/, /d$/, /ing$/, /ly$/].map((end) => word.replace(end, ''))
  const undoubled = stems.map((stem) => stem.replace(/([bdfglmnprt])\1$/, '$1'))
  return [...new Set([word, word.replace(/ies$/, 'y'), ...stems, ...undoubled])].filter(({ length }) => length > 1)
}

/** Words that rows give: as they are, and denied. */
export type KnownWords = { plain: Set<string>; denied: Set<string> }

/** The words of what is quoted about one thing. */
export function knownWords(places: readonly QuotePlace[]): KnownWords {
  const known: KnownWords = { plain: new Set(), denied: new Set() }
  for (const place of places) {
    addHead(known, place.part)
    addElement(known, place)
    addPlace(known, place)
  }
  return known
}

/** Adds each word of a text with its forms. */
export const add = (set: Set<string>, text: string) => {
  for (const word of text.toLowerCase().match(/[\p{L}_][\p{L}\p{N}_']*/gu) ?? [])
    for (const form of formsOf(word)) set.add(form)
}

/**
 * Names of what was asked, and the tool: a subject's names, denied or not. For a write all that it
 * was told.
 */
export function addHead({ plain, denied }: KnownWords, part: Part): void {
  const isDone = part.source === 'write' || part.source === 'verification'
  const told = Object.entries(part.arguments).flatMap(([key, value]) =>
    !isDone && (lookedFor.test(key.toLowerCase()) || typeof value !== 'string') ? [] : [JSON.stringify(value)],
  )
  const source = isDone ? [] : sourceWords.filter(([of]) => of.test(part.head)).map(([, words]) => words)
  const kind =
    part.source === 'alert' ? 'alert alerts fired' : part.source === 'verification' ? 'verification verified' : ''
  for (const words of told) add(denied, words)
  for (const words of [...told, ...source, kind, part.tool.replaceAll('_', ' ')]) add(plain, words)
}

/** Fields of the same element that name it. */
function addElement({ plain, denied }: KnownWords, { part, item }: QuotePlace): void {
  for (const leaf of part.document().leaves) {
    if (leaf.item !== item || typeof leaf.value !== 'string' || leaf.lines.length !== 1) continue
    const key = leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''
    if (!subjectKeys.test(key) && !leaf.path.includes('labels')) continue
    add(plain, leaf.value)
    if (deniedKeys.test(key)) add(denied, leaf.value)
  }
}

/** Nothing is there: as a number, a word, or left empty. */
export function isNothing(value: unknown): boolean {
  return (
    value === null || value === 0 || (typeof value === 'string' && /^(?:0|none|no|nil|null|n\/a)$/i.test(value.trim()))
  )
}

/** The quoted line and its keys. A yes, no or nothing turns its key: running:false. */
function addPlace(known: KnownWords, place: QuotePlace): void {
  const { leaf, line } = place
  const path = leaf.path.filter((step) => !/^\d+$/.test(step))
  const own = keyWords(path.slice(-1)).flatMap((word) => [word, ...(keySynonyms[word] ?? '').split(' ')])
  const { value } = leaf
  add(known.plain, keyWords(path.slice(0, -1)).join(' '))
  if (typeof value === 'boolean') {
    const table = value ? yesWords : noWords
    add(value ? known.plain : known.denied, own.join(' '))
    add(known.plain, own.map((word) => table[word] ?? '').join(' '))
    return
  }
  if (isNothing(value)) add(known.denied, own.join(' '))
  if (value === null) return
  add(known.plain, own.join(' '))
  for (const { words, value: cell } of quotedColumns(place))
    add(/^(?:f|false|no?|off|0|none|null|-|)$/.test(cell) ? known.denied : known.plain, words.join(' '))
  if (value === 0 && /^exit_?code$/.test(keyOf(place))) add(known.plain, 'succeeded ended well')
  if (typeof value === 'number') return
  addLine(known, line)
  const single = line.trim().toLowerCase()
  if (/^[a-z]+$/.test(single)) add(known.plain, valueWords[single] ?? '')
}

const noValue = /[:=] ?(?:false|no|none|off|0|null|nil|disabled)(?![\w.])/
/** What should be, or holds under a condition only, is no finding. */
const supposes =
  /\b(?:if|where|when|whenever|unless|until|once|should|must|may|might|would|could|will|shall|prove|ensure|expect\w*|check that|verify that|to be|in case|else)\b/

/** A line, each piece with its polarity: what follows a denial is denied, up to the next comma. */
function addLine({ plain, denied }: KnownWords, line: string): void {
  if (supposes.test(line)) return
  for (const piece of line.split(/[,;.](?=\s|$)|\b(?:but|and|because|since|so|while|although|though|as)\b/)) {
    const at = noValue.test(piece) ? 0 : (denialWords.exec(piece)?.index ?? piece.length)
    add(plain, piece.slice(0, at))
    add(denied, piece.slice(at))
  }
}
