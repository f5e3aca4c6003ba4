import { z } from 'zod'
import { incidentType } from './incident.ts'
import { personRoles } from './permissions.ts'
import { risks } from './tool.ts'

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
  permissions: z.array(z.string()),
  createdAt: z.string(),
  disabledAt: z.string().nullable(),
  /** Who vouches for this person and gives their role. */
  issuer: z.string().nullable(),
  /** To some minutes. */
  lastSeenAt: z.string().nullable(),
  /** Who they are at Slack. */
  slackUserId: z.string().nullable(),
  /** Who they are at PagerDuty. */
  pagerdutyUserId: z.string().nullable(),
})
export type Operator = z.infer<typeof operator>
