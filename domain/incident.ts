import { z } from 'zod'
import { resourceRef } from './registry.ts'

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

/**
 * The statuses of an incident in which each action is allowed. The SQL predicate, the refusal and
 * the disabled button all use this table.
 */
export const incidentActions = {
  claim: ['open'],
  request_approval: ['investigating', 'awaiting_approval'],
  resolve: ['open', 'investigating', 'awaiting_approval', 'escalated'],
  escalate: ['open', 'investigating', 'awaiting_approval'],
  cancel: ['open', 'investigating', 'awaiting_approval'],
  /** Also allowed for an open incident that is left to people (`keptReason`). */
  investigate: ['resolved', 'escalated', 'cancelled'],
  take: ['open', 'investigating', 'awaiting_approval', 'escalated'],
} satisfies Record<string, IncidentStatus[]>
export type IncidentAction = keyof typeof incidentActions

export const closedStatuses: IncidentStatus[] = ['resolved', 'escalated', 'cancelled']
export const runningStatuses: IncidentStatus[] = ['investigating', 'awaiting_approval']

export const incidentRole = z.enum(['leader', 'follower'])
export type IncidentRole = z.infer<typeof incidentRole>

/**
 * Outcomes of a resolved incident. `repaired`: writes were verified. `answered`: the incident was a
 * question. `expected`: a person marked the state. `changed`: a person's own write was carried out.
 * `unproven`: the alerts are quiet, but nothing proves that they ended.
 */
export const resolveOutcome = z.enum([
  'repaired',
  'self_resolved',
  'no_fault',
  'answered',
  'expected',
  'changed',
  'unproven',
])
export type ResolveOutcome = z.infer<typeof resolveOutcome>

/** Outcomes that a person or the agent may state. Code sets all other outcomes. */
export const sayableOutcome = resolveOutcome.exclude(['expected', 'changed', 'unproven'])

/** A second person's review of a write that an admin did alone. */
export const reviewVerdict = z.enum(['right', 'wrong'])
export type ReviewVerdict = z.infer<typeof reviewVerdict>

/**
 * Why an incident is escalated to people. `mitigated`: the impact is gone, but the cause remains;
 * nobody is paged.
 */
export const escalationCategory = z.enum([
  'no_fault_found',
  'needs_approval',
  'no_tool',
  'does_not_last',
  'alert_goes_on',
  'mitigated',
  'unknown',
])
export type EscalationCategory = z.infer<typeof escalationCategory>

/** The actor that closed the incident: the agent's run, a person, or code outside a run. */
const closedBy = z.enum(['agent', 'person', 'code'])
export type ClosedBy = z.infer<typeof closedBy>

/** Why an incident waits in the queue. `soon`: the next tick of the queue takes it. */
const queueReason = z.enum(['off', 'paused', 'budget', 'kept', 'leader', 'followers', 'slots', 'soon'])
export type QueueReason = z.infer<typeof queueReason>

/**
 * The place of an open incident in the queue: how many incidents are before it, and why it waits,
 * as a code and in words.
 */
export const queuePlace = z.object({ ahead: z.number().int(), why: queueReason, text: z.string() })
export type QueuePlace = z.infer<typeof queuePlace>

export const incidentType = z.string().regex(/^[a-z0-9_]{1,48}$/)

/** An incident as the API returns it. Times are RFC 3339 in UTC. */
export const incident = z.object({
  id: z.string(),
  type: incidentType,
  severity,
  severitySource: z.enum(['alert', 'default', 'person']),
  status: incidentStatus,
  title: z.string(),
  /** The name of the alert that opened the incident; null if it was not opened by an alert. */
  alertName: z.string().nullable().default(null),
  resource: resourceRef.nullable(),
  assignedTo: z.string().nullable(),
  attempt: z.number().int(),
  role: incidentRole.nullable(),
  groupId: z.string().nullable(),
  resolution: z.string().nullable(),
  /** Null unless the incident is resolved. */
  outcome: resolveOutcome.nullable(),
  /** Null unless the incident is escalated. */
  category: escalationCategory.nullable(),
  closedBy: closedBy.nullable(),
  /** How many alerts of the incident fire now, and how many have an unknown state. */
  alerts: z.object({ firing: z.number().int(), unknown: z.number().int() }),
  /** How often the incident was reopened. */
  reopened: z.number().int(),
  /** The end of the watch after a repair. The alert has to end before this time. */
  watchUntil: z.string().nullable(),
  cancelledUntil: z.string().nullable(),
  /** Since when a write that an admin did alone waits for a review; null if no write waits. */
  reviewWantedAt: z.string().nullable().default(null),
  /** The person who took the incident; null if nobody has the incident. */
  owner: z.object({ id: z.string(), name: z.string(), since: z.string() }).nullable(),
  /** Why the incident is investigated only if a person requests it. */
  keptReason: z.string().nullable(),
  /** The earlier incident of the alert that opened this incident. */
  previousId: z.string().nullable(),
  createdAt: z.string(),
  queuedAt: z.string().nullable(),
  closedAt: z.string().nullable(),
  updatedAt: z.string(),
  events: z.number().int(),
})
export type Incident = z.infer<typeof incident>
