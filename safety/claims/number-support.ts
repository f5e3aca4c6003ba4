import { holdsName } from './actions.ts'
import { type KnownQuantity, keyWords, matchesFigure, type Unit } from './measure.ts'
import { type Figure, figuresIn, momentsIn, type QuotedNumber, secondsBetween, valuesAt } from './numbers.ts'
import { type ClaimProblem, problem, type QuotePlace, said } from './quote.ts'
import { showsAt, statesIn } from './states.ts'
import type { Clause } from './text.ts'

const maxOperands = 24
const percent: Unit = { dimension: 'percent', factors: [1] }
const seconds: Unit = { dimension: 'seconds', factors: [1] }

/** Words that tell how a number was computed. */
const cues = {
  sum: /\b(?:together|total|sum|altogether|in all|combined)\b/,
  difference:
    /\b(?:over by|by|difference|differs?|more|fewer|less|free\w*|left|remain\w*|grew|grown|growth|increase\w*|decrease\w*|rose|fell|dropped|short|missing|too many|apart|gap|available)\b/,
  ratio: /\b(?:times|twice|half|halved|doubled?|tripled?|ratio|share|per|each)\b|%|percent/,
  mean: /\b(?:average|mean)\b/,
  duration: /\b(?:took|within|lasted|between|after|later|earlier|ago|apart|for|took|down for|in)\b/,
}
type Way = keyof typeof cues
/**
 * Number of digits from which a number rarely matches by chance. The claim need not say how such a
 * number was computed.
 */
const tellingDigits = 4

/**
 * Whether the number is a sum, difference, product, ratio or duration of quoted numbers. If the
 * number is short, the claim must say how it was computed.
 */
function isComputed(
  figure: Figure,
  clause: string,
  values: readonly QuotedNumber[],
  times: readonly string[],
): boolean {
  const digits = String(Math.abs(figure.value))
    .replace(/[^\d]/g, '')
    .replace(/^0+|0+$/g, '').length
  const mayBe = (way: Way) => digits >= tellingDigits || cues[way].test(clause)
  return [...sums(values), ...pairs(values), ...durations(times)].some(
    ({ way, ...known }) => mayBe(way) && matchesFigure(figure, known),
  )
}

type Computation = KnownQuantity & { way: Way }

function based(value: QuotedNumber): { value: number; unit: Unit | null } {
  if (!value.unit) return { value: value.value, unit: null }
  return { value: value.value * (value.unit.factors[0] as number), unit: { ...value.unit, factors: [1] } }
}

/** Returns sum and mean of the quoted numbers of each key, and of all quoted numbers. */
function sums(values: readonly QuotedNumber[]): Computation[] {
  if (values.length < 2) return []
  const groups = new Map<string, QuotedNumber[]>()
  for (const value of values) {
    const key = value.path.filter((step) => !/^\d+$/.test(step)).join('.')
    groups.set(key, [...(groups.get(key) ?? []), value])
  }
  return [...groups.values(), [...values]].flatMap((group) => {
    const [first] = group
    if (!first || group.length < 2) return []
    const parts = group.map(based)
    const unit = parts[0]?.unit ?? null
    if (parts.some((part) => part.unit?.dimension !== unit?.dimension)) return []
    const total = parts.reduce((sum, part) => sum + part.value, 0)
    const from = first.unit ? null : first
    return [
      { way: 'sum' as const, value: total, unit, from },
      { way: 'mean' as const, value: total / parts.length, unit, from },
    ]
  })
}

function pairs(values: readonly QuotedNumber[]): Computation[] {
  const operands = values.slice(0, maxOperands)
  const known: Computation[] = []
  for (const [index, first] of operands.entries()) {
    for (const second of operands.slice(index + 1)) {
      const a = based(first)
      const b = based(second)
      const from = first.unit ? null : first
      if (a.unit?.dimension === b.unit?.dimension) {
        known.push({ way: 'sum', value: a.value + b.value, unit: a.unit, from })
        known.push({ way: 'difference', value: Math.abs(a.value - b.value), unit: a.unit, from })
        for (const [part, whole] of [
          [a.value, b.value],
          [b.value, a.value],
        ] as const) {
          if (whole === 0 || a.unit?.dimension === 'percent') continue
          known.push({ way: 'ratio', value: (part / whole) * 100, unit: percent, from: null })
          known.push({ way: 'ratio', value: part / whole, unit: null, from: first })
        }
      }
      if (!a.unit || !b.unit) known.push({ way: 'ratio', value: a.value * b.value, unit: a.unit ?? b.unit, from })
    }
  }
  return known
}

