import type { Claim, ClaimQuote } from './claim.ts'
import type { IncidentEvent } from './event.ts'
import { truncate } from './format.ts'

/** A claim's grade. A: by rows, word for word. B: the agent's words, unopposed. C: not shown. */
export const claimGrades = ['A', 'B', 'C'] as const
export type ClaimGrade = (typeof claimGrades)[number]

export const gradeWords: Record<ClaimGrade, string> = {
  A: 'by rows',
  B: "in the agent's words",
  C: 'not shown by its evidence',
}

/** A line of a row that code puts beside a claim. Untrusted. */
export type ClaimBeside = { seq: number; text: string }

/**
 * A claim in a row. `shown: false` with the reason: its evidence does not show it. Version 0.2.0
 * stored no grade, 0.1.0 numbers of rows.
 */
export type StoredClaim =
  | (Claim & { shown?: boolean; grade?: ClaimGrade; why?: string; beside?: ClaimBeside[] })
  | { text: string; evidence: number[] }

/** A sentence of a resolution or of a reason that no row of the attempt shows. */
export type UnshownSentence = { text: string; why: string }

/** The rows that a stored claim rests on, each once. */
export function rowsOf(stored: StoredClaim): number[] {
  return [...new Set('evidence' in stored ? stored.evidence : stored.quotes.map(({ seq }) => seq))]
}

export function isUnshown(stored: StoredClaim): boolean {
  return 'shown' in stored && stored.shown === false
}

export const notShown = gradeWords.C
const maxNamed = 5
const namedCharacters = 160

/**
 * An ending's text with a last line that names what its evidence does not show. Every reader gets
 * it so.
 */
export function withMarks(text: string, claims: readonly StoredClaim[], unshown: readonly UnshownSentence[]): string {
  const texts = [...unshown.map((each) => each.text), ...claims.filter(isUnshown).map((each) => each.text)]
  if (texts.length === 0) return text
  const named = [...new Set(texts)].slice(0, maxNamed).map((each) => `"${truncate(each, namedCharacters)}"`)
  const more = texts.length > maxNamed ? `, and ${texts.length - maxNamed} more` : ''
  return `${text}\n\n[${notShown}: ${named.join(', ')}${more}]`
}

/** A possible cause and its state. Page, card, report and model read the same fold of it. */
export const hypothesisStates = ['proposed', 'supported', 'refuted'] as const
export type HypothesisState = (typeof hypothesisStates)[number]

/** How sure an ending is of what it says about the cause. */
export const certainties = ['confirmed', 'likely', 'inconclusive'] as const
export type Certainty = (typeof certainties)[number]

/**
 * A hypothesis in a row. Code gives the `id`, `h1` for the first of an attempt; `text` is its first
 * row's.
 */
export type StoredHypothesis = { id: string; text: string; state: HypothesisState; quotes: ClaimQuote[] }

export type Hypothesis = {
  id: string
  text: string
  state: HypothesisState
  /** Number of the row that proposed it, and of the one that says how it stands now. */
  firstSeq?: number | undefined
  seq: number
  by: string
  supports: ClaimQuote[]
  refutes: ClaimQuote[]
}

/**
 * Hypotheses of an attempt, in the order proposed; the newest row of each says how it stands. Pure
 * and total.
 */
export function foldHypotheses(
  events: readonly IncidentEvent[],
  attempt: number = events.at(-1)?.attempt ?? 0,
): Hypothesis[] {
  const found = new Map<string, Hypothesis>()
  for (const event of events) {
    if (event.kind === 'commented' && event.attempt === attempt) addHypothesis(found, event)
  }
  return [...found.values()]
}

export function addHypothesis(found: Map<string, Hypothesis>, event: IncidentEvent<'commented'>): void {
  const said = event.metadata.hypothesis
  if (!said) return
  const known = found.get(said.id)
  const { supports = [], refutes = [], text = said.text, firstSeq = event.seq } = known ?? {}
  const isAgainst = said.state === 'refuted'
  found.set(said.id, {
    id: said.id,
    text,
    state: said.state,
    firstSeq,
    seq: event.seq,
    by: event.actor.startsWith('agent:') ? 'agent' : event.actor.replace(/^user:/, ''),
    supports: isAgainst ? supports : [...supports, ...said.quotes],
    refutes: isAgainst ? [...refutes, ...said.quotes] : refutes,
  })
}

