import { z } from 'zod'

/** People who may decide about a call at one time, and why each other may not. */
export const whoMay = z.object({
  /** By whose rights: as they were at this time. */
  at: z.string(),
  risk: z.string(),
  incidentType: z.string(),
  targets: z.array(z.object({ kind: z.string(), id: z.string() })),
  /** How many people have to agree. */
  required: z.number().int(),
  /** `why`: what keeps this person from deciding; null where nothing does. */
  people: z.array(z.object({ name: z.string(), role: z.string(), why: z.string().nullable() })),
})
export type WhoMay = z.infer<typeof whoMay>
