import { z } from 'zod'

/** A topic of Amazon SNS that asked for a confirmation of its subscription. */
export const snsTopic = z.object({
  id: z.string(),
  arn: z.string(),
  /** Whether the subscription waits for a person to confirm it. */
  isWaiting: z.boolean(),
  /** The time at which, and the person by whom, the alarms of the topic were accepted. */
  confirmedAt: z.string().nullable(),
  confirmedBy: z.string().nullable(),
  askedAt: z.string(),
})
export type SnsTopic = z.infer<typeof snsTopic>
