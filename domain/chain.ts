import { z } from 'zod'

/**
 * The result of recomputing a chain of hashes. `problem`: the first row that does not fit, and how;
 * null where the chain holds.
 */
const chain = {
  headHash: z.string(),
  problem: z.object({ seq: z.number().int(), what: z.string() }).nullable(),
}

/** An incident's log. */
const logChain = z.object({ ok: z.boolean(), events: z.number().int(), ...chain })
export type LogChain = z.infer<typeof logChain>

/** The audit. */
export const auditChain = z.object({ ok: z.boolean(), rows: z.number().int(), ...chain })
export type AuditChain = z.infer<typeof auditChain>

/** Something stored that is not what the log says. */
export const difference = z.object({ subject: z.string(), what: z.string() })
export type Difference = z.infer<typeof difference>

const counts = z.record(z.string(), z.number().int())
/** How many of each kind, by its name for people. */
export type Counts = z.infer<typeof counts>

/** Rows held against the log and the audit. */
const findings = z.object({
  differences: z.array(difference),
  /** How many of each kind were looked at. */
  checked: counts,
  /** Rows of which an older version said too little: neither fine nor altered. */
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
