import { z } from 'zod'

/** What recomputing a chain of hashes found. `problem`: the first thing that does not fit, and at which row; null where it holds. */
const chain = {
  headHash: z.string(),
  problem: z.object({ seq: z.number().int(), what: z.string() }).nullable(),
}

/** Of an incident's log. */
export const logChain = z.object({ ok: z.boolean(), events: z.number().int(), ...chain })
export type LogChain = z.infer<typeof logChain>

/** Of the audit. */
export const auditChain = z.object({ ok: z.boolean(), rows: z.number().int(), ...chain })
export type AuditChain = z.infer<typeof auditChain>

/** Something stored that is not what the log says. */
export const difference = z.object({ subject: z.string(), what: z.string() })
export type Difference = z.infer<typeof difference>

/** A page of incidents, held against their logs. */
export const verifiedPage = z.object({
  incidents: z.number().int(),
  events: z.number().int(),
  differences: z.array(difference),
  nextCursor: z.string().nullable(),
})
