import type { Claim } from '../../domain/claim.ts'
import type { ClaimBeside } from '../../domain/hypothesis.ts'
import { namesIn } from './actions.ts'
import { placesOfAll } from './check.ts'
import { newestLook } from './grade.ts'
import { lineWithKey } from './quote.ts'
import type { ClaimEvidence } from './rows.ts'

const maxLines = 4
const lineCharacters = 160

/**
 * Lists lines that code shows beside the words of a claim: the quoted values, and the newest health
 * of the resources that the claim names.
 */
export function besideOf({ text, quotes }: Claim, evidence: ClaimEvidence): ClaimBeside[] {
  const found = placesOfAll(quotes, evidence)
  const places = Array.isArray(found) ? found : []
  const looks = namesIn(text, evidence.known).flatMap(({ text: name }) =>
    newestLook(name, evidence).map((place) => ({ ...place, name })),
  )
  const lines = [
    ...places
      .slice(0, maxLines)
      .map((place) => ({ seq: place.part.seq, text: lineWithKey(place).slice(0, lineCharacters) })),
    ...looks
      .slice(0, maxLines)
      .map((place) => ({ seq: place.part.seq, text: `${place.name} ${lineWithKey(place)}`.slice(0, lineCharacters) })),
  ]
  return lines.filter(
    (each, at) => lines.findIndex(({ seq, text: line }) => seq === each.seq && line === each.text) === at,
  )
}
