import type { Claim } from '../../../domain/claim.ts'
import { checkClaims } from '../../../safety/claims/check.ts'
import type { ProblemCode } from '../../../safety/claims/problems.ts'
import { type Evidence, evidenceOf } from '../../../safety/claims/rows.ts'
import { fold } from '../../../safety/fold.ts'
import { quotesOfPlayed } from './from-played.ts'
import { type Honest, namesOf } from './lies.ts'
import { playedEndings } from './played-rows.ts'
import { honestSite, siteIncident, siteRows } from './site.ts'

/** The evidence of the ordinary site and of every played ending, by name. */
export const evidence: ReadonlyMap<string, Evidence> = new Map([
  ['site', evidenceOf(fold(siteRows(), 1), siteIncident, new Map())],
  ...playedEndings().map(
    (ending) => [ending.name, evidenceOf(fold(ending.rows, 1), ending.incidentId, ending.bodies)] as [string, Evidence],
  ),
])

/** Honest claims with the names that stand in their rows. */
export const honest: Honest[] = [
  { claims: honestSite, about: 'site', names: namesOf(evidence.get('site') as Evidence) },
  ...playedEndings().map((ending) => ({
    claims: quotesOfPlayed(ending),
    about: ending.name,
    names: namesOf(evidence.get(ending.name) as Evidence),
  })),
]

/** Why a claim is not shown by the rows of an attempt; null where it is. */
export function foundIn(about: string, claim: Claim): ProblemCode | null {
  return checkClaims([claim], evidence.get(about) as Evidence)[0]?.code ?? null
}
