import { actionsIn, holdsName, isVerbOf, type Name, namesIn, saysFailed } from './actions.ts'
import { figuresIn, momentsIn, type QuotedMoment, references } from './numbers.ts'
import { allPlaces, type ClaimProblem, problem, type QuotePlace, said } from './quote.ts'
import type { CitableWrite, ClaimEvidence } from './rows.ts'
import { statesIn } from './states.ts'
import { findUnsupported } from './support.ts'

type UnshownPart = { text: string; problem: ClaimProblem }

const maxUnshown = 10
const maxCharacters = 20_000
const maxPlaces = 10_000

/**
 * What a resolution, a reason or an answer in prose says that no row of the attempt shows. It cites nothing, so every row
 * counts: a name and a number stand in some row, a state is quoted with its subject, and what was done was written.
 * Advice is not held against anything.
 */
export function checkText(text: string, evidence: ClaimEvidence): UnshownPart[] {
  const clauses = clausesOf(text.slice(0, maxCharacters), evidence.known)
  const words = wordsIn(clauses)
  const places = evidence.parts
    .filter(({ source }) => source !== 'record')
    .flatMap((part) => allPlaces(part, words))
    .slice(-maxPlaces)
  const found: UnshownPart[] = []
  for (const clause of clauses) {
    const wrong = clauseProblem(clause, clauses, places, evidence)
    if (wrong && !found.some((each) => each.text === clause.raw.trim()))
      found.push({ text: clause.raw.trim(), problem: wrong })
  }
  return found.slice(0, maxUnshown)
}

function clauseProblem(
  clause: Clause,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  const done = actionProblem(clause, places, evidence)
  if (done) return done
  if (clause.isAdvice) return null
  for (const name of clause.groups.flat()) {
    const isKnown =
      holdsName(evidence.incidentId, name.text) ||
      evidence.parts.some(
        (part) =>
          holdsName(part.head, name.text) ||
          holdsName(part.document().text, name.text) ||
          part.seqs.some((seq) => String(seq) === name.text),
      )
    if (!isKnown && name.kind !== 'literal')
      return problem('OTHER_RESOURCE', `no row of this attempt names ${said(name.text)}`)
  }
  if (statesIn(clause.text).length + figuresIn(clause.text).length + clause.moments.length === 0) return null
  const rows = [...new Set(places.map(({ part }) => part))]
  const wrong = findUnsupported(clause, places, true)
  if (wrong?.code !== 'NUMBER_NOT_SHOWN') return wrong
  // A number may be computed, from one row at a time or from what the same text says beside it.
  const isShown = rows.some(
    (part) =>
      findUnsupported(
        clause,
        places.filter((place) => place.part === part),
        true,
      )?.code !== 'NUMBER_NOT_SHOWN',
  )
  return isShown || isSummed(clause, clauses) ? null : wrong
}

/** What a long result is searched for: the names, numbers, times and states of the text. */
function wordsIn(clauses: readonly Clause[]): string[] {
  const all = clauses.flatMap(({ text, raw, groups, moments }) => [
    ...groups.flat().map((name) => name.text.toLowerCase()),
    ...moments.map((moment) => moment.text.toLowerCase()),
    ...figuresIn(text).map(({ at, end }) => raw.slice(at, end).replace(/,/g, '')),
    ...statesIn(text).map(({ word }) => word),
  ])
  return [...new Set(all)].slice(0, 60)
}

/** Said before in the same text: ten of 524,288 bytes and one of 133,995, together 5,376,875. */
function isSummed(clause: Clause, clauses: readonly Clause[]): boolean {
  const all = clauses.filter(({ start }) => start <= clause.start).flatMap(({ text }) => figuresIn(text))
  const wanted = figuresIn(clause.text)
  const values = all.map(({ value }) => value)
  const products = all.flatMap((first, index) => (all[index + 1] ? [first.value * (all[index + 1]?.value ?? 0)] : []))
  return wanted.every(({ value }) =>
    [...products, ...values].some((a) =>
      [...products, ...values].some(
        (b) => a !== value && b !== value && (a + b === value || Math.abs(a - b) === value),
      ),
    ),
  )
}

/** An action that no write of this attempt did, or that a write did and the text says failed. */
function actionProblem(clause: Clause, places: readonly QuotePlace[], { writes }: ClaimEvidence): ClaimProblem | null {
  for (const action of actionsIn(clause.text)) {
    if (action.isDenied) continue
    const toldByOthers =
      !action.isOurs && places.some(({ part, line }) => part.source !== 'write' && isVerbOf(action.verb, line, false))
    const names = clause.groups.flat().filter(({ kind }) => kind === 'name')
    const fitting = writes.filter((write) =>
      isOf(
        write,
        action.verb,
        names.map((name) => name.text),
      ),
    )
    if (fitting.some(({ held, failed }) => held || (failed && saysFailed(clause.text)))) continue
    if (toldByOthers) continue
    return fitting.length > 0
      ? problem('WRITE_NOT_HELD', `${said(clause.raw)}, but its write failed or was not verified`)
      : problem('NOT_WRITTEN', `no write of this attempt is ${said(action.verb)}`)
  }
  return null
}

function isOf(write: CitableWrite, verb: string, names: readonly string[]): boolean {
  const whole = write.parts.map((part) => `${part.head} ${part.document().text}`).join(' ')
  return isVerbOf(verb, whole, true) && (names.length === 0 || names.some((name) => holdsName(whole, name)))
}

