import { z } from 'zod'

export const expectationSubject = z.enum(['alert', 'resource', 'type'])

/** An expected state, marked by a person, as the API lists it. */
export const expectation = z.object({
  id: z.string(),
  subject: expectationSubject,
  about: z.string(),
  until: z.string(),
  reason: z.string(),
  /** The state of the subject when a person marked it as expected. */
  state: z.record(z.string(), z.unknown()),
  createdBy: z.string(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
  inForce: z.boolean(),
})

export type Expectation = z.infer<typeof expectation>
