import type { Claim } from '../../domain/claim.ts'
import type { ClaimGrade } from '../../domain/hypothesis.ts'
import { findLooseAbsence } from './absent-words.ts'
import { actionsIn, holdsName } from './actions.ts'
import { checkClaim, isOwnWord, placesOfAll } from './check.ts'
import { matchesFigure } from './measure.ts'
import { type Figure, figuresIn, holdsMoment, valuesAt } from './numbers.ts'
import {
  allPlaces,
  type ClaimProblem,
  foldText,
  lineWithKey,
  type ProblemCode,
  placesOf,
  problem,
  type QuotePlace,
  said,
} from './quote.ts'
import type { ClaimEvidence, Part } from './rows.ts'
import { showsAt, statesIn } from './states.ts'
import { isAskedFor } from './support.ts'
import { type Clause, clausesOf } from './text.ts'
import { findLoose } from './words.ts'

/** A quote whose row number code corrected, because the quote is in exactly one other row. */
type MovedQuote = { text: string; from: number; to: number }

/**
 * A claim's grade. A: each word, figure and time is in its quotes. B: the words are the agent's;
 * the quotes exist and nothing contradicts them. C: not shown. `isRefused`: the claim is of a write
 * without a row, or has a quote that is in no row; no ending may contain such a claim.
 */
export type GradedClaim = {
  grade: ClaimGrade
  isRefused: boolean
  /** The reason why the claim did not get the next better grade; null for grade A. */
  why: string | null
  problem: ClaimProblem | null
  claim: Claim
  moved: MovedQuote[]
}

/**
 * The effect of a problem on a claim's grade. `wrong`: rows contradict the claim. `elsewhere`: C,
 * unless another row of the attempt contains the words.
 */
const outcomes: Record<ProblemCode, 'refused' | 'wrong' | 'words' | 'elsewhere'> = {
  QUOTE_NOT_FOUND: 'refused',
  NOT_WRITTEN: 'refused',
  NOT_TOLD: 'wrong',
  OTHER_VERB: 'wrong',
  OWN_WORDS: 'wrong',
  NO_READ: 'words',
  READ_BEFORE_WRITE: 'wrong',
  WRITE_NOT_HELD: 'wrong',
  WRITE_HELD: 'wrong',
  OTHER_RESOURCE: 'elsewhere',
  OTHER_DIRECTION: 'wrong',
  STATE_NOT_SHOWN: 'words',
  CONTRADICTED: 'wrong',
  NOT_ALL: 'words',
  NUMBER_NOT_SHOWN: 'elsewhere',
  TIME_NOT_SHOWN: 'elsewhere',
  STILL_THERE: 'wrong',
  CUT: 'wrong',
  NOT_ASKED: 'wrong',
  NOT_ABSENT: 'words',
}

/** Grades each claim by the rows of its attempt. Pure and total. */
export function gradeClaims(claims: readonly Claim[], evidence: ClaimEvidence): GradedClaim[] {
  return claims.map((claim) => gradeClaim(claim, evidence))
}

function gradeClaim(sent: Claim, evidence: ClaimEvidence): GradedClaim {
  const { claim, moved } = inRightRows({ ...sent, text: plainText(sent.text) }, evidence)
  const clauses = clausesOf(claim.text, evidence.known)
  const found = placesOfAll(claim.quotes, evidence)
  const places = Array.isArray(found) ? found : []
  const own = (grade: ClaimGrade, why: string | null, by: ClaimProblem | null): GradedClaim => ({
    grade,
    isRefused: by !== null && isRefusing(by),
    why,
    problem: by,
    claim: { ...claim, text: sent.text },
    moved,
  })
  const wrong = checkClaim(claim, evidence)
  const against = wrong && isRefusing(wrong) ? null : contradiction(claim, clauses, places, evidence)
  if (against) return own('C', against.why, against)
  // Gives grade B to a claim about the past that uses the present tense and cites reads from before
  // a write.
  const isOlder = wrong?.code === 'READ_BEFORE_WRITE' && (claim.kind === 'was' || claim.kind === 'did')
  if (wrong) return own(isOlder || isOnlyWords(wrong, clauses, evidence) ? 'B' : 'C', wrong.why, wrong)
  const loose =
    claim.kind !== 'absent'
      ? findLoose({ claim, clauses, places, evidence })
      : isAskedFor(claim, evidence)
        ? findLooseAbsence({ claim, clauses, evidence })
        : 'no cited row searched for exactly that text'
  return own(loose === null ? 'A' : 'B', loose, null)
}

/** Normalizes compatible letters (NFKC) and removes invisible marks. */
export function plainText(text: string): string {
  return text.normalize('NFKC').replace(/\p{Cf}/gu, '')
}

/** Corrects the row number of each quote that is in exactly one other row. */
export function inRightRows(claim: Claim, evidence: ClaimEvidence): { claim: Claim; moved: MovedQuote[] } {
  const moved: MovedQuote[] = []
  const quotes = claim.quotes.map((each) => {
    if (each.text.trim() === '' || claim.kind === 'absent' || standsIn(each.seq, each.text, evidence.parts)) return each
    const rows = evidence.parts.filter(({ seq }) => standsIn(seq, each.text, evidence.parts))
    const [first] = rows
    if (!first || rows.some(({ seq }) => seq !== first.seq)) return each
    moved.push({ text: each.text, from: each.seq, to: first.seq })
    return { ...each, seq: first.seq }
  })
  return { claim: { ...claim, quotes }, moved }
}

function standsIn(seq: number, text: string, parts: readonly Part[]): boolean {
  return placesOf({ seq, text }, parts).some((place) => !isOwnWord(place))
}

/**
 * Whether the problem is one that no ending may have: a write that is claimed without its row, or a
 * quote from no row.
 */