/** A piece of a claim that says one thing. Names are masked by `§` and times by `¤`, so that neither is taken for words or numbers. */
export type Clause = {
  text: string
  /** As it was written, in lower case. */
  raw: string
  start: number
  /** Names that stand side by side are one group: a and b are nominal. */
  groups: Name[][]
  /** What it is about where it names nothing itself: it, they, is no longer listed. */
  carried: Name[]
  moments: QuotedMoment[]
  tense: 'present' | 'past' | null
  /** Says what should be, or what somebody else should do: nothing that a row shows. */
  isAdvice: boolean
  isAfterColon: boolean
}

const separators =
  /[.;:!?](?=\s|$)|,(?=\s)|\s(?:and|but|while|because|so|which|then|whereas|since|although|though|after which)\s|\s[–—-]\s|[()]|\n/gi
const joiners = /^(?:\s*,?\s*(?:and|or|&|\/|,)?\s*(?:the |on |host |node |vm |vms |nodes |hosts )?)$/i
const present =
  /\b(?:is|are|isn't|aren't|now|currently|again|still|no longer|any ?more|remains?|stays?|at the moment|runs|holds at|stands at|uses)\b/
const past = /\b(?:was|were|had|did|went|ran|held|used|said|wasn't|weren't|before|earlier|at first|when it fired)\b/
const carrying =
  /^\s*(?:(?:and|but|then|so) )?(?:it|its|they|their|this|that|these|those|(?:both|all|each)(?= (?:is|are|was|were|of them)\b)|is|are|was|were|has|have|had|no longer|now|again|not|still|answers|runs|held|holds|uses|used|in|at|on|since|with|down|up|¤|[\d~≈]|about|around|over|only)\b/
const advice =
  /\b(?:should|must|need(?:s|ed)?(?: from| to| a)?|follow[- ]?up|recommend\w*|suggest\w*|consider|please|would|could|might|may|if|unless|until|whether|ask|find out|look for|treat|raise|decide|will|shall|to be|going to|next|not known|unknown|unclear|perhaps|probably|likely|possibly|somebody|someone|worth)\b/

export function clausesOf(text: string, known: readonly string[]): Clause[] {
  // An arrow is read as a word, but not within words that are quoted.
  const plain = text.replace(/[’‘]/g, "'").replace(/"[^"\n]*"|->|→/g, (found) => (found[0] === '"' ? found : 'to'))
  const moments = momentsIn(plain)
  const names = namesIn(plain, known).filter(
    (name) => !moments.some(({ at, text: moment }) => at < name.end && at + moment.length > name.start),
  )
  const groups = grouped(plain, names)
  const marked = mask(
    mask(
      plain,
      names.map(({ start, end }) => [start, end]),
      '§',
    ),
    moments.map(({ at, text: moment }) => [at, at + moment.length]),
    '¤',
  )
  const masked = marked.replace(references, (found) => ' '.repeat(found.length))
  const clauses: Clause[] = []
  let isAdvice = false
  for (const [start, end, isNewSentence, isAfterColon] of cuts(masked, groups)) {
    const piece = masked.slice(start, end).toLowerCase()
    if (!/[\p{L}\p{N}§¤]/u.test(piece)) continue
    const before = clauses.at(-1)
    const own = groups.filter((group) => (group[0] as Name).start >= start && (group[0] as Name).start < end)
    if (isNewSentence) isAdvice = false
    isAdvice ||= advice.test(piece)
    clauses.push({
      text: piece,
      raw: plain.slice(start, end).toLowerCase(),
      start,
      groups: own,
      carried: own.length === 0 && before && carries(piece, isNewSentence) ? (before.groups[0] ?? before.carried) : [],
      moments: moments.filter(({ at }) => at >= start && at < end),
      tense: tenseOf(piece),
      isAdvice,
      isAfterColon,
    })
  }
  return clauses
}

/** A clause that begins with a pronoun, a verb or the state itself goes on about what was named before. */
function carries(piece: string, isNewSentence: boolean): boolean {
  if (isNewSentence) return /^\s*(?:it|its|they|their|both|this|that)\b/.test(piece)
  const [first] = statesIn(piece)
  return carrying.test(piece) || (first !== undefined && piece.slice(0, first.at).trim() === '')
}

function tenseOf(piece: string): Clause['tense'] {
  if (past.test(piece)) return 'past'
  return present.test(piece) ? 'present' : null
}

function grouped(text: string, names: readonly Name[]): Name[][] {
  const groups: Name[][] = []
  for (const name of names) {
    const last = groups.at(-1)?.at(-1)
    if (last && joiners.test(text.slice(last.end, name.start)) && text.slice(last.end, name.start).trim() !== '')
      groups.at(-1)?.push(name)
    else groups.push([name])
  }
  return groups
}

function mask(text: string, spans: [number, number][], by: string): string {
  let masked = text
  for (const [start, end] of spans) masked = masked.slice(0, start) + by.repeat(end - start) + masked.slice(end)
  return masked
}

/** Where clauses begin and end: not within a group of names. */
function cuts(masked: string, groups: Name[][]): [number, number, boolean, boolean][] {
  const found: [number, number, boolean, boolean][] = []
  let start = 0
  let isNewSentence = true
  let isAfterColon = false
  for (const match of masked.matchAll(separators)) {
    const at = match.index
    if (groups.some((group) => (group[0] as Name).start < at && at < (group.at(-1) as Name).end)) continue
    found.push([start, at, isNewSentence, isAfterColon])
    start = at + match[0].length
    isNewSentence = /[.!?\n]/.test(match[0])
    isAfterColon = match[0] === ':' || (isAfterColon && !isNewSentence)
  }
  found.push([start, masked.length, isNewSentence, isAfterColon])
  return found
}
