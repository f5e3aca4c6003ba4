import { z } from 'zod'
import { count, spentOn } from './status.ts'

export const usage = z.object({
  models: z.array(
    z.object({
      model: z.string(),
      answers: count,
      failures: count,
      promptTokens: z.number(),
      completionTokens: z.number(),
      reasoningTokens: z.number(),
      /**
       * Answers without or with impossible token counts: counted by the bytes that were sent and
       * received.
       */
      assumed: count,
      seconds: z.number(),
    }),
  ),
  byDay: z.array(z.object({ day: z.string(), incidents: count, tokens: z.number(), approvals: count })),
  /** Dollars, by each answer's price in force. `assumed`: for models without a price. */
  money: z.object({
    day: z.object({ dollars: z.number(), cap: z.number().nullable() }),
    month: z.object({ dollars: z.number(), cap: z.number().nullable() }),
    byModel: z.array(spentOn),
    byType: z.array(spentOn),
    byDay: z.array(spentOn),
  }),
  incidents: z.array(z.object({ status: z.string(), count, medianSeconds: z.number().nullable() })),
  approvals: z.array(
    z.object({
      status: z.string(),
      count,
      medianWaitSeconds: z.number().nullable(),
      longestWaitSeconds: z.number().nullable(),
    }),
  ),
})

export type Usage = z.infer<typeof usage>