function durations(times: readonly string[]): Computation[] {
  return times.slice(0, maxOperands).flatMap((first, index) =>
    times.slice(index + 1, maxOperands).flatMap((second) => {
      const value = secondsBetween(first, second)
      return value === null ? [] : [{ way: 'duration' as const, value, unit: seconds, from: null }]
    }),
  )
}

/** Finds the first number of a clause that the quotes neither contain nor count nor add up to. */
export function numbersProblem(clause: Clause, places: readonly QuotePlace[], isLoose: boolean): ClaimProblem | null {
  const figures = figuresIn(clause.text)
  if (figures.length === 0) return null
  const own = isLoose ? places : ownPlaces(clause, places)
  // Computes within one row at a time, because from all rows together almost any number can be
  // computed.
  const isOneRow = !isLoose || new Set(places.map(({ part }) => part)).size === 1
  const values = own.flatMap(valuesAt)
  // Includes the numbers of the other quoted resources if the clause has words of comparison.
  const compared =
    isLoose || !/\b(?:than|twice|half|double|together|sum|total|difference)\b/.test(clause.text)
      ? values
      : places.flatMap(valuesAt)
  const operands = isOneRow ? compared.filter((value) => !isWish(value) || saysWish(clause)) : []
  const times = isOneRow
    ? own.flatMap(({ line, from, to }) => momentsIn(line.slice(from, to)).map(({ text }) => text))
    : []
  for (const figure of figures) {
    if (figure.isWord && clause.text.slice(figure.at).startsWith('both')) continue
    // Accepts a number without a unit as part of a title: Deploy 42.
    const titles = figure.unit ? [] : places.filter(({ leaf }) => typeof leaf.value === 'string').flatMap(valuesAt)
    const isGiven = [...values, ...titles].some(
      (value) => matchesFigure(figure, known(value, clause)) && isAlike(value, clause, figure),
    )
    if (isGiven || isCount(figure, clause, own, isLoose && isOneRow)) continue
    if (isComputed(figure, clause.text, operands, [...new Set(times)])) continue
    const around = clause.raw.slice(Math.max(0, figure.at - 12), figure.end + 12)
    return problem('NUMBER_NOT_SHOWN', `no quote gives ${said(around)}`)
  }
  return null
}

const shrinks = /\b(?:shr[aiu]nk\w*|f[ae]ll\w*|drop\w*|declin\w*|decreas\w*|sinks?|sank|los(?:es|ing|t)|less|down)\b/

/**
 * Reads a number from a row. Drops the minus sign if the clause names a decrease, because that word
 * already tells the sign.
 */
function known(value: QuotedNumber, { text }: Clause): KnownQuantity {
  return { ...value, value: value.value < 0 && shrinks.test(text) ? -value.value : value.value, from: value }
}

/** Keeps the places about the clause's names; a number of another resource shows nothing. */
function ownPlaces(clause: Clause, places: readonly QuotePlace[]): readonly QuotePlace[] {
  const all = clause.groups.length > 0 ? clause.groups.flat() : clause.carried
  const named = all.filter(({ kind }) => kind === 'name')
  return named.length === 0 ? places : places.filter(({ about }) => named.some(({ text }) => holdsName(about, text)))
}

/**
 * Whether a number belongs to the field that the clause names: "logs 15085" is not the used disk.
 */
function isAlike(value: QuotedNumber, clause: Clause, figure: Figure): boolean {
  const key = value.path.at(-1)?.toLowerCase() ?? ''
  const isNamed = key !== '' && clause.text.includes(key)
  if (isWish(value) && !isNamed && !saysWish(clause) && !/\bof (?:about )?$/.test(clause.text.slice(0, figure.at)))
    return false
  const { leaf, part } = value.place
  if (typeof leaf.value !== 'number') return true
  const own = keyWords(leaf.path.slice(-1))
  const words = clause.text.split(/[^a-z%]+/).filter((word) => word.length > 2)
  const names = (key: readonly string[]) =>
    key.some((word) => word.length > 2 && !measures.has(word) && words.some((other) => isSameStem(word, other)))
  if (names(own)) return true
  const siblings = part
    .document()
    .leaves.filter((each) => each !== leaf && each.item === leaf.item && typeof each.value === 'number')
  const before = figuresIn(clause.text.slice(0, figure.at)).at(-1)?.end ?? 0
  const near = clause.text.slice(Math.max(before, figure.at - 30), figure.end + 24)
  return !siblings.some((each) => {
    const key = keyWords(each.path.slice(-1)).filter(
      (word) => word.length > 2 && !measures.has(word) && !own.includes(word),
    )
    return (
      key.length > 0 &&
      key.every((word) => near.split(/[^a-z%]+/).some((other) => other.length > 2 && isSameStem(word, other)))
    )
  })
}

