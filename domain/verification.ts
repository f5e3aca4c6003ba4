import { z } from 'zod'

/**
 * What became of a write's promise. `held` and `not_held`: somebody looked. `open`: it could not be read just now. `unproven`: it ran, and
 * nothing was promised that anybody could look at.
 */
export const verificationOutcomes = ['held', 'not_held', 'open', 'unproven'] as const
export type VerificationOutcome = (typeof verificationOutcomes)[number]

/** What shows afterwards that a write worked: code looks at the state, or nothing does and a person has to look. */
export const proof = z.object({
  by: z.enum(['state', 'nothing']),
  /** `state`: what must be true. `nothing`: where a person looks. */
  text: z.string(),
})
export type Proof = z.infer<typeof proof>
