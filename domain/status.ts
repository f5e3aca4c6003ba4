import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { storedPassport } from './passport.ts'

/** The status of the API: parts, costs of the last days, and missing capabilities. */

export const count = z.number().int()

const statusPart = z.object({
  name: z.string(),
  status: z.enum(['ok', 'failed', 'unknown', 'off']),
  /** The consequence of the part's state for the night, in one sentence. */
  detail: z.string(),
  /** The remedy; null if the part works. */
  remedy: z.string().nullable(),
})
export type StatusPart = z.infer<typeof statusPart>

const modelGrade = z.object({
  server: z.string(),
  model: z.string(),
  /** The last result of "nightshift model check"; null if there is none. */
  passport: storedPassport.nullable(),
  /** A warning to read before incidents are left to the model; null if there is no warning. */
  warning: z.string().nullable(),
})
export type ModelGrade = z.infer<typeof modelGrade>

export const status = z.object({
  parts: z.array(statusPart),
  /** Sources for investigations, each as the API process last saw it. */
  sources: z.array(statusPart),
  paused: z.boolean(),
  backlog: z.object({
    waiting: count,
    investigating: count,
    awaitingApproval: count,
    deliveries: count,
    failedDeliveries: count,
    oldestWaitingAt: z.string().nullable(),
  }),
  schedule: z
    .object({
      paused: z.boolean(),
      note: z.string().nullable(),
      everySeconds: z.number().nullable(),
      lastAt: z.string().nullable(),
      nextAt: z.string().nullable(),
    })
    .nullable(),
  model: z.object({
    model: z.string().nullable(),
    lastAnswerAt: z.string().nullable(),
    lastDurationMs: z.number().nullable(),
    answersLastHour: count,
    failuresLastHour: count,
    /**
     * The model server that was used last: how many requests it processes, how many wait, its
     * context window, and the form of its requests.
     */
    asking: count,
    waiting: count,
    windowTokens: count.nullable(),
    windowSource: z.string().nullable(),
    /** The context window as the server itself reports it. */
    statedWindow: count.nullable(),
    learned: z.array(z.string()),
    /** Abilities of the last used server with the model; null if no server was used yet. */
    abilities: modelAbilities.nullable(),
    /** The grade of the model for incidents; null if unknown. */
    grade: modelGrade.nullable(),
  }),
})
export type Status = z.infer<typeof status>

export const spentOn = z.object({ name: z.string(), answers: count, dollars: z.number(), assumed: z.number() })
export type SpentOn = z.infer<typeof spentOn>
