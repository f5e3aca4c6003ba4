import type { Claim } from '../../domain/claim.ts'
import { type Action, actionsIn, holdsName, isGeneralVerb, type Name, namesIn } from './actions.ts'
import { add, addHead, denialWords, formsOf, type KnownWords, keyOf, knownWords, subjectKeys } from './known-words.ts'
import { keyWords, matchesFigure } from './measure.ts'
import { type Figure, figuresIn, valuesAt } from './numbers.ts'
import type { QuotePlace } from './quote.ts'
import type { ClaimEvidence, Part } from './rows.ts'
import { isForEach, showsAt, statesIn } from './states.ts'
import type { Clause } from './text.ts'
import { neutral, valueWords } from './word-tables.ts'

/** What a rule of grade A reads: the claim, its clauses, and where its quotes stand. */
type Quoted = {
  claim: Claim
  clauses: readonly Clause[]
  places: readonly QuotePlace[]
  evidence: ClaimEvidence
}

/** Keys that name a thing and say nothing of it. */
const nameKeys = /^(?:id|name|kind|region|type|host|hostname|node|shard|tenant|seq|callid)$/
/** Parts of the context that give orders, guess, or speak of other incidents. */
const hearsay =
  /^(?:annotations?|hint|hints|precedents?|runbooks?|knowledge|earlierattempts|messages|notes|expected|proposals?)$/
/** Why an absent claim is not shown word for word by rows that asked for what it says is not there; null: it is grade A. */
export function findLooseAbsence({ claim, clauses, evidence }: Omit<Quoted, 'places'>): string | null {
  const parts = claim.quotes.flatMap(({ seq }) => evidence.parts.filter((part) => part.seqs.includes(seq)))
  const known: KnownWords = { plain: new Set(), denied: new Set() }
  for (const part of parts) addHead(known, part)
  for (const { text } of claim.quotes) add(known.plain, text)
  const words = clauses.flatMap((clause) => wordsOf(clause, figuresIn(clause.text), []))
  const word = words.find(({ text }) => !formsOf(text).some((form) => known.plain.has(form)))
  return mixedLetters({ claim }) ?? (word ? `no row that it cites was asked for "${word.text}"` : null)
}

/** Why a claim that nothing speaks against is not shown by its rows word for word; null: it is grade A. */
export function findLoose(quoted: Quoted): string | null {
  for (const rule of rules) {
    const found = rule(quoted)
    if (found !== null) return found
  }
  return null
}

/** In this order. Each names the first word, figure or place that keeps a claim from grade A. */
const rules: ((quoted: Quoted) => string | null)[] = [
  mixedLetters,
  withoutValue,
  hearsayOnly,
  unprovenWrite,
  joinedByGuess,
  ...[unmatchedFigure, unspokenWord, otherValue, otherOrder, notOfEach].map(
    (rule) => (quoted: Quoted) => firstOf(quoted.clauses, (clause) => rule(clause, quoted)),
  ),
]

function firstOf<T>(all: readonly T[], find: (each: T) => string | null): string | null {
  for (const each of all) {
    const found = find(each)
    if (found !== null) return found
  }
  return null
}

/** Letters of another script beside Latin ones look alike and are other words. */
function mixedLetters({ claim }: Pick<Quoted, 'claim'>): string | null {
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
  return place ? `row ${place.part.seq} repeats there what somebody else said` : null
}

/** A name, an id or a kind says which thing is meant, and nothing of it. */
function withoutValue({ claim, places }: Quoted): string | null {
  if (claim.kind === 'absent' || places.some((place) => !nameKeys.test(keyOf(place)) || isLongText(place))) return null
  return 'what it quotes is a name, not a value'
}

const isLongText = ({ leaf }: QuotePlace) => typeof leaf.value === 'string' && /\s/.test(leaf.value.trim())

/** What was done is shown by a verification that held, not by a command that ended well. */
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

const joins =
  /\b(?:because|since|due to|caus\w+|as a result|result\w* (?:in|from)|led to|leads? to|leading to|therefore|thus|hence|so that|so|after|before|once|when|whenever|following|followed|triggered|owing|thanks|made|makes|until|till|then|fell|rose|dropped|grew|than|if|unless)\b/

const reasonKeys = /^(?:reason|why|cause|message|error|detail)$/

/** Two facts that stand in different lines say nothing of each other: one line tells both, or two times their order. */
function joinedByGuess({ claim, clauses, places }: Quoted): string | null {
  const found = joins.exec(claim.text.toLowerCase())?.[0]
  if (!found) return null
  const isOneLine = new Set(places.map(({ part, line }) => `${part.seq} ${line}`)).size === 1
  const isReason =
    found === 'because' && supportsOf(places).length === 1 && places.some((place) => reasonKeys.test(keyOf(place)))
  const hasTimes = clauses.flatMap(({ moments }) => moments).length >= 2
  const isInLine = places.some(({ line }) => line.includes(found))
  return (isOneLine && isInLine) || isReason || hasTimes ? null : `no line that is quoted says "${found}"`
}

/** Places that speak of one thing: an element of a list, a line of a text, or a whole result. */
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

/** What a clause is about: of several names that stand side by side each has its own place. */
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

/** An element of a list, or a line that names something, is about what it names itself: the clause has to name one of these. */
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

