import { z } from 'zod'

/** A mark as the API answers it. Loose, so that what a newer API adds still reaches --json. */
export const apiExpectation = z.looseObject({
  id: z.string(),
  subject: z.enum(['alert', 'resource', 'type']),
  about: z.string(),
  until: z.string(),
  reason: z.string(),
  createdBy: z.string(),
  endedAt: z.string().nullable(),
  inForce: z.boolean(),
})
