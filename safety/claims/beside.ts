import type { Claim } from '../../domain/claim.ts'
import type { ClaimBeside } from '../../domain/hypothesis.ts'
import { namesIn } from './actions.ts'
import { placesOfAll } from './check.ts'
import { newestLook } from './grade.ts'
import type { QuotePlace } from './quote.ts'
import type { ClaimEvidence } from './rows.ts'

const maxLines = 4
const lineCharacters = 160

/** Lines that code reads where a claim uses other words: the quoted values, and the newest health of what it names. */
export function besideOf({ text, quotes }: Claim, evidence: ClaimEvidence): ClaimBeside[] {
  const found = placesOfAll(quotes, evidence)
  const places = Array.isArray(found) ? found : []
  const looks = namesIn(text, evidence.known).flatMap(({ text: name }) =>
    newestLook(name, evidence).map((place) => ({ ...place, name })),
  )
  const lines = [
    ...places.slice(0, maxLines).map((place) => ({ seq: place.part.seq, text: lineOf(place) })),
    ...looks.slice(0, maxLines).map((place) => ({ seq: place.part.seq, text: `${place.name} ${lineOf(place)}` })),
  ]
  return lines.filter(
    (each, at) => lines.findIndex(({ seq, text: line }) => seq === each.seq && line === each.text) === at,
  )
}

function lineOf({ leaf, line }: QuotePlace): string {
  const key = leaf.path.findLast((step) => !/^\d+$/.test(step))
  return `${key ? `${key}: ` : ''}${line}`.slice(0, lineCharacters)
}