const measures = new Set(['bytes', 'seconds', 'mib', 'percent', 'count', 'total', 'size', 'number', 'time', 'value'])

function isSameStem(one: string, other: string): boolean {
  const length = Math.min(one.length, other.length, 5)
  return length >= 3 && one.slice(0, length) === other.slice(0, length)
}

/** Whether a quoted number is a target or limit, which tells nothing about the present. */
function isWish({ place, at, path }: QuotedNumber): boolean {
  if (typeof place.leaf.value === 'number') return keyWords(path.slice(-1)).some((word) => limits.has(word))
  return /\b(?:should be|must be|expected|desired|wanted|limit(?: is| of)?|threshold(?: is| of)?|at most|at least|max(?:imum)?|min(?:imum)?)[ :=]*$/.test(
    place.line.slice(0, at),
  )
}

const limits = new Set([
  'limit',
  'max',
  'min',
  'maximum',
  'minimum',
  'threshold',
  'desired',
  'expected',
  'target',
  'quota',
  'allowed',
])

function saysWish({ text }: Clause): boolean {
  return /\b(?:should|instead|desired|expected|want\w*|limit|threshold|quota|says|configur\w*|target|allow\w*|maximum|minimum|must|may|can|up to)\b/.test(
    text,
  )
}

/**
 * Whether the number counts something: quoted elements, their list, or cited reads. If the clause
 * names a state, only elements in that state count. If the whole row is meant (`isWhole`), lines
 * with a common name or value are counted too.
 */
function isCount(figure: Figure, clause: Clause, places: readonly QuotePlace[], isWhole: boolean): boolean {
  if (figure.unit || figure.decimals > 0 || figure.value <= 0 || (figure.noun === null && !figure.isWord)) return false
  const rows = new Set(places.map(({ part }) => part.seq)).size
  if (/^(?:looks?|reads?|times|samples?)$/.test(figure.noun ?? '') && rows === figure.value) return true
  const states = statesIn(clause.text)
  const counted = states.length === 0 ? places : places.filter((place) => states.some((state) => showsAt(place, state)))
  const items = new Set(counted.filter(({ item }) => item.list).map(({ item, part }) => `${part.seq}:${item.start}`))
  if (items.size === figure.value) return true
  if (isWhole && isShared(figure, clause, counted)) return true
  // Reads the number after "of" as a total: in "one of three hosts is nominal", three is the number
  // of all hosts.
  const isTotal = /\bof (?:the |all )?$/.test(clause.text.slice(0, figure.at))
  if (states.length > 0 && !isTotal) return false
  const lists = new Set(places.flatMap(({ item }) => (item.list ? [item.list] : [])))
  return (
    [...lists].some((list) => list.length === figure.value) ||
    clause.groups.some((group) => group.length === figure.value)
  )
}

/**
 * Whether the figure is the number of lines that contain a name or number of the clause, or of
 * elements with one common value.
 */
function isShared(figure: Figure, clause: Clause, places: readonly QuotePlace[]): boolean {
  const names = clause.groups.flat()
  if (names.some(({ text }) => places.filter(({ line }) => holdsName(line, text)).length === figure.value)) return true
  const behind = clause.text.slice(figure.end).replace(/,/g, '')
  const other = /^ of (\d+)/.exec(behind)?.[1]
  if (other && places.flatMap(valuesAt).filter(({ value }) => value === Number(other)).length === figure.value)
    return true
  const shared = new Map<string, number>()
  for (const { leaf, item, line } of places) {
    if (!item.list) continue
    const key = `${leaf.path.at(-1)}:${line}`
    shared.set(key, (shared.get(key) ?? 0) + 1)
  }
  return [...shared.values()].includes(figure.value)
}
