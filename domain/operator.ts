import { z } from 'zod'
import { formatRight, parseRight } from './decision-right.ts'
import { incidentType } from './incident.ts'
import { personRoles } from './permissions.ts'
import { risks } from './tool.ts'

/**
 * A right to decide as text, such as `critical host:db-* until:2026-12-06`, normalized to the
 * stored form.
 */
const decisionRightWords = z
  .string()
  .max(2_000)
  .transform((words, context) => {
    try {
      return formatRight(parseRight(words))
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message })
      return z.NEVER
    }
  })

/** Rights to decide in addition to the person's own limits, as an admin writes them. */
export const writtenRights = z.array(decisionRightWords).max(20)

/** Limits that an admin sets for a person. */
export const operatorLimits = {
  role: z.enum(personRoles),
  /** The highest risk that this person may decide. */
  maxRisk: z.enum(risks),
  /** Types of incidents about which the person may decide. Null stands for all types. */
  incidentTypes: z.array(incidentType).max(100).nullable(),
}

/** A person as the API lists people. */
export const operator = z.object({
  id: z.string(),
  name: z.string(),
  ...operatorLimits,
  /**
   * Further rights, each of which applies on its own: `critical host:db-* type:disk_pressure
   * until:2026-12-06T06:00:00.000Z`.
   */
  rights: z.array(z.string()),
  permissions: z.array(z.string()),
  createdAt: z.string(),
  disabledAt: z.string().nullable(),
  /** The identity provider that gives this person the role; null if an admin gave it. */
  issuer: z.string().nullable(),
  /** The time at which the person was last active, accurate to a few minutes. */
  lastSeenAt: z.string().nullable(),
  /** The person's id at Slack. */
  slackUserId: z.string().nullable(),
  /** The person's id at PagerDuty. */
  pagerdutyUserId: z.string().nullable(),
})
export type Operator = z.infer<typeof operator>
