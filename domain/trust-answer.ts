import { z } from 'zod'
import { incidentType } from './incident.ts'
import { resourceRef } from './registry.ts'
import { count } from './status.ts'
import {
  causeGrades,
  type IncidentTrust,
  type PairHistory,
  type PairStanding,
  shadowGrades,
  type TrustList,
  trustLevels,
} from './trust.ts'

/**
 * Responses of the API about trust. The types are in `trust.ts`: pages import the types and load no
 * schema.
 */

const level = z.enum(trustLevels)
const cause = z.enum(['person', 'lost', 'upgrade'])
const toolName = z.string().max(100)

const record = z.object({
  proposed: count,
  shadowed: count,
  ungraded: count,
  approved: count,
  denied: count,
  ran: count,
  held: count,
  lasted: count,
  lost: count,
  right: count,
  wrong: count,
})

const standing = z.object({
  type: incidentType,
  tool: toolName,
  level,
  cause: cause.nullable(),
  since: z.string().nullable(),
  record,
}) satisfies z.ZodType<PairStanding>

export const trustList = z.object({ newPairs: level, items: z.array(standing) }) satisfies z.ZodType<TrustList>

const step = z.object({
  level,
  cause,
  at: z.string(),
  by: z.string().nullable(),
  reason: z.string().nullable(),
  incidentId: z.string().nullable(),
})

const call = z.object({
  incidentId: z.string(),
  attempt: z.number().int(),
  callId: z.string(),
  seq: z.number().int(),
  at: z.string(),
  shadowed: z.boolean(),
  approved: z.boolean(),
  denied: z.boolean(),
  ran: z.boolean(),
  verified: z.string().nullable(),
  lost: z.boolean(),
  grade: z.enum([...causeGrades, 'harmful']).nullable(),
})

const share = z.number().min(0).max(1)

export const pairHistory = standing.extend({
  risk: z.string(),
  seen: z.string(),
  steps: z.array(step),
  calls: z.array(call),
  weeks: z.array(z.object({ week: z.string(), right: count, wrong: count, low: share, high: share })),
}) satisfies z.ZodType<PairHistory>

export const incidentTrust = z.object({
  cause: z.object({ verdict: z.enum(causeGrades), by: z.string(), at: z.string() }).nullable(),
  shadow: z.array(
    z.object({
      attempt: z.number().int(),
      callId: z.string(),
      seq: z.number().int(),
      at: z.string(),
      tool: toolName,
      arguments: z.record(z.string(), z.unknown()).nullable(),
      targets: z.array(resourceRef),
      risk: z.string(),
      would: z.enum(['run', 'ask']),
      summary: z.string().nullable(),
      grade: z.enum(shadowGrades).nullable(),
      gradedBy: z.string().nullable(),
    }),
  ),
}) satisfies z.ZodType<IncidentTrust>
