import { z } from 'zod'

/** Why a person's data cannot be erased now: words of `why_not_erased` in the database. */
export const erasureRefusals = {
  erased: 'It was erased before.',
  'no person': 'It is named as a role and stands for nobody: disable it instead ("nightshift operators set").',
  'last admin': 'This is the only admin: make another one first.',
  held: 'An incident in which they wrote is held: whoever holds it has to release it first ("nightshift retention holds").',
  open: 'An incident that they own, opened, wrote in or decided about is open: erase once it is closed.',
} as const
const refusal = z.enum(Object.keys(erasureRefusals) as [keyof typeof erasureRefusals])
export type ErasureRefusal = z.infer<typeof refusal>

/** What an erasure would change, or changed: rows by table. */
export const erasure = z.object({
  /** What stands for the person from then on; null before anything was erased. */
  pseudonym: z.string().nullable(),
  rows: z.record(z.string(), z.number().int()),
  refusal: refusal.nullable(),
})
export type Erasure = z.infer<typeof erasure>
