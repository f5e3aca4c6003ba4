import { z } from 'zod'
import { certainties, claimGrades, hypothesisStates, type StoredClaim, type UnshownSentence } from './hypothesis.ts'

/**
 * The subject of a claim: an action of this investigation, a current state, a state at the time of
 * a read, or a text that is absent.
 */
const claimKind = z.enum(['did', 'is', 'was', 'absent'])

export const maxClaims = 20
const maxQuotes = 20
const textCharacters = 500
const quoteCharacters = 1000

export const claimQuote = z.strictObject({
  seq: z.number().int().positive(),
  text: z
    .string()
    .max(quoteCharacters, `a quote is at most ${quoteCharacters} characters: quote only the words that show it`),
})

/** One claim as the model sends it. */
export const claim = z.strictObject({
  kind: claimKind,
  text: z
    .string()
    .min(1)
    .max(textCharacters, `the text of a claim is at most ${textCharacters} characters: one fact for each claim`),
  quotes: z
    .array(claimQuote, 'send quotes: [{ seq, text }], words copied from the results that show the claim')
    .min(1, 'a claim quotes at least one result: quotes: [{ seq, text }]')
    .max(maxQuotes),
})
export type Claim = z.infer<typeof claim>
export type ClaimQuote = Claim['quotes'][number]

/**
 * Fields of a hypothesis beside the text of the record. They are three plain fields, not one nested
 * object, which weak models often fill wrongly.
 */
export const hypothesisFields = {
  hypothesis: z.enum(hypothesisStates).optional(),
  hypothesis_id: z
    .string()
    .regex(/^h[0-9]{1,3}$/)
    .optional(),
  quotes: z.array(claimQuote).max(maxQuotes).optional(),
}

const claimMark = z.object({
  shown: z.boolean(),
  grade: z.enum(claimGrades).optional(),
  why: z.string().optional(),
  beside: z.array(z.object({ seq: z.number(), text: z.string() })).optional(),
  moved: z.array(z.object({ text: z.string(), from: z.number(), to: z.number() })).optional(),
})
const marks = z.object({
  claims: z.array(claimMark).default([]),
  unshown: z.array(z.object({ text: z.string(), why: z.string() })).default([]),
})

/**
 * Returns the claims with the marks that the policy check gave them; returns the claims unchanged
 * if there are no marks.
 */
export function marked(
  claims: readonly Claim[],
  found: unknown,
): { claims: StoredClaim[]; unshown: UnshownSentence[] } {
  const parsed = marks.safeParse(found)
  if (!parsed.success) return { claims: [...claims], unshown: [] }
  const stored = claims.map((each, index): StoredClaim => {
    const { moved = [], shown, grade, why, beside } = parsed.data.claims[index] ?? {}
    if (shown === undefined) return each
    const quotes = each.quotes.map((quoted) => {
      const other = moved.find(({ text, from }) => text === quoted.text && from === quoted.seq)
      return other ? { ...quoted, seq: other.to } : quoted
    })
    return {
      ...each,
      quotes,
      shown,
      ...(grade && { grade }),
      ...(why !== undefined && { why }),
      ...(beside && { beside }),
    }
  })
  return { claims: stored, unshown: parsed.data.unshown }
}

const bound = z.object({ certainty: z.enum(certainties), claimed: z.enum(certainties).optional() })

/** Reads the highest certainty that the policy check allows; empty if the check states none. */
export function boundOf(found: unknown): z.infer<typeof bound> | Record<string, never> {
  return bound.safeParse(found).data ?? {}
}