export function isRefusing({ code }: ClaimProblem): boolean {
  return outcomes[code] === 'refused'
}

/**
 * Whether only the wording is wrong: the names are in some row, and no row contradicts the claim.
 */
export function isOnlyWords(
  { code }: ClaimProblem,
  clauses: readonly Clause[],
  { parts, incidentId }: ClaimEvidence,
): boolean {
  const outcome = outcomes[code]
  if (outcome !== 'elsewhere') return outcome === 'words'
  const rows = parts.filter(({ source }) => source !== 'record')
  const texts = rows.map((part) => `${part.head} ${part.document().text}`)
  return clauses.every(
    (clause) =>
      clause.groups
        .flat()
        .every(({ text }) => holdsName(incidentId, text) || texts.some((row) => holdsName(row, text))) &&
      figuresIn(clause.text).every(
        (figure) =>
          figure.isWord ||
          (figure.unit === null && Math.abs(figure.value) < 10) ||
          rows.some((row) => holdsFigure(row, figure)),
      ) &&
      clause.moments.every((moment) => texts.some((row) => holdsMoment(moment, row))),
  )
}

/** Whether the row has this figure, as a number with a fitting unit or as digits in a text. */
function holdsFigure(part: Part, figure: Figure): boolean {
  const values = allPlaces(part, []).flatMap(valuesAt)
  if (values.some((value) => matchesFigure(figure, { ...value, from: value }))) return true
  const { value: said, unit } = figure
  const same = values.filter(
    ({ value }) => value === said || (unit?.dimension === 'percent' && Math.abs(value * 100 - said) < 1e-9),
  )
  if (same.length > 0) return same.some((value) => !value.unit || !unit || value.unit.dimension === unit.dimension)
  const digits = new RegExp(`(?<![\\d.])${String(said).replace('.', '\\.')}(?!\\.?\\d)`)
  return digits.test(`${part.head} ${part.document().text}`.replace(/(?<=\d),(?=\d{3})/g, ''))
}

/**
 * Finds a row that contradicts the claim's state: a quoted row, or the newest read of the claim's
 * subject.
 */
function contradiction(
  claim: Claim,
  clauses: readonly Clause[],
  places: readonly QuotePlace[],
  evidence: ClaimEvidence,
): ClaimProblem | null {
  if (claim.kind === 'absent') return null
  for (const clause of clauses) {
    const isNow = claim.kind === 'did' ? clause.tense === 'present' : claim.kind === 'is' && clause.tense !== 'past'
    const found = oppositeOf(clause, places, isNow, evidence)
    if (found) return found
  }
  return null
}

/**
 * Finds a row that contradicts a present sentence without quotes. A bad state may be from before
 * the repair.
 */
export function contradictionIn(clause: Clause, evidence: ClaimEvidence): ClaimProblem | null {
  const found = clause.tense === 'present' ? oppositeOf(clause, [], true, evidence) : null
  const states = statesIn(clause.text).filter(({ word, isDenied }) => isDenied || !wellWords.has(word))
  if (!found || states.length < statesIn(clause.text).length) return found
  const names = clause.groups.flat()
  const wasSo = evidence.parts.some((part) =>
    allPlaces(part, []).some(
      (place) =>
        names.some(({ text }) => holdsName(place.about, text)) && states.every((state) => showsAt(place, state)),
    ),
  )
  return wasSo ? null : found
}

const wellWords = new Set(
  'nominal healthy up alive live running runs online reachable active responding operational recovered ready'.split(
    ' ',
  ),
)

function oppositeOf(
  clause: Clause,
  places: readonly QuotePlace[],
  isNow: boolean,
  evidence: ClaimEvidence,
): ClaimProblem | null {
  if (clause.isAdvice || actionsIn(clause.text).length > 0) return null
  const isOther = /\b(?:other|others|another|neighbour|peer|rest)\b/.test(clause.text)
  if (clause.groups.length === 0 && isOther) return null
  const names = (clause.groups.length > 0 ? clause.groups.flat() : clause.carried).filter(({ kind }) => kind === 'name')
  const isAbout = ({ about }: QuotePlace) => names.length === 0 || names.some(({ text }) => holdsName(about, text))
  const newest = isNow ? names.flatMap(({ text }) => newestLook(text, evidence)) : []
  const seen = [...places.filter(isAbout), ...newest]
  for (const state of statesIn(clause.text)) {
    const opposite = seen.find((place) => showsAt(place, { ...state, isDenied: !state.isDenied }))
    if (opposite && !seen.some((place) => showsAt(place, state)))
      return problem('CONTRADICTED', `row ${opposite.part.seq} says ${said(lineWithKey(opposite))}`)
  }
  return null
}

const healthKeys = /^(?:status|state|health|running|reachable|alive|active)$/

/**
 * Finds the last state of a named resource: the lines of its element, in the newest row that has
 * the element.
 */
export function newestLook(name: string, { parts }: ClaimEvidence): QuotePlace[] {
  const wanted = foldText(name)
  for (const part of parts.toReversed()) {
    if (part.source !== 'read') continue
    const { leaves, text } = part.document()
    const own = leaves.find((leaf) => leaf.path.at(-1) === 'id' && foldText(String(leaf.value)) === wanted)
    if (!own) continue
    const health = leaves.filter((leaf) => leaf.item === own.item && healthKeys.test(leaf.path.at(-1) ?? ''))
    if (health.length === 0) continue
    return health.flatMap((leaf) =>
      leaf.lines.map(({ start, end }) => ({
        part,
        leaf,
        item: leaf.item,
        line: text.slice(start, end),
        from: 0,
        to: end - start,
        about: wanted,
      })),
    )
  }
  return []
}
