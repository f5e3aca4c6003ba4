import { actionsIn, holdsName, isGeneralVerb, type Name, namesIn } from './actions.ts'
import { type Quoted, wordsOf } from './clause-words.ts'
import { formsOf, keyOf, knownWords } from './known-words.ts'
import { matchesFigure } from './measure.ts'
import { type Figure, figuresIn, valuesAt } from './numbers.ts'
import type { QuotePlace } from './quote.ts'
import {
  emptyAsFull,
  halfOfKey,
  keyOfAnother,
  momentOfAnother,
  otherValue,
  qualifierLeftOut,
  zeroAsSome,
} from './quoted-keys.ts'
import { commentedOut, joinedByGuess, otherColumn, otherOrder } from './quoted-lines.ts'
import type { Part } from './rows.ts'
import { isForEach, showsAt, statesIn } from './states.ts'
import type { Clause } from './text.ts'

/** Matches keys that name a resource without describing it. */
const nameKeys = /^(?:id|name|kind|region|type|host|hostname|node|shard|tenant|seq|callid)$/
/** Matches parts of the context that give instructions, guess, or are about other incidents. */
const hearsay =
  /^(?:annotations?|hint|hints|precedents?|calledwrong|runbooks?|knowledge|earlierattempts|messages|notes|expected|proposals?)$/
/**
 * Returns why rows do not show a claim word for word; null if the claim gets grade A. Used for
 * claims that no row contradicts.
 */
export function findLoose(quoted: Quoted): string | null {
  for (const rule of rules) {
    const found = rule(quoted)
    if (found !== null) return found
  }
  return null
}

/**
 * Rules in order. Each rule returns the first word, figure or place for which a claim does not get
 * grade A.
 */
const rules: ((quoted: Quoted) => string | null)[] = [
  mixedLetters,
  withoutValue,
  hearsayOnly,
  commentedOut,
  unprovenWrite,
  joinedByGuess,
  ...[
    unmatchedFigure,
    unspokenWord,
    otherValue,
    zeroAsSome,
    emptyAsFull,
    qualifierLeftOut,
    keyOfAnother,
    halfOfKey,
    momentOfAnother,
    wholeForPart,
    otherColumn,
    otherOrder,
    notOfEach,
  ].map((rule) => (quoted: Quoted) => firstOf(quoted.clauses, (clause) => rule(clause, quoted))),
]

function firstOf<T>(all: readonly T[], find: (each: T) => string | null): string | null {
  for (const each of all) {
    const found = find(each)
    if (found !== null) return found
  }
  return null
}

/**
 * Finds a letter of another script in a claim with Latin letters, because it may look like a Latin
 * letter.
 */
export function mixedLetters({ claim }: Pick<Quoted, 'claim'>): string | null {
  const other = /(?=\p{L})[^\p{Script=Latin}\p{Script=Common}]/u.exec(claim.text)?.[0]
  return other && /\p{Script=Latin}/u.test(claim.text) ? `"${other}" is a letter of another script` : null
}

function isHearsay({ part, leaf }: QuotePlace): boolean {
  if (
    part.source === 'refusal' ||
    /^more_tools|runbook|knowledge|precedent|^list_incident|^get_incident/.test(part.tool)
  )
    return true
  return part.source === 'context' && leaf.path.some((step) => hearsay.test(step.toLowerCase()))
}

function hearsayOnly({ places }: Quoted): string | null {
  const place = places.find(isHearsay)
  return place ? `row ${place.part.seq} repeats there the words of somebody else` : null
}

/** Refuses quotes of only a name, id or kind, which describe nothing. */
function withoutValue({ claim, places }: Quoted): string | null {
  if (claim.kind === 'absent' || places.some((place) => !nameKeys.test(keyOf(place)) || isLongText(place))) return null
  return 'the quote is a name, not a value'
}

const partArguments = ['unit', 'service', 'process', 'container', 'package', 'packages', 'path', 'pid']

