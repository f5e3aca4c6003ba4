import { z } from 'zod'

/** People who may decide about a call at one time, and why the others may not decide. */
export const whoMay = z.object({
  /** The time for which the rights are evaluated. */
  at: z.string(),
  risk: z.string(),
  incidentType: z.string(),
  targets: z.array(z.object({ kind: z.string(), id: z.string() })),
  /** How many people must approve the call. */
  required: z.number().int(),
  /** `why`: why this person may not decide; null if the person may. */
  people: z.array(z.object({ name: z.string(), role: z.string(), why: z.string().nullable() })),
})
export type WhoMay = z.infer<typeof whoMay>
