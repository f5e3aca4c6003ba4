import { z } from 'zod'

/** What recomputing a chain of hashes found. `problem`: the first thing that does not fit, and at which row; null where it holds. */
const chain = {
  headHash: z.string(),
  problem: z.object({ seq: z.number().int(), what: z.string() }).nullable(),
}

/** Of an incident's log. */
const logChain = z.object({ ok: z.boolean(), events: z.number().int(), ...chain })
export type LogChain = z.infer<typeof logChain>

/** Of the audit. */
export const auditChain = z.object({ ok: z.boolean(), rows: z.number().int(), ...chain })
export type AuditChain = z.infer<typeof auditChain>

/** Something stored that is not what the log says. */
export const difference = z.object({ subject: z.string(), what: z.string() })
export type Difference = z.infer<typeof difference>

const counts = z.record(z.string(), z.number().int())
/** How many of each kind, by its name for people. */
export type Counts = z.infer<typeof counts>

/** What was held against the log and the audit. */
const findings = z.object({
  differences: z.array(difference),
  /** How many of each kind were looked at. */
  checked: counts,
  /** Those of them of which rows of an older version do not say enough: neither fine nor altered. */
  untold: counts,
})
export type Findings = z.infer<typeof findings>

/** The chain of one incident, and what belongs to it. `ok`: nothing differs. */
export const verifiedIncident = logChain.extend(findings.shape)

/** Some incidents, or some rows of what the database wrote down, held against log and audit. */
export const verifiedPage = findings.extend({
  incidents: z.number().int(),
  events: z.number().int(),
  nextCursor: z.string().nullable(),
})
export type VerifiedPage = z.infer<typeof verifiedPage>
