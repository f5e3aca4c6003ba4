import { keyWords } from './measure.ts'
import type { QuotePlace } from './quote.ts'
import type { Part } from './rows.ts'
import { quotedColumns } from './table-columns.ts'
import { keySynonyms, noWords, sourceWords, valueWords, yesWords } from './word-tables.ts'

/** Matches words of denial, but not within a name: /run/no-cleanup denies nothing. */
export const denialWords =
  /(?<![\w./-])(?:no|not|never|without|none|nothing|nobody|neither|nor|cannot|[a-z]+n't)(?![\w-]|\.\w)/
export const subjectKeys =
  /^(?:id|name|host|hostname|node|shard|service|unit|kind|type|region|tenant|device|mount|path|file|container|namespace|pod|instance|job|alertname|user|database|resource|target|role|labels)$/
/**
 * Matches keys whose value names a resource, so that a denied value means another resource. The
 * value of any other key counts as denied only if a row denies it.
 */
const deniedKeys = /^(?:id|name|host|hostname|node|shard|service|unit|tenant|device|path|file|container|pod|instance)$/
/**
 * Matches arguments that say what a call searched for, which is not a finding. Other arguments name
 * the subject of the call.
 */
const lookedFor = /^(?:text|match|contains|excludes|query|promql|pattern|grep|command|argv|reason)$/

export const keyOf = ({ leaf }: QuotePlace) => leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''

/** Lists a word and its stem: nodes and node, stopped and stop. */
export function formsOf(word: string): string[] {
  const stems = [/s$/, /es$/, /ed$/, /d$/, /ing$/, /ly$/].map((end) => word.replace(end, ''))
  const undoubled = stems.map((stem) => stem.replace(/([bdfglmnprt])\1$/, '$1'))
  return [...new Set([word, word.replace(/ies$/, 'y'), ...stems, ...undoubled])].filter(({ length }) => length > 1)
}

/** Words that occur in rows: affirmed (`plain`) and denied. */
export type KnownWords = { plain: Set<string>; denied: Set<string> }

/** Lists the words in quotes about one subject. */
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
 * Adds the tool and the names in its arguments, as plain and as denied. For a write adds all its
 * arguments.
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

/** Adds the fields that identify the list element in which the quote is. */
function addElement({ plain, denied }: KnownWords, { part, item }: QuotePlace): void {
  for (const leaf of part.document().leaves) {
    if (leaf.item !== item || typeof leaf.value !== 'string' || leaf.lines.length !== 1) continue
    const key = leaf.path.findLast((step) => !/^\d+$/.test(step))?.toLowerCase() ?? ''
    if (!subjectKeys.test(key) && !leaf.path.includes('labels')) continue
    add(plain, leaf.value)
    if (deniedKeys.test(key)) add(denied, leaf.value)
  }
}

/** Whether a value means none: the number 0, a word for none, or an empty value. */
export function isNothing(value: unknown): boolean {
  return (
    value === null || value === 0 || (typeof value === 'string' && /^(?:0|none|no|nil|null|n\/a)$/i.test(value.trim()))
  )
}

/** Adds the quoted line and its keys. A value of no or zero inverts its key: running:false. */
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
/** Matches words of a wish or a condition. A line with such a word reports no finding. */
const supposes =
  /\b(?:if|where|when|whenever|unless|until|once|should|must|may|might|would|could|will|shall|prove|ensure|expect\w*|check that|verify that|to be|in case|else)\b/

/** Adds a line, with each piece as affirmed or denied: a denial applies up to the next comma. */
function addLine({ plain, denied }: KnownWords, line: string): void {
  if (supposes.test(line)) return
  for (const piece of line.split(/[,;.](?=\s|$)|\b(?:but|and|because|since|so|while|although|though|as)\b/)) {
    const at = noValue.test(piece) ? 0 : (denialWords.exec(piece)?.index ?? piece.length)
    add(plain, piece.slice(0, at))
    add(denied, piece.slice(at))
  }
}
