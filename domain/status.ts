import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { storedPassport } from './passport.ts'

/** The API's status of the whole: parts, the last days' costs, what investigations lacked. */

export const count = z.number().int()

const statusPart = z.object({
  name: z.string(),
  status: z.enum(['ok', 'failed', 'unknown', 'off']),
  /** What it means for the night, in one sentence. */
  detail: z.string(),
  /** What a person does about it; null where nothing is wrong. */
  remedy: z.string().nullable(),
})
export type StatusPart = z.infer<typeof statusPart>

const modelGrade = z.object({
  server: z.string(),
  model: z.string(),
  /** What "nightshift model check" measured last; null where nobody did. */
  passport: storedPassport.nullable(),
  /** What people must know before they leave incidents to it, in one sentence. */
  warning: z.string().nullable(),
})
export type ModelGrade = z.infer<typeof modelGrade>

export const status = z.object({
  parts: z.array(statusPart),
  /** Where investigations read, each as the API process saw it last. */
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
    /** The server asked last: its askers and waiters, the window, and its requests' form. */
    asking: count,
    waiting: count,
    windowTokens: count.nullable(),
    windowSource: z.string().nullable(),
    /** The window as the server itself says it. */
    statedWindow: count.nullable(),
    learned: z.array(z.string()),
    /** What that server can do with the model; null where it was never asked. */
    abilities: modelAbilities.nullable(),
    /** The model that incidents are given to; null where none is known. */
    grade: modelGrade.nullable(),
  }),
})
export type Status = z.infer<typeof status>

export const spentOn = z.object({ name: z.string(), answers: count, dollars: z.number(), assumed: z.number() })
export type SpentOn = z.infer<typeof spentOn>
