import { z } from 'zod'
import { resourceRef } from './resource.ts'

export const severity = z.enum(['critical', 'warning', 'info'])
export type Severity = z.infer<typeof severity>

export const incidentStatus = z.enum([
  'open',
  'investigating',
  'awaiting_approval',
  'resolved',
  'escalated',
  'cancelled',
])
export type IncidentStatus = z.infer<typeof incidentStatus>

/** Which action is allowed in which status. The SQL predicate, the refusal and the disabled button all read this. */
export const incidentActions = {
  claim: ['open'],
  request_approval: ['investigating', 'awaiting_approval'],
  resolve: ['open', 'investigating', 'awaiting_approval', 'escalated'],
  escalate: ['open', 'investigating', 'awaiting_approval'],
  cancel: ['open', 'investigating', 'awaiting_approval'],
  investigate: ['open', 'resolved', 'escalated', 'cancelled'],
} satisfies Record<string, IncidentStatus[]>
export type IncidentAction = keyof typeof incidentActions

export const closedStatuses: IncidentStatus[] = ['resolved', 'escalated', 'cancelled']
export const runningStatuses: IncidentStatus[] = ['investigating', 'awaiting_approval']

export const incidentRole = z.enum(['leader', 'follower'])
export type IncidentRole = z.infer<typeof incidentRole>

/** Why an incident was closed as resolved. `repaired` needs a write and a later verification that held. */
export const resolveOutcome = z.enum(['repaired', 'self_resolved', 'no_fault', 'answered', 'expected'])
export type ResolveOutcome = z.infer<typeof resolveOutcome>

export const incidentType = z.string().regex(/^[a-z0-9_]{1,48}$/)

/** An incident as the API serves it. Times are RFC 3339 in UTC. */
export const incident = z.object({
  id: z.string(),
  type: incidentType,
  severity,
  severitySource: z.enum(['alert', 'default', 'person']),
  status: incidentStatus,
  title: z.string(),
  resource: resourceRef.nullable(),
  assignedTo: z.string().nullable(),
  attempt: z.number().int(),
  role: incidentRole.nullable(),
  groupId: z.string().nullable(),
  resolution: z.string().nullable(),
  createdAt: z.string(),
  queuedAt: z.string().nullable(),
  closedAt: z.string().nullable(),
  updatedAt: z.string(),
  events: z.number().int(),
})
export type Incident = z.infer<typeof incident>

/**
 * The type of an incident from the labels of its alert: label `incident_type`, else the alert's name in snake_case, else
 * `unknown`. Never fails: whatever does not fit `[a-z0-9_]{1,48}` is `unknown`.
 */
export function incidentTypeOf(labels: Record<string, string>, name: string): string {
  for (const candidate of [labels.incident_type, name]) {
    if (!candidate) continue
    const snake = candidate
      .trim()
      .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
      .replace(/[\s.-]+/g, '_')
      .toLowerCase()
    if (incidentType.safeParse(snake).success) return snake
  }
  return 'unknown'
}
