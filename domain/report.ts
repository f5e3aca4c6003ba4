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
  /** Resolved incidents that have no decision, and no other row, of a person before the end. */
  autoResolved: count,
  /** Incidents that closed as quiet and unproven. They do not count as resolved. */
  unproven: count,
  escalated: count,
  escalations: z.array(z.object({ category: escalationCategory, count })),
  /** Seconds until a run or a person took the incident. */
  acknowledgeSeconds: spread,
  resolveSeconds: spread,
  approvals: count,
  /** Approvals within five seconds of the question (`hastySeconds`): perhaps nobody read it. */
  approvalsWithinSeconds: count,
  /** Seconds from the question to its decision or expiry. */
  approvalSeconds: spread,
  /** Repairs that the agent reported, and how many of them were followed by the incident again. */
  repairs: count,
  repairsNotLasting: count,
  /** Pages that were delayed when their incident opened. */
  pagesHeld: count,
  /** Questions at night that woke nobody, because the budget of wakes was used up. */
  questionsHeld: count,
  /** Pages that turned out not to be needed, and questions that woke nobody. */
  wakesAvoided: count,
  /** Responses and endings that were refused or marked, because no row shows what they state. */
  unshownClaims: count,
  /** How people graded causes that the agent found. The last grade of a cause counts. */
  causesRight: count,
  causesPartly: count,
  causesWrong: count,
  /** Dollars for models, at the price when each response was received. */
  dollars: z.number().nullable(),
})

export type ReportLine = z.infer<typeof reportLine>

/** Numbers about the incidents of a range of days (UTC, first and last day included). */
export const report = z.object({
  since: z.string(),
  until: z.string(),
  total: reportLine,
  byType: z.array(reportLine.extend({ type: z.string() })),
  /** Numbers about each week of the range. `week` is the date of the week's Monday. */
  byWeek: z.array(reportLine.extend({ week: z.string() })),
  /** Pages that were not needed, newest first, at most 100. */
  spared: z.array(z.object({ incidentId: z.string(), title: z.string(), at: z.string(), text: z.string() })),
})

export type Report = z.infer<typeof report>
