import { type ClaimedText, describeFindings, findingsOf, findUnsupportedClaim, refusedBy } from './claims/ending.ts'
import { evidenceRule } from './ending.ts'
import type { SafetyState } from './fold.ts'

/**
 * The end of an answer in words: it repairs nothing, so it is corrected once, and then a person
 * gets the incident.
 */

const proseCodes = ['prose_without_proof', 'phantom_claim', 'evidence_missing', 'claim_not_shown']

/** Was a model of this attempt told already that words close nothing? */
export function hasWarnedOfProse({ corrected }: SafetyState): boolean {
  return proseCodes.some((code) => corrected.has(code))
}

/**
 * The fault of an answer in words: it claims what no row shows, or quotes what does not stand
 * there. It answers a question and repairs nothing, so what stays unshown after the correction
 * closes nothing.
 */
export function answerCorrection(
  said: ClaimedText,
  state: SafetyState,
  incidentId: string,
  bodies: ReadonlyMap<string, string>,
): { code: string; text: string } | null {
  const phantom = findUnsupportedClaim(said.text, { writes: state.writes.length, reads: state.reads })
  if (phantom?.category === 'fake_call') {
    return {
      code: 'call_as_text',
      text: `Your text holds a tool call (${phantom.phrase}), and a call in a text runs nothing. Call the tool by the API's own tool calls; where you only speak of a call, end with resolve_incident or escalate_incident.`,
    }
  }
  if (phantom) {
    return {
      code: 'phantom_claim',
      text: `No row shows what you claim (${phantom.category}). Nothing was run by your text. Call tools, and quote their results.`,
    }
  }
  const missing = evidenceRule(said.claims, state)
  if (missing) return { code: 'evidence_missing', text: `${missing.reason}. ${missing.hint ?? ''}` }
  const findings = findingsOf(said, state, incidentId, bodies)
  if (!refusedBy(findings, true)) return null
  const { reason, hint } = describeFindings(findings, said, true)
  return { code: 'claim_not_shown', text: `${reason}. ${hint}` }
}

/** The way on from words that close nothing. */
export function proseCorrection(state: SafetyState): { code: string; text: string } {
  return {
    code: 'prose_without_proof',
    text: state.open
      ? 'A write is not verified yet. Read its target, then call resolve_incident with claims that quote it, or escalate_incident.'
      : 'Prose resolves nothing. Call resolve_incident with claims that quote results by meta.seq, or escalate_incident.',
  }
}
