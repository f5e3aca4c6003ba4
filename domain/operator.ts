import { z } from 'zod'
import { formatRight, parseRight } from './decision-right.ts'
import { incidentType } from './incident.ts'
import { personRoles } from './permissions.ts'
import { risks } from './tool.ts'

/** A right in words, `critical host:db-* until:2026-12-06`, in the one spelling that is stored. */
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

/** Further rights beside the person's own limits, as an admin writes them. */
export const writtenRights = z.array(decisionRightWords).max(20)

/** What an admin sets of a person. */
export const operatorLimits = {
  role: z.enum(personRoles),
  /** The riskiest action this person decides about. */
  maxRisk: z.enum(risks),
  /** Null: incidents of all types. */
  incidentTypes: z.array(incidentType).max(100).nullable(),
}

/** A person as the API lists them. */
export const operator = z.object({
  id: z.string(),
  name: z.string(),
  ...operatorLimits,
  /**
   * Further rights, each by itself: `critical host:db-* type:disk_pressure
   * until:2026-12-06T06:00:00.000Z`.
   */
  rights: z.array(z.string()),
  permissions: z.array(z.string()),
  createdAt: z.string(),
  disabledAt: z.string().nullable(),
  /** The provider of sign-in that vouches for this person and gives their role. */
  issuer: z.string().nullable(),
  /** To some minutes. */
  lastSeenAt: z.string().nullable(),
  /** This person at Slack. */
  slackUserId: z.string().nullable(),
  /** This person at PagerDuty. */
  pagerdutyUserId: z.string().nullable(),
})
export type Operator = z.infer<typeof operator>
