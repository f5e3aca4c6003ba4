import { z } from 'zod'
import type { StoredClaim, Unshown } from './stored-claim.ts'

/**
 * What a claim is about: something this investigation did, how something is now, how something was when it was read, or that
 * a text is not there.
 */
export const claimKind = z.enum(['did', 'is', 'was', 'absent'])
export type ClaimKind = z.infer<typeof claimKind>

export const mostClaims = 20
export const mostQuotes = 20
const textCharacters = 500
const quoteCharacters = 1000

const claimQuote = z.strictObject({
  seq: z.number().int().positive().describe('meta.seq'),
  text: z
    .string()
    .max(quoteCharacters, `a quote is at most ${quoteCharacters} characters: quote only the words that show it`),
})

/** One claim as a model sends it. */
export const claim = z.strictObject({
  kind: claimKind,
  text: z
    .string()
    .min(1)
    .max(textCharacters, `the text of a claim is at most ${textCharacters} characters: one fact for each claim`),
  quotes: z
    .array(claimQuote, 'send quotes: [{ seq, text }], words copied from the results that show the claim')
    .min(1, 'a claim quotes at least one result: quotes: [{ seq, text }]')
    .max(mostQuotes),
})
export type Claim = z.infer<typeof claim>
export type ClaimQuote = Claim['quotes'][number]

const marks = z.object({
  claims: z.array(z.object({ shown: z.boolean(), why: z.string().optional() })).default([]),
  unshown: z.array(z.object({ text: z.string(), why: z.string() })).default([]),
})

/** Claims as they are stored: with what the ruling on their ending found. Without such a ruling they are stored as they came. */
export function marked(claims: readonly Claim[], found: unknown): { claims: StoredClaim[]; unshown: Unshown[] } {
  const parsed = marks.safeParse(found)
  if (!parsed.success) return { claims: [...claims], unshown: [] }
  const stored = claims.map((each, index): StoredClaim => {
    const mark = parsed.data.claims[index]
    return mark ? { ...each, shown: mark.shown, ...(mark.why !== undefined && { why: mark.why }) } : each
  })
  return { claims: stored, unshown: parsed.data.unshown }
}
