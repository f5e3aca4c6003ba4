import { z } from 'zod'
import { escalationCategory } from './incident.ts'
import { count } from './status.ts'

/** Seconds, as the median and the 90th percentile; null if there are no values. */
const spread = z.object({ p50: z.number(), p90: z.number() }).nullable()

export type Spread = z.infer<typeof spread>

const reportLine = z.object({
  incidents: count,
  /** Closed incidents: resolved, escalated or cancelled. */
  closed: count,
  resolved: count,
  /** Resolved incidents without a decision, or any other row, of a person before the end. */
  autoResolved: count,
  /** Incidents that closed as quiet and unproven, which does not count as resolved. */
  unproven: count,
  escalated: count,
  escalations: z.array(z.object({ category: escalationCategory, count })),
  /** Seconds until a run or a person took the incident. */
  acknowledgeSeconds: spread,
  resolveSeconds: spread,
  approvals: count,
  /** Approvals within five seconds (`hastySeconds`). Perhaps nobody read the question. */
  approvalsWithinSeconds: count,
  /** Seconds from the question to its decision or expiry. */
  approvalSeconds: spread,
  /** Repairs that the agent reported, and those after which the incident came back. */
  repairs: count,
  repairsNotLasting: count,
  /** Pages that were delayed when their incident opened. */
  pagesHeld: count,
  /** Questions at night that woke nobody, because the budget was used up. */
  questionsHeld: count,
  /** Pages that were not needed, immediately or later, and questions that woke nobody. */
  wakesAvoided: count,
  /** Responses and endings that were refused or marked, because no row shows what they claim. */
  unshownClaims: count,
  /** How people graded the agent's causes. Only the last grade of each cause counts. */
  causesRight: count,
  causesPartly: count,
  causesWrong: count,
  /** Computed with the price at the time of each response. */
  dollars: z.number().nullable(),
})

export type ReportLine = z.infer<typeof reportLine>

/** The outcome of the incidents of a range of days (UTC, both included). */
export const report = z.object({
  since: z.string(),
  until: z.string(),
  total: reportLine,
  byType: z.array(reportLine.extend({ type: z.string() })),
  /** The outcome of each week of the range. `week` is the date of its Monday. */
  byWeek: z.array(reportLine.extend({ week: z.string() })),
  /** Pages that were not needed, newest first, at most 100. */
  spared: z.array(z.object({ incidentId: z.string(), title: z.string(), at: z.string(), text: z.string() })),
})

export type Report = z.infer<typeof report>
