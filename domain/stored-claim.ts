import type { Claim } from './claim.ts'
import { truncate } from './format.ts'

/** A claim as a row keeps it. `shown: false` with the reason: its evidence does not show it. Version 0.1.0 stored numbers of rows. */
export type StoredClaim = (Claim & { shown?: boolean; why?: string }) | { text: string; evidence: number[] }

/** A sentence of a resolution or of a reason that no row of the attempt shows. */
export type Unshown = { text: string; why: string }

/** The rows that a stored claim rests on, each once. */
export function rowsOf(stored: StoredClaim): number[] {
  return [...new Set('evidence' in stored ? stored.evidence : stored.quotes.map(({ seq }) => seq))]
}

export function isUnshown(stored: StoredClaim): boolean {
  return 'shown' in stored && stored.shown === false
}

export const notShown = 'not shown by its evidence'
const mostNamed = 5
const namedCharacters = 160

/** What an ending says, with a last line that names what its evidence does not show. Every reader gets it with the text. */
export function withMarks(text: string, claims: readonly StoredClaim[], unshown: readonly Unshown[]): string {
  const texts = [...unshown.map((each) => each.text), ...claims.filter(isUnshown).map((each) => each.text)]
  if (texts.length === 0) return text
  const named = [...new Set(texts)].slice(0, mostNamed).map((each) => `"${truncate(each, namedCharacters)}"`)
  const more = texts.length > mostNamed ? `, and ${texts.length - mostNamed} more` : ''
  return `${text}\n\n[${notShown}: ${named.join(', ')}${more}]`
}
