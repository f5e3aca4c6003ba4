import { z } from 'zod'

/**
 * The result of recomputing a chain of hashes. `problem`: the first row whose hash is wrong, and
 * what is wrong with it; null if the chain is intact.
 */
const chain = {
  headHash: z.string(),
  problem: z.object({ seq: z.number().int(), what: z.string() }).nullable(),
}

/** The result of recomputing the chain of an incident's log. */
const logChain = z.object({ ok: z.boolean(), events: z.number().int(), ...chain })
export type LogChain = z.infer<typeof logChain>

/** The result of recomputing the chain of the audit log. */
export const auditChain = z.object({ ok: z.boolean(), rows: z.number().int(), ...chain })
export type AuditChain = z.infer<typeof auditChain>

/** A stored value that differs from the log of its incident or from the audit log. */
export const difference = z.object({ subject: z.string(), what: z.string() })
export type Difference = z.infer<typeof difference>

const counts = z.record(z.string(), z.number().int())
/** Numbers of rows by kind. The kinds have names for people. */
export type Counts = z.infer<typeof counts>

/** The result of comparing stored rows with the logs of incidents and with the audit log. */
const findings = z.object({
  differences: z.array(difference),
  /** How many rows of each kind were checked. */
  checked: counts,
  /**
   * How many rows of each kind could not be compared, because an older version recorded too little
   * about them.
   */
  untold: counts,
})
export type Findings = z.infer<typeof findings>

/**
 * The result for one incident: its chain and its rows. `ok`: the chain is intact and no row
 * differs.
 */
export const verifiedIncident = logChain.extend(findings.shape)

/** The result for one page of incidents, or of rows that the database recorded. */
export const verifiedPage = findings.extend({
  incidents: z.number().int(),
  events: z.number().int(),
  nextCursor: z.string().nullable(),
})
export type VerifiedPage = z.infer<typeof verifiedPage>
