import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { escalationCategory } from './incident.ts'
import { storedPassport } from './passport.ts'

/** What the API says about the whole: how the parts are, what the last days took, what investigations lacked. */

const count = z.number().int()

const statusPart = z.object({
  name: z.string(),
  status: z.enum(['ok', 'failed', 'unknown', 'off']),
  /** What it means for the night, in one sentence. */
  detail: z.string(),
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
    /** Of the server that was asked last: who asks it now and who waits, the window, and how it wants its requests. */
    asking: count,
    waiting: count,
    windowTokens: count.nullable(),
    windowSource: z.string().nullable(),
    learned: z.array(z.string()),
    /** What that server can do with the model; null where it was never asked. */
    abilities: modelAbilities.nullable(),
    /** Of the model that incidents are given to; null where none is known. */
    grade: modelGrade.nullable(),
  }),
})
export type Status = z.infer<typeof status>

/** As a declaration says it: `auto` takes tool calls where the model can, and a run keeps what it began with. */
const modelProtocol = z.enum(['auto', 'native', 'json'])
export type ModelProtocol = z.infer<typeof modelProtocol>

/** The models that the workers know, without keys, and which runs the settings give to which. */
export const modelList = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      server: z.string(),
      model: z.string(),
      /** Who stands in for it, in order. */
      fallbacks: z.array(z.string()),
      /** How it is asked: tool calls, the JSON protocol, or whichever it can. Null: its worker is of an older release. */
      protocol: modelProtocol.nullable(),
      abilities: modelAbilities,
      windowTokens: count.nullable(),
      windowSource: z.string().nullable(),
      learned: z.array(z.string()),
      passport: storedPassport.nullable(),
      /** It did not answer: until then runs ask who stands in for it. */
      awayUntil: z.string().nullable(),
    }),
  ),
  routes: z.array(
    z.object({
      /** The setting. */
      key: z.string(),
      model: z.string(),
      /** Else the default is asked. */
      isDeclared: z.boolean(),
    }),
  ),
})
export type ModelList = z.infer<typeof modelList>

const spentOn = z.object({ name: z.string(), answers: count, dollars: z.number(), assumed: z.number() })
export type SpentOn = z.infer<typeof spentOn>

export const usage = z.object({
  models: z.array(
    z.object({
      model: z.string(),
      answers: count,
      failures: count,
      promptTokens: z.number(),
      completionTokens: z.number(),
      reasoningTokens: z.number(),
      seconds: z.number(),
    }),
  ),
  byDay: z.array(z.object({ day: z.string(), incidents: count, tokens: z.number(), approvals: count })),
  /** Dollars, by the prices in force when each answer came. `assumed`: of them, for models without a price. */
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

/** Seconds that half, and nine in ten, stay within; null where nothing of the kind has happened. */
const spread = z.object({ p50: z.number(), p90: z.number() }).nullable()
export type Spread = z.infer<typeof spread>

const reportLine = z.object({
  incidents: count,
  /** Of those, no longer open: resolved, escalated or cancelled. */
  closed: count,
  resolved: count,
  /** Resolved without a decision, or any other row, of a person before the end. */
  autoResolved: count,
  escalated: count,
  escalations: z.array(z.object({ category: escalationCategory, count })),
  /** Until a run or a person took it up. */
  acknowledgeSeconds: spread,
  resolveSeconds: spread,
  approvals: count,
  /** From the question to its end, by a decision or by time. */
  approvalSeconds: spread,
  /** Endings of the agent as repaired, and those after which it came back. */
  repairs: count,
  repairsNotLasting: count,
  /** Answers and endings that were refused or marked, because no row shows what they say. */
  unshownClaims: count,
  /** By the prices in force when each answer came. */
  dollars: z.number().nullable(),
})
export type ReportLine = z.infer<typeof reportLine>

/** What became of the incidents of some days (UTC, both included). */
export const report = z.object({
  since: z.string(),
  until: z.string(),
  total: reportLine,
  byType: z.array(reportLine.extend({ type: z.string() })),
  /** Every week of the range, by its Monday. */
  byWeek: z.array(reportLine.extend({ week: z.string() })),
})
export type Report = z.infer<typeof report>

/** Something that an investigation would have needed. */
export const capabilityGap = z.object({
  id: z.string(),
  incidentId: z.string(),
  category: z.enum(['investigation', 'remediation', 'notification']),
  description: z.string(),
  actor: z.string(),
  at: z.string(),
})
export type CapabilityGap = z.infer<typeof capabilityGap>
