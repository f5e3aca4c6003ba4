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
       * How many responses lack credible token counts, so that their counts are estimated from the
       * bytes sent and received.
       */
      assumed: count,
      seconds: z.number(),
    }),
  ),
  byDay: z.array(z.object({ day: z.string(), incidents: count, tokens: z.number(), approvals: count })),
  /**
   * Dollars spent, at the price when each response was received. `assumed`: the part for models
   * without a known price.
   */
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
