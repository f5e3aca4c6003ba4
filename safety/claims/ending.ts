import type { Claim } from '../../domain/claim.ts'
import type { Unshown } from '../../domain/stored-claim.ts'
import type { State } from '../fold.ts'
import { quote, type Rule, refuse } from '../ruling.ts'
import { findUnsupportedClaim } from '../unsupported-claim.ts'
import { checkClaims } from './check.ts'
import type { Problem } from './quote.ts'
import { type Bodies, evidenceOf } from './rows.ts'
import { checkText } from './text.ts'

/** What the evidence of an ending does not show: per claim the problem or null, and sentences of its text. */
export type Findings = { claims: (Problem | null)[]; unshown: Unshown[] }

export type ClaimedText = { text: string; claims: readonly Claim[] }

export function findingsOf({ text, claims }: ClaimedText, state: State, incidentId: string, bodies: Bodies): Findings {
  const evidence = evidenceOf(state, incidentId, bodies)
  const shown = claims.map(({ text: claimed }) => claimed)
  return {
    claims: checkClaims(claims, evidence),
    // A sentence that a claim says too is judged by what the claim quotes.
    unshown: checkText(text, evidence)
      .filter((part) => !shown.some((claimed) => claimed.toLowerCase().includes(part.text)))
      .map((part) => ({ text: part.text, why: `${part.problem.why} (${part.problem.code})` })),
  }
}

export function isAllShown({ claims, unshown }: Findings): boolean {
  return unshown.length === 0 && claims.every((problem) => problem === null)
}

/** The marks of an ending as its ruling keeps them, to be stored. */
export function marksOf({ claims, unshown }: Findings): Record<string, unknown> {
  const marks = claims.map((problem) =>
    problem ? { shown: false, code: problem.code, why: problem.why } : { shown: true },
  )
  return { claims: marks, unshown }
}

/** What is not shown first, with what would be accepted. */
export function toldFindings({ claims, unshown }: Findings, said: ClaimedText): { reason: string; hint: string } {
  const index = claims.findIndex((problem) => problem !== null)
  const found = claims[index]
  const more = claims.filter((problem) => problem !== null).length + unshown.length - 1
  const others = more > 0 ? ` (and ${more} more)` : ''
  if (found) {
    return {
      reason: `claim ${index + 1} ${quote(said.claims[index]?.text ?? '')}: ${found.why}${others}`,
      hint: found.remedy,
    }
  }
  const [first] = unshown
  return {
    reason: `${quote(first?.text ?? '')} is not shown: ${first?.why ?? ''}${others}`,
    hint: 'Say only what results show. What a person should do or find out goes into next_step.',
  }
}

/** A call written as text, or an ending that its evidence does not show: corrected once. */
export function claimsRule(
  said: ClaimedText,
  state: State,
  incidentId: string,
  bodies: Bodies,
  isStrict: boolean,
): { rule: Rule | null; marks: Record<string, unknown> } {
  const findings = findingsOf(said, state, incidentId, bodies)
  const marks = marksOf(findings)
  const isCorrected = state.phantoms > 0 || [...state.corrected].some((code) => code.startsWith('budget_'))
  const phantom = isCorrected ? null : phantomIn(said, state)
  if (phantom) return { rule: phantom, marks }
  if (isAllShown(findings) || (isCorrected && !isStrict)) return { rule: null, marks }
  const { reason, hint } = toldFindings(findings, said)
  const more =
    isCorrected && isStrict
      ? ' An ending without a repair needs claims that are shown: escalate_incident ends without them.'
      : ''
  return { rule: refuse('CLAIM_NOT_SHOWN', reason, `${hint}${more}`, marks), marks }
}

/** A call written as text, or a look that nobody took: found by words alone, and once. */
function phantomIn({ text, claims }: ClaimedText, state: State): Rule | null {
  for (const each of [text, ...claims.map((claim) => claim.text)]) {
    const phantom = findUnsupportedClaim(each, { writes: state.writes.length, reads: state.reads })
    if (!phantom) continue
    return refuse(
      'PHANTOM_CLAIM',
      `${quote(phantom.phrase)} claims what no row of this attempt shows (${phantom.category})`,
      'Say only what results show, then send the call again.',
      { category: phantom.category },
    )
  }
  return null
}
