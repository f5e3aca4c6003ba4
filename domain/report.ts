import { z } from 'zod'
import { escalationCategory } from './incident.ts'
import { count } from './status.ts'

/** Seconds that half, and nine in ten, stay within; null where nothing of the kind has happened. */
const spread = z.object({ p50: z.number(), p90: z.number() }).nullable()

export type Spread = z.infer<typeof spread>

const reportLine = z.object({
  incidents: count,
  /** Closed ones: resolved, escalated or cancelled. */
  closed: count,
  resolved: count,
  /** Resolved without a decision, or any other row, of a person before the end. */
  autoResolved: count,
  /** Closed as quiet, unproven: no resolution. */
  unproven: count,
  escalated: count,
  escalations: z.array(z.object({ category: escalationCategory, count })),
  /** Until a run or a person took it up. */
  acknowledgeSeconds: spread,
  resolveSeconds: spread,
  approvals: count,
  /** Approvals within five seconds (`hastySeconds`): perhaps unread. */
  approvalsWithinSeconds: count,
  /** From the question to its end, by a decision or by time. */
  approvalSeconds: spread,
  /** Endings of the agent as repaired, and those after which it came back. */
  repairs: count,
  repairsNotLasting: count,
  /** Pages that waited as their incident opened. */
  pagesHeld: count,
  /** Questions of a night that woke nobody, for its budget was used up. */
  questionsHeld: count,
  /** Pages that were not needed and did not turn out to be, and questions that woke nobody. */
  wakesAvoided: count,
  /** Answers and endings that were refused or marked, because no row shows what they say. */
  unshownClaims: count,
  /** Causes of the agent by what people called them last. */
  causesRight: count,
  causesPartly: count,
  causesWrong: count,
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
  /** The pages that were not needed, the newest first, 100 at most. */
  spared: z.array(z.object({ incidentId: z.string(), title: z.string(), at: z.string(), text: z.string() })),
})

export type Report = z.infer<typeof report>
