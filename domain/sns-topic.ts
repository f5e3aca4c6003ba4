import { z } from 'zod'

/** A topic of Amazon SNS that asked to be let in. */
export const snsTopic = z.object({
  id: z.string(),
  arn: z.string(),
  /** It asks for a subscription, which a person has to press for. */
  isWaiting: z.boolean(),
  /** Since when its alarms are taken, and who said so. */
  confirmedAt: z.string().nullable(),
  confirmedBy: z.string().nullable(),
  askedAt: z.string(),
})
export type SnsTopic = z.infer<typeof snsTopic>