/** Refuses a claim about a whole if the write was on a part: restarting nginx restarts no node. */
function wholeForPart(clause: Clause, { claim, places, evidence }: Quoted): string | null {
  if (claim.kind !== 'did' || actionsIn(clause.text).length === 0) return null
  const names = clause.groups.flat().filter(({ kind }) => kind === 'name')
  const isOfTool = ({ verb }: { verb: string }) => places.some(({ part }) => part.tool.includes(verb.slice(0, 5)))
  const member = places.find(({ part, line }) => {
    if (part.source !== 'write' || namesIn(line, []).every(({ kind }) => kind !== 'name')) return false
    return names.some(({ text }) => holdsName(part.head, text)) && !names.some(({ text }) => holdsName(line, text))
  })
  if (member && !actionsIn(clause.text).every(isOfTool)) return `its write says "${member.line.slice(0, 80)}"`
  const calls = new Set(places.map(({ part }) => part.callId))
  const parts = evidence.writes.filter(({ callId }) => calls.has(callId)).flatMap((write) => write.parts)
  const named = parts.flatMap((part) => partArguments.map((key) => part.arguments[key])).flat()
  const words = named
    .filter((each) => typeof each === 'string' || typeof each === 'number')
    .map((each) => String(each).toLowerCase())
  const isSaid = (word: string) =>
    [word, word.split('/').at(-1) as string, word.replace(/\.[a-z]+$/, '')].some((each) =>
      claim.text.toLowerCase().includes(each),
    )
  return words.length === 0 || words.some(isSaid) ? null : `its write was on ${words[0]} alone`
}

const isLongText = ({ leaf }: QuotePlace) => typeof leaf.value === 'string' && /\s/.test(leaf.value.trim())

/** Requires for an act a verification that held; a command's successful exit is not enough. */
function unprovenWrite({ claim, places, evidence, clauses }: Quoted): string | null {
  const says = clauses.flatMap(({ text }) => actionsIn(text)).filter(({ isDenied }) => !isDenied)
  if (claim.kind !== 'did' && says.length === 0) return null
  const general = says.find(isGeneralVerb)
  if (general) return `"${general.verb}" is a judgement`
  const calls = new Set(places.map(({ part }) => part.callId))
  const written = evidence.writes.filter(({ callId }) => calls.has(callId))
  const isTold = written.length === 0 && claim.kind !== 'did'
  return isTold || written.some(({ isProven, failed }) => isProven || failed) ? null : 'its write was not verified'
}

/** Places about one subject: an element of a list, a line of a text, or a whole result. */
type Support = { places: QuotePlace[]; about: string }

function supportsOf(places: readonly QuotePlace[]): Support[] {
  const found = new Map<string, Support>()
  for (const place of places) {
    const isText = place.leaf.lines.length > 1
    const key = `${place.part.seq}:${place.part.source}:${isText ? place.line : place.item.start}`
    const known = found.get(key) ?? { places: [], about: '' }
    found.set(key, { places: [...known.places, place], about: `${known.about} ${place.about} ${place.part.head}` })
  }
  return [...found.values()]
}

/**
 * Lists the subjects of a clause. Each of several names side by side is a subject, and needs its
 * own places.
 */
function subjectsOf(clause: Clause): Name[][] {
  const groups = clause.groups.length > 0 ? clause.groups : clause.carried.length > 0 ? [clause.carried] : []
  const named = groups.map((group) => group.filter(({ kind }) => kind !== 'literal')).filter(({ length }) => length > 0)
  const [first] = named
  if (named.length === 1 && first && first.length > 1) return first.map((name) => [name])
  return [named.flat()]
}

function hasName(item: QuotePlace['item'], part: Part): boolean {
  return part
    .document()
    .leaves.some(
      (leaf) => leaf.item === item && /^(?:id|name|host|node|pod|device|instance)$/.test(leaf.path.at(-1) ?? ''),
    )
}

/**
 * Whether an element or line is about the names of the clause. Returns false for an element that
 * names something else.
 */
function isOfThese({ places }: Support, clause: Clause): boolean {
  const said = [...clause.groups.flat(), ...clause.carried].map(({ text }) => text)
  return places.every(({ part, item, leaf, line }) => {
    const isText = leaf.lines.length > 1 || (item.list !== null && isAloneIn(item, part))
    const isProse = isText || (typeof leaf.value === 'string' && /\s/.test(line))
    const named = isProse ? namesIn(line, []).filter(({ kind }) => kind === 'name') : []
    if (named.length > 0 && !said.some((name) => holdsName(line, name))) return false
    if (isText) return true
    if (item.list === null || item.list.length < 2 || !hasName(item, part)) return true
    const { text } = part.document()
    return said.some((name) => holdsName(text.slice(item.start, item.end), name))
  })
}

