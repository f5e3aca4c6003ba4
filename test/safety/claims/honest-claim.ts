import type { Claim } from '../../../domain/claim.ts'
import type { SceneName } from './lies-by-rows/rows.ts'

/** A claim that is so, in a model's free words. */
export type HonestClaim = { about: SceneName; claim: Claim }

export const honestOf = (about: SceneName, ...claims: Claim[]): HonestClaim[] =>
  claims.map((claim) => ({ about, claim }))
