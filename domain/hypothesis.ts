import type { Claim, ClaimQuote } from './claim.ts'
import type { IncidentEvent } from './event.ts'
import { truncate } from './format.ts'

/** The grade of a claim. A: rows show it word for word. B: no row contradicts it. C: unproven. */
export const claimGrades = ['A', 'B', 'C'] as const
export type ClaimGrade = (typeof claimGrades)[number]

export const gradeWords: Record<ClaimGrade, string> = {
  A: 'by rows',
  B: "in the agent's words",
  C: 'not shown by its evidence',
}

/** A line of a log row that code shows beside a claim. Untrusted. */
export type ClaimBeside = { seq: number; text: string }

/**
 * A stored claim. `shown: false`: the evidence does not show the claim, for the reason in `why`.
 * Version 0.2.0 stored no grade. Version 0.1.0 stored a claim without quotes: its text and numbers
 * of rows.
 */
export type StoredClaim =
  | (Claim & { shown?: boolean; grade?: ClaimGrade; why?: string; beside?: ClaimBeside[] })
  | { text: string; evidence: number[] }

/** A sentence of an ending's text that no row of the attempt shows. */
export type UnshownSentence = { text: string; why: string }

/** Lists the numbers of the rows that a stored claim cites, each once. */
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
 * Adds a last line to the text of an ending, which names the claims that no row shows. All readers
 * of the text see the line.
 */
export function withMarks(text: string, claims: readonly StoredClaim[], unshown: readonly UnshownSentence[]): string {
  const texts = [...unshown.map((each) => each.text), ...claims.filter(isUnshown).map((each) => each.text)]
  if (texts.length === 0) return text
  const named = [...new Set(texts)].slice(0, maxNamed).map((each) => `"${truncate(each, namedCharacters)}"`)
  const more = texts.length > maxNamed ? `, and ${texts.length - maxNamed} more` : ''
  return `${text}\n\n[${notShown}: ${named.join(', ')}${more}]`
}

/** States of a hypothesis. Page, card, report and model all use the function `foldHypotheses`. */
export const hypothesisStates = ['proposed', 'supported', 'refuted'] as const
export type HypothesisState = (typeof hypothesisStates)[number]

/** How certain the cause is when an attempt ends. */
export const certainties = ['confirmed', 'likely', 'inconclusive'] as const
export type Certainty = (typeof certainties)[number]

/**
 * A hypothesis as it is stored in a row. Code assigns the `id`: `h1` for the first hypothesis of an
 * attempt. `text` is the text of the hypothesis in its first row.
 */
export type StoredHypothesis = { id: string; text: string; state: HypothesisState; quotes: ClaimQuote[] }

export type Hypothesis = {
  id: string
  text: string
  state: HypothesisState
  /** The number of the row that proposed the hypothesis, and of the row with its current state. */
  firstSeq?: number | undefined
  seq: number
  by: string
  supports: ClaimQuote[]
  refutes: ClaimQuote[]
}

/**
 * Computes the hypotheses of an attempt, in the order in which they were proposed. The newest row
 * about a hypothesis gives its state. Has no side effect and never throws.
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

/**
 * Finds the hypothesis that a call is about: by its id, or by an equal text if the call has no id.
 * Null if the hypothesis is new.
 */
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
 * How well a hypothesis is supported. `survived`: a quote is from a read that was made after the
 * hypothesis was proposed. The read could have refuted the hypothesis.
 */
type Standing = 'proposed' | 'quoted' | 'survived' | 'refuted'

export function standingOf({ state, supports, firstSeq = Number.POSITIVE_INFINITY }: Hypothesis): Standing {
  if (state !== 'supported') return state
  return supports.some(({ seq }) => seq > firstSeq) ? 'survived' : 'quoted'
}

/**
 * Words for each level of support. No word claims a proof: at best, a read did not refute the
 * cause.
 */
export const standingWords: Record<Standing, string> = {
  proposed: 'proposed',
  quoted: 'quoted',
  survived: 'survived a check that could refute it',
  refuted: 'refuted',
}

/**
 * Formats a hypothesis as one line for people and models: `h2 quoted: port 8080 is taken (#12,
 * #14)`.
 */
export function formatHypothesis(hypothesis: Hypothesis): string {
  const { id, text, state, supports, refutes } = hypothesis
  const rows = [...new Set((state === 'refuted' ? refutes : supports).map(({ seq }) => `#${seq}`))]
  return `${id} ${standingWords[standingOf(hypothesis)]}: ${text}${rows.length > 0 ? ` (${rows.join(', ')})` : ''}`
}

const maxCauseCharacters = 300

/**
 * Formats the cause for messages: `Likely cause: port 8080 is taken (quoted, rows 12, 14)`. Uses
 * the newest supported hypothesis, otherwise the newest proposed one. Null if no hypothesis is
 * supported or proposed. Contains untrusted text.
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
 * Limits the certainty of an ending. `confirmed` requires a supported hypothesis or a write that
 * was verified. `likely` requires a hypothesis that is not refuted. If the stated certainty is
 * lowered, `claimed` keeps it.
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

/** Formats the line below an ending whose certainty was lowered. */
export function formatLowered(certainty: Certainty, claimed: Certainty): string {
  return `[certainty: ${certainty}; the agent claimed ${claimed}, and the rows do not support that]`
}
