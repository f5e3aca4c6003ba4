import { z } from 'zod'

/**
 * Reasons why a person's data cannot be erased now, as the database function `why_not_erased`
 * returns them.
 */
export const erasureRefusals = {
  erased: 'This person was erased before.',
  'no person': 'This name is a role, not a person. Disable the user instead ("nightshift operators set").',
  'last admin': 'This is the only admin. Add another admin first.',
  held: 'An incident with texts of this person is on hold, and must be released first ("nightshift retention holds").',
  open: 'An incident that this person owns, opened, wrote in or decided about is still open. Erase after it is closed.',
} as const
const refusal = z.enum(Object.keys(erasureRefusals) as [keyof typeof erasureRefusals])
export type ErasureRefusal = z.infer<typeof refusal>

/** How many rows an erasure of a person would change, or has changed, by table. */
export const erasure = z.object({
  /** The pseudonym that replaces the person's name; null before an erasure. */
  pseudonym: z.string().nullable(),
  rows: z.record(z.string(), z.number().int()),
  refusal: refusal.nullable(),
})
export type Erasure = z.infer<typeof erasure>
