import { actionsIn } from './actions.ts'
import { isRecord } from './check.ts'
import { type Quoted, wordsOf } from './clause-words.ts'
import { formsOf, keyOf } from './known-words.ts'
import { matchesFigure } from './measure.ts'
import { figuresIn, type QuotedMoment, valuesAt } from './numbers.ts'
import type { QuotePlace } from './quote.ts'
import { columnsOf } from './table-columns.ts'
import type { Clause } from './text.ts'

/** Checks a quoted line as a whole: its order, its heading, and the words that join its facts. */

const comment = /^(?:#|;|\/\/|--(?= ))/

/** Refuses a line that is commented out in its file. */
export function commentedOut({ places }: Quoted): string | null {
  const textOf = ({ line, from, to }: QuotePlace) => line.slice(from, to)
  const isComment = ({ leaf, line }: QuotePlace) => leaf.lines.length > 1 && comment.test(line)
  const found = places.find(
    (place) =>
      isComment(place) && !places.some((each) => each !== place && !isComment(each) && textOf(each) === textOf(place)),
  )
  return found ? `row ${found.part.seq} has that line as a comment` : null
}

const later = 'after|following|followed|since|once|when|then'
const earlier = 'before|until|till'
const joins = new RegExp(
  `\\b(?:because|due to|caus\\w+|as a result|result\\w* (?:in|from)|led to|leads? to|leading to|therefore|thus|hence|so that|so|whenever|triggered|owing|thanks|made|makes|fell|rose|dropped|grew|than|if|unless|${later}|${earlier})\\b`,
  'g',
)
const reasonKeys = /^(?:reason|why|cause|message|error|detail)$/

/**
 * Refuses a link between the facts of two lines, unless one line shows the link, or the times of
 * both lines do.
 */
export function joinedByGuess({ claim, clauses, places }: Quoted): string | null {
  const text = claim.text.toLowerCase()
  const moments = clauses.flatMap((clause) => clause.moments)
  const isOneLine = new Set(places.map(({ part, line }) => `${part.seq} ${line}`)).size === 1
  const things = new Set(places.map(({ part, item }) => `${part.seq}:${part.source}:${item.start}`)).size
  for (const { 0: found, index } of text.matchAll(joins)) {
    const isInLine = places.some(({ line }) => new RegExp(`\\b${found}\\b`).test(line))
    const isReason = found === 'because' && things === 1 && places.some((place) => reasonKeys.test(keyOf(place)))
    if (
      (isOneLine && isInLine && isSameWayRound(text, found, index, places)) ||
      isReason ||
      isInOrder(found, index, moments)
    )
      continue
    return `no quoted line says "${found}"`
  }
  return null
}

/**
 * Checks that both sides of a join are in the line's order, so that cause and effect are not
 * exchanged.
 */
function isSameWayRound(text: string, join: string, at: number, places: readonly QuotePlace[]): boolean {
  const wordsOfSide = (side: string) => side.match(/[\p{L}\p{N}_./-]{4,}/gu) ?? []
  return places.some(({ line }) => {
    const from = line.search(new RegExp(`\\b${join}\\b`))
    const [before, behind] = [line.slice(0, from), line.slice(from + join.length)]
    const isMoved = (side: string, own: string, other: string) =>
      wordsOfSide(side).some((word) => other.includes(word) && !own.includes(word))
    return from >= 0 && !isMoved(text.slice(0, at), before, behind) && !isMoved(text.slice(at), behind, before)
  })
}

const day = 86_400

/**
 * Whether two times are in the claim's order. Takes the shorter way between them, because midnight
 * may lie between.
 */
function isInOrder(join: string, at: number, moments: readonly QuotedMoment[]): boolean {
  const isLater = new RegExp(`^(?:${later})$`).test(join)
  // Accepts a changed value, which is dated by its two times.
  const isChange = /^(?:fell|rose|dropped|grew)$/.test(join)
  if (moments.length < 2 || !(isLater || isChange || new RegExp(`^(?:${earlier})$`).test(join))) return false
  if (isChange) return true
  const before = moments.filter((moment) => moment.at < at).at(-1)
  const behind = moments.filter((moment) => moment.at > at)
  const [main, other] = before ? [before, behind[0]] : [behind[1], behind[0]]
  if (!main || !other) return false
  const [first, second] = /^(?:then|followed)$/.test(join) ? [other, main] : [main, other]
  const difference = (secondOf(first) - secondOf(second) + 2 * day) % day
  const isAfter = first.date && second.date ? first.text > second.text : difference > 0 && difference < day / 2
  return isLater === isAfter
}

const secondOf = ({ hour, minute, second }: QuotedMoment) => hour * 3600 + minute * 60 + Number(second ?? 0)

/** Checks the column of a figure: 91 % under Use% is not "available". */
export function otherColumn(clause: Clause, { places }: Quoted): string | null {
  const id = idOfAnother(clause, places)
  if (id) return id
  const figures = figuresIn(clause.text)
  const rows = places.map((place) => ({ place, columns: columnsOf(place) })).filter(({ columns }) => columns.length > 0)
  if (figures.length === 0 || rows.length === 0) return null
  const held = figures.map((figure) =>
    rows.flatMap(({ place, columns }) =>
      valuesAt(place)
        .filter((value) => matchesFigure(figure, { ...value, from: value }))
        .flatMap(({ at }) => columns.filter(({ from, to }) => from <= at && at < to).map((column) => column.at)),
    ),
  )
  const columns = rows.flatMap((row) => row.columns)
  const named = wordsOf(clause, figures, []).flatMap(({ text }) => {
    const own = columns.filter(({ words }) => words.some((word) => formsOf(word).includes(text) || word === text))
    return own.length > 0 ? [{ text, of: new Set(own.map(({ at }) => at)) }] : []
  })
  const isHeld = (of: ReadonlySet<number>, at: number) => (held[at] ?? []).some((column) => of.has(column))
  const wrong = named.find(({ of }, at) =>
    named.length === figures.length ? !isHeld(of, at) : !held.some((_, each) => isHeld(of, each)),
  )
  return wrong && held.some((each) => each.length > 0) ? `none of its figures is under "${wrong.text}"` : null
}

/** Checks that the number of a process, port or user is under a key or heading of that kind. */
function idOfAnother(clause: Clause, places: readonly QuotePlace[]): string | null {
  for (const { kind, text, start } of clause.groups.flat()) {
    const called = /\b(p?pid|port|uid|gid)s? [^a-z]*(?:is |was )?[^a-z]*$/.exec(
      clause.raw.slice(0, start - clause.start),
    )?.[1]
    if (kind !== 'id' || !called) continue
    const keys = places.flatMap((place) => [
      ...(typeof place.leaf.value === 'number' && place.line === text ? [keyOf(place)] : []),
      ...columnsOf(place).flatMap(({ from, to, words }) =>
        place.line.slice(from, to).trim() === text ? [words.join(' ')] : [],
      ),
    ])
    if (keys.length > 0 && !keys.some((key) => key.includes(called))) return `the row has ${text} as "${keys[0]}"`
  }
  return null
}

/** Checks the order of a sentence in a row: who did what to what. */
export function otherOrder(clause: Clause, quoted: Quoted): string | null {
  const { claim, places } = quoted
  const sentences = new Map(places.filter(isSentence).map(({ line, part }) => [withoutSender(line), part.source]))
  const orders = [...sentences].map(([line, source]) =>
    orderIn(line, clause, source === 'write' || source === 'verification' ? 2 : 1),
  )
  if (orders.includes('turned') && !orders.includes('kept')) return 'no line has the words in this order'
  if (leavesOutFailure(clause, quoted)) return 'the line says that the action was not done'
  const going = wordsOf(clause, [], []).find(({ text }) => isOnlyGoingOn(text, places))
  if (going) return `no line says "${going.text}" of what was done`
  if (claim.kind === 'did' || actionsIn(clause.text).length === 0) return null
  const words = wordsOf({ ...clause, text: clause.raw }, [], []).map(({ text }) => text)
  const isTold = places.some(({ line }) => {
    let at = 0
    return words.every((word) => {
      const next = Math.max(...formsOf(word).map((form) => line.indexOf(form, at)))
      at = Math.max(at, next)
      return next >= 0
    })
  })
  return isTold || places.every(({ leaf }) => typeof leaf.value !== 'string')
    ? null
    : 'no line has the words in this order'
}

const undone =
  /\b(?:skip\w*|abort\w*|cancel\w*|fail\w*|refus\w*|reject\w*|den(?:y|ied)|ignor\w*|timed out|dry[ -]run)\b/

/** Refuses a line about an act that was skipped or failed as evidence of the act. */
function leavesOutFailure(clause: Clause, { claim, places }: Quoted): boolean {
  if (claim.kind === 'did' || !actionsIn(clause.text).some(({ isDenied }) => !isDenied)) return false
  return places.length > 0 && places.every(({ line }) => undone.test(line)) && !undone.test(clause.raw)
}

/**
 * Refuses an act that was only begun as evidence of a done one: "restarting failed container" shows
 * no restart.
 */
function isOnlyGoingOn(word: string, places: readonly QuotePlace[]): boolean {
  const stem = /^(\p{L}{3,})ed$/u.exec(word)?.[1]
  if (!stem) return false
  const lines = places.filter(({ part }) => !isRecord(part)).map(({ line }) => line)
  return !lines.some((line) => line.includes(word)) && lines.some((line) => line.includes(`${stem}ing`))
}

const sentenceWords = 2

function isSentence(place: QuotePlace): boolean {
  const { leaf, line } = place
  if (typeof leaf.value !== 'string' || columnsOf(place).length > 0) return false
  return (line.match(/(?<![\w./-])[a-z]{2,}(?![\w./-])/g) ?? []).length >= sentenceWords
}

/** Removes time, host and program from a journal line. */
const withoutSender = (line: string) => line.replace(/^.{0,80}?[\w.-]+\[\d+\]: ?/, '')

/**
 * Compares the order of names, figures and words in a quoted line with their order in the clause.
 * `apart`: the clause has too few of them, or fewer names and figures than `parties`. A write of
 * this attempt may be told in any order, except between two of its resources.
 */
function orderIn(line: string, clause: Clause, parties: 1 | 2): 'kept' | 'turned' | 'apart' {
  const names = clause.groups
    .flat()
    .map(({ text, start }) => ({ at: start - clause.start, forms: [text.toLowerCase()], isWord: false }))
  const figures = figuresIn(clause.text)
  const digits = figures
    .filter(({ isWord }) => !isWord)
    .map(({ at, end }) => ({ at, forms: [clause.raw.slice(at, end).replaceAll(',', '')], isWord: false }))
  const words = wordsOf(clause, figures, []).map(({ text }) => ({
    at: clause.text.search(new RegExp(`(?<!\\p{L})${text}`, 'u')),
    forms: formsOf(text),
    isWord: true,
  }))
  const plain = line.replace(/(?<=\d),(?=\d{3})/g, '')
  const told = [...names, ...digits, ...words]
    .filter(({ forms }) => findWord(plain, forms, 0) >= 0)
    .sort((a, b) => a.at - b.at)
  if (told.length < 2 || told.filter(({ isWord }) => !isWord).length < parties) return 'apart'
  let at = 0
  for (const { forms } of told) {
    const next = findWord(plain, forms, at)
    if (next < 0) return 'turned'
    at = next + 1
  }
  return 'kept'
}

function findWord(line: string, forms: readonly string[], from: number): number {
  const found = forms.map((form) => {
    const escaped = form.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const ending = /\p{L}$/u.test(form) && !/[\d.-]/.test(form) ? '\\p{L}{0,3}(?![\\w-])' : '(?![\\w-]|\\.\\d)'
    const match = new RegExp(`(?<![\\w-])${escaped}${ending}`, 'u').exec(line.slice(from))
    return match ? from + match.index : -1
  })
  const all = found.filter((at) => at >= 0)
  return all.length > 0 ? Math.min(...all) : -1
}