/**
 * Returns what the quotes about a subject of the clause lack; null if each subject has a quote that
 * lacks nothing. `lacks` tests one quote.
 */
function ofSubjects(clause: Clause, { places }: Quoted, lacks: (support: Support) => string | null): string | null {
  const supports = supportsOf(places)
  return firstOf(subjectsOf(clause), (names) => {
    const own = supports.filter(
      (support) => names.every(({ text }) => holdsName(support.about, text)) && isOfThese(support, clause),
    )
    if (own.length === 0)
      return names.length === 0
        ? 'it names none of the quoted words'
        : `nothing quoted is about ${names.map(({ text }) => text).join(' and ')}`
    const found = own.map(lacks)
    return found.includes(null) ? null : (found[0] ?? null)
  })
}

function unmatchedFigure(clause: Clause, quoted: Quoted): string | null {
  const figures = figuresIn(clause.text)
  if (figures.length === 0) return null
  return ofSubjects(clause, quoted, ({ places }) => {
    const values = places.flatMap(valuesAt)
    const missing = figures.find(
      (each) => !isBoth(each, clause) && !values.some((value) => matchesFigure(each, { ...value, from: value })),
    )
    return missing ? `no quote has ${clause.raw.slice(missing.at, missing.end)}` : null
  })
}

const isBoth = ({ at }: Figure, { text }: Clause) => /^both\b/.test(text.slice(at))

/** Finds a word that no quote contains in the same sense, affirmed or denied. */
function unspokenWord(clause: Clause, quoted: Quoted): string | null {
  const isOfWrite = quoted.places.some(({ part }) => part.source === 'write' || part.source === 'verification')
  const actions = isOfWrite ? actionsIn(clause.text).filter(({ isDenied }) => !isDenied) : []
  const words = wordsOf(clause, figuresIn(clause.text), actions)
  const every = /\b(?:all|both|every|each)\b/.exec(clause.text)?.[0]
  const missing = ofSubjects(clause, quoted, (support) => {
    const known = knownWords(support.places)
    const word = words.find(({ text, isDenied }) => {
      if (text === every) return false
      const sets = isDenied ? [known.denied] : [known.plain]
      return !formsOf(text).some((form) => sets.some((set) => set.has(form)))
    })
    return word ? `no quote says "${word.isDenied ? 'not ' : ''}${word.text}"` : null
  })
  if (missing !== null) return missing
  const literal = clause.groups
    .flat()
    .find(
      ({ kind, text }) =>
        kind === 'literal' && !quoted.places.some(({ line, about }) => `${line} ${about}`.includes(text.toLowerCase())),
    )
  return literal ? `no quote says "${literal.text}"` : null
}

/** Whether an element is a text by itself, and not one of several fields. */
function isAloneIn(item: QuotePlace['item'], part: Part): boolean {
  return part.document().leaves.filter((leaf) => leaf.item === item).length < 2
}

const ofMany =
  /\b(?:all|both|every|each|nodes|hosts|shards|vms|guests|replicas|pods|machines|servers|devices|instances|services|tenants)\b/

/** Refuses a claim without a name that is not true of every element of the quoted list. */
function notOfEach(clause: Clause, { places }: Quoted): string | null {
  const isSaidOfAll = ofMany.test(clause.text)
  if (!isSaidOfAll && subjectsOf(clause).some((names) => names.length > 0)) return null
  const states = statesIn(clause.text)
  const figures = figuresIn(clause.text)
  const inLists = places.filter(({ item, leaf }) => item.list !== null && item.list.length > 1 && leaf.item === item)
  const isOfThings = inLists.some(
    ({ item, part }) => part.document().leaves.filter((leaf) => leaf.item === item).length > 1,
  )
  if (!isOfThings) return isSaidOfAll && inLists.length === 0 ? 'no quoted list shows all items' : null
  if (isSaidOfAll && states.length === 0) return 'no quote shows this for each item'
  const loose = states.find(
    (state) =>
      !isForEach(
        inLists.filter((place) => showsAt(place, state)),
        state,
      ),
  )
  if (loose) return `the quotes do not show each of them ${loose.word}`
  return figures.length > 0 || states.length === 0 ? 'it names none of the listed items' : null
}