/** The one that a call means: by its id, else by the same words. Null: it is a new one. */
export function findHypothesis(
  known: readonly Hypothesis[],
  { id, text }: { id: string | undefined; text: string },
): Hypothesis | null {
  const plain = (words: string) => words.toLowerCase().replace(/\s+/g, ' ').trim()
  const found =
    id === undefined ? known.find((each) => plain(each.text) === plain(text)) : known.find((each) => each.id === id)
  return found ?? null
}

/**
 * A hypothesis's state, by its rows. `survived`: its quotes were read after it was proposed and
 * could have refuted it.
 */
type Standing = 'proposed' | 'quoted' | 'survived' | 'refuted'

export function standingOf({ state, supports, firstSeq = Number.POSITIVE_INFINITY }: Hypothesis): Standing {
  if (state !== 'supported') return state
  return supports.some(({ seq }) => seq > firstSeq) ? 'survived' : 'quoted'
}

/** Nothing here proves a cause: a row is quoted, or a check that could refute it did not. */
export const standingWords: Record<Standing, string> = {
  proposed: 'proposed',
  quoted: 'quoted',
  survived: 'survived a check that could refute it',
  refuted: 'refuted',
}

/** One line for people and models: `h2 quoted: port 8080 is taken (#12, #14)`. */
export function formatHypothesis(hypothesis: Hypothesis): string {
  const { id, text, state, supports, refutes } = hypothesis
  const rows = [...new Set((state === 'refuted' ? refutes : supports).map(({ seq }) => `#${seq}`))]
  return `${id} ${standingWords[standingOf(hypothesis)]}: ${text}${rows.length > 0 ? ` (${rows.join(', ')})` : ''}`
}

const maxCauseCharacters = 300

/**
 * The cause in a line, for messages: `Likely cause: port 8080 is taken (quoted, rows 12, 14)`. The
 * newest that rows support, else the newest proposed. Null: none, or all are refuted. Untrusted.
 */
export function formatCause(known: readonly Hypothesis[]): string | null {
  const newest = (state: HypothesisState) =>
    known.filter((each) => each.state === state).toSorted((a, b) => b.seq - a.seq)[0]
  const cause = newest('supported') ?? newest('proposed')
  if (!cause) return null
  const words = cause.text.replace(/\s+/g, ' ').trim()
  const cut = words.length > maxCauseCharacters ? `${words.slice(0, maxCauseCharacters - 1).toWellFormed()}…` : words
  const numbers = [...new Set(cause.supports.map(({ seq }) => seq))]
  const rows = numbers.length === 0 ? '' : `, ${numbers.length === 1 ? 'row' : 'rows'} ${numbers.join(', ')}`
  return `${cause.state === 'supported' ? 'Likely' : 'Possible'} cause: ${cut} (${standingWords[standingOf(cause)]}${rows})`
}

/**
 * Limits an ending's certainty. `confirmed` needs a supported hypothesis or a write whose
 * verification held; `likely` needs one that is not refuted. More is lowered, and `claimed` keeps
 * what was said.
 */
export function boundCertainty(
  said: Certainty | undefined,
  known: readonly Hypothesis[],
  hasHeld: boolean,
): { certainty: Certainty; claimed?: Certainty } {
  const isShown =
    hasHeld || known.some(({ state, by, supports }) => state === 'supported' && (by !== 'agent' || supports.length > 0))
  const isOpen = known.some(({ state }) => state !== 'refuted')
  const max: Certainty = isShown ? 'confirmed' : isOpen ? 'likely' : 'inconclusive'
  const wanted = said ?? 'likely'
  const rank = (each: Certainty) => certainties.indexOf(each)
  const certainty = rank(wanted) < rank(max) ? max : wanted
  return { certainty, ...(said !== undefined && said !== certainty && { claimed: said }) }
}

/** The line under an ending whose certainty code lowered. */
export function formatLowered(certainty: Certainty, claimed: Certainty): string {
  return `[certainty: ${certainty}; ${claimed} was claimed, and no row shows that much]`
}