/** The first thing that no place of what the clause is about gives, by this test. */
function ofSubjects(clause: Clause, { places }: Quoted, lacks: (support: Support) => string | null): string | null {
  const supports = supportsOf(places)
  return firstOf(subjectsOf(clause), (names) => {
    const own = supports.filter(
      (support) => names.every(({ text }) => holdsName(support.about, text)) && isOfThese(support, clause),
    )
    if (own.length === 0)
      return names.length === 0
        ? 'it names none of what is quoted'
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
    return missing ? `no quote gives ${clause.raw.slice(missing.at, missing.end)}` : null
  })
}

const isBoth = ({ at }: Figure, { text }: Clause) => /^both\b/.test(text.slice(at))

/** Each word stands in what is quoted, with the polarity that it has there. */
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

/** An element that is a text, and no field of a thing. */
function isAloneIn(item: QuotePlace['item'], part: Part): boolean {
  return part.document().leaves.filter((leaf) => leaf.item === item).length < 2
}

type Word = { text: string; isDenied: boolean }

/** The words of a clause that say something, but for names, times, figures with their units, and what a verified write did. */
function wordsOf(clause: Clause, figures: readonly Figure[], actions: readonly Action[]): Word[] {
  let { text } = clause
  for (const { at, end, unit, isWord } of figures.toReversed()) {
    const behind = text.slice(end)
    const unitLength = unit ? (/^[ -]?(?:%|°?[a-zµ]+)/.exec(behind)?.[0].length ?? 0) : 0
    if (!isWord || unit) text = `${text.slice(0, at)} ${' '.repeat(unitLength)}${text.slice(end + unitLength)}`
    else text = `${text.slice(0, at)} ${text.slice(end)}`
  }
  const deniedFrom = denialWords.exec(text)?.index ?? Number.POSITIVE_INFINITY
  const verbs = new Set(actions.map(({ verb }) => verb))
  return [...text.matchAll(/\p{L}[\p{L}']*/gu)].flatMap((match) => {
    const word = match[0].replace(/'s?$/, '')
    if (neutral.has(word) || denialWords.test(word) || word.length < 2 || verbs.has(word)) return []
    return [{ text: word, isDenied: match.index > deniedFrom }]
  })
}

/** A key of which the clause speaks has the value that it gives there: "cache is ok" is not said by cache:timeout. */
function otherValue(clause: Clause, { places }: Quoted): string | null {
  const words = new Set(wordsOf(clause, [], []).flatMap(({ text }) => formsOf(text)))
  const says = (text: string) =>
    (text.match(/\p{L}[\p{L}']*/gu) ?? []).some((word) => formsOf(word).some((form) => words.has(form)))
  const other = places.find((place) => {
    const { leaf, line } = place
    if (typeof leaf.value !== 'string' || subjectKeys.test(keyOf(place)) || !/\p{L}/u.test(line)) return false
    const isSpokenOf = keyWords([keyOf(place)]).some((word) => formsOf(word).some((form) => words.has(form)))
    return isSpokenOf && !says(`${line} ${valueWords[line.trim()] ?? ''}`)
  })
  return other ? `row ${other.part.seq} says "${keyOf(other)}: ${other.line.slice(0, 80)}"` : null
}

/** An act of somebody else stands in the order of the line: who, what was done, and to what. */
function otherOrder(clause: Clause, { claim, places }: Quoted): string | null {
  if (claim.kind === 'did' || actionsIn(clause.text).length === 0) return null
  const words = wordsOf({ ...clause, text: clause.raw }, [], []).map(({ text }) => text)
  const isInOrder = places.some(({ line }) => {
    let at = 0
    return words.every((word) => {
      const next = Math.max(...formsOf(word).map((form) => line.indexOf(form, at)))
      at = Math.max(at, next)
      return next >= 0
    })
  })
  return isInOrder || places.every(({ leaf }) => typeof leaf.value !== 'string')
    ? null
    : 'no line tells it in this order'
}

const ofMany =
  /\b(?:all|both|every|each|nodes|hosts|shards|vms|guests|replicas|pods|machines|servers|devices|instances|services|tenants)\b/

/** What is said of no name holds for each element of the list that is quoted. */
function notOfEach(clause: Clause, { places }: Quoted): string | null {
  const isSaidOfAll = ofMany.test(clause.text)
  if (!isSaidOfAll && subjectsOf(clause).some((names) => names.length > 0)) return null
  const states = statesIn(clause.text)
  const figures = figuresIn(clause.text)
  const inLists = places.filter(({ item, leaf }) => item.list !== null && item.list.length > 1 && leaf.item === item)
  const isOfThings = inLists.some(
    ({ item, part }) => part.document().leaves.filter((leaf) => leaf.item === item).length > 1,
  )
  if (!isOfThings) return isSaidOfAll && inLists.length === 0 ? 'no list that is quoted shows all of them' : null
  if (isSaidOfAll && states.length === 0) return 'no quote says so of each'
  const loose = states.find(
    (state) =>
      !isForEach(
        inLists.filter((place) => showsAt(place, state)),
        state,
      ),
  )
  if (loose) return `not each of them is ${loose.word} by what is quoted`
  return figures.length > 0 || states.length === 0 ? 'it names none of those that are listed' : null
}
