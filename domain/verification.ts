import { z } from 'zod'

/**
 * What became of a write's promise. `held` and `not_held`: somebody looked. `open`: it could not be read just now. `unproven`: it ran, and
 * nothing was promised that anybody could look at.
 */
export const verificationOutcomes = ['held', 'not_held', 'open', 'unproven'] as const
export type VerificationOutcome = (typeof verificationOutcomes)[number]

const words: Record<VerificationOutcome, string> = {
  held: 'Held',
  not_held: 'NOT held',
  open: 'Could not be read',
  unproven: 'Unproven',
}

/** The outcome for people; a word that another version wrote stands as it is. */
export function tellOutcome(outcome: string): string {
  return words[outcome as VerificationOutcome] ?? outcome.replaceAll('_', ' ')
}

/** What shows afterwards that a write worked: code looks at the state, or nothing does and a person has to look. */
export const proof = z.object({
  by: z.enum(['state', 'nothing']),
  /** `state`: what must be true. `nothing`: where a person looks. */
  text: z.string(),
})
export type Proof = z.infer<typeof proof>

/** For the card of an approval, before anybody decides. Absent: the approval was stored by a version that did not say. */
export function tellProofOfWrite(proof: Proof | undefined): string {
  if (!proof)
    return 'What will prove that this worked was not stored with this approval: look at its target afterwards.'
  if (proof.by === 'state') return `Code will prove whether this worked: ${proof.text}.`
  return `Nothing will prove that this worked: ${proof.text}.`
}
