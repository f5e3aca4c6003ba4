import { type ClaimedText, describeFindings, findingsOf, findUnsupportedClaim, refusedBy } from './claims/ending.ts'
import { evidenceRule } from './ending.ts'
import type { SafetyState } from './fold.ts'

/**
 * Codes of corrections of an answer in prose. An answer in prose repairs nothing, so it is
 * corrected once; if the next one has a fault too, a person gets the incident.
 */

const proseCodes = ['prose_without_proof', 'phantom_claim', 'evidence_missing', 'claim_not_shown']

/** Whether a model of this attempt was already told that prose ends nothing. */
export function hasWarnedOfProse({ corrected }: SafetyState): boolean {
  return proseCodes.some((code) => corrected.has(code))
}

/**
 * Returns the fault of an answer in prose: the answer claims what no row shows, or quotes a text
 * that is in no row. Prose answers a question and repairs nothing, so an answer that is still not
 * shown after the correction ends nothing.
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
      text: `Your text holds a tool call (${phantom.phrase}). A call in a text runs nothing. Use the API's own tool calls. If you only speak of a call, end with resolve_incident or escalate_incident.`,
    }
  }
  if (phantom) {
    return {
      code: 'phantom_claim',
      text: `No row shows what you claim (${phantom.category}). Your text ran nothing. Call tools, and quote their results.`,
    }
  }
  const missing = evidenceRule(said.claims, state)
  if (missing) return { code: 'evidence_missing', text: `${missing.reason}. ${missing.hint ?? ''}` }
  const findings = findingsOf(said, state, incidentId, bodies)
  if (!refusedBy(findings, true)) return null
  const { reason, hint } = describeFindings(findings, said, true)
  return { code: 'claim_not_shown', text: `${reason}. ${hint}` }
}

/** Explains what the model must do instead of an answer in prose. */
export function proseCorrection(state: SafetyState): { code: string; text: string } {
  return {
    code: 'prose_without_proof',
    text: state.open
      ? 'A write is not verified yet. Read its target, then call resolve_incident with claims that quote it, or escalate_incident.'
      : 'Prose resolves nothing. Call resolve_incident with claims that quote results by meta.seq, or escalate_incident.',
  }
}
