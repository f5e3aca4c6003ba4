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

/** Actions by status. The SQL predicate, the refusal and the disabled button all read this. */
export const incidentActions = {
  claim: ['open'],
  request_approval: ['investigating', 'awaiting_approval'],
  resolve: ['open', 'investigating', 'awaiting_approval', 'escalated'],
  escalate: ['open', 'investigating', 'awaiting_approval'],
  cancel: ['open', 'investigating', 'awaiting_approval'],
  /** Besides: what is open and kept (`keptReason`). */
  investigate: ['resolved', 'escalated', 'cancelled'],
  take: ['open', 'investigating', 'awaiting_approval', 'escalated'],
} satisfies Record<string, IncidentStatus[]>
export type IncidentAction = keyof typeof incidentActions

export const closedStatuses: IncidentStatus[] = ['resolved', 'escalated', 'cancelled']
export const runningStatuses: IncidentStatus[] = ['investigating', 'awaiting_approval']

export const incidentRole = z.enum(['leader', 'follower'])
export type IncidentRole = z.infer<typeof incidentRole>

/**
 * Reasons to close as resolved. `repaired`: writes that held; `answered`: a question; `expected`: a
 * person's mark in force; `changed`: a person's own write that was carried out; `unproven`: alerts
 * are quiet, and nothing shows that they ended.
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

/** What a person, or the agent, may close an incident as; the others are code's to say. */
export const sayableOutcome = resolveOutcome.exclude(['expected', 'changed', 'unproven'])

/** What a second person says of a write that was done alone. */
export const reviewVerdict = z.enum(['right', 'wrong'])
export type ReviewVerdict = z.infer<typeof reviewVerdict>

/**
 * Reasons to hand over to people. `mitigated`: the impact is gone, the cause is left, and nobody is
 * paged.
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

/** The closer: the agent's run, a person, or code alone. */
const closedBy = z.enum(['agent', 'person', 'code'])
export type ClosedBy = z.infer<typeof closedBy>

/** Why an incident is not investigated yet. `soon`: the next tick of the queue takes it up. */
const queueReason = z.enum(['off', 'paused', 'budget', 'kept', 'leader', 'followers', 'slots', 'soon'])
export type QueueReason = z.infer<typeof queueReason>

/** An open incident's place in the queue: how many come before it, and why it waits, in words. */
export const queuePlace = z.object({ ahead: z.number().int(), why: queueReason, text: z.string() })
export type QueuePlace = z.infer<typeof queuePlace>

export const incidentType = z.string().regex(/^[a-z0-9_]{1,48}$/)

/** An incident as the API serves it. Times are RFC 3339 in UTC. */
export const incident = z.object({
  id: z.string(),
  type: incidentType,
  severity,
  severitySource: z.enum(['alert', 'default', 'person']),
  status: incidentStatus,
  title: z.string(),
  /** The alert that opened it, by the name that its sender gives it; null without one. */
  alertName: z.string().nullable().default(null),
  resource: resourceRef.nullable(),
  assignedTo: z.string().nullable(),
  attempt: z.number().int(),
  role: incidentRole.nullable(),
  groupId: z.string().nullable(),
  resolution: z.string().nullable(),
  /** How it was resolved; null unless it was. */
  outcome: resolveOutcome.nullable(),
  /** Why it was escalated; null unless it was. */
  category: escalationCategory.nullable(),
  closedBy: closedBy.nullable(),
  /** How many of its alerts fire now, and of how many nobody knows whether they do. */
  alerts: z.object({ firing: z.number().int(), unknown: z.number().int() }),
  /** How often it came back after it was closed. */
  reopened: z.number().int(),
  /** After a repair: its firing alert has until then to end. */
  watchUntil: z.string().nullable(),
  cancelledUntil: z.string().nullable(),
  /** Since when what an admin did alone waits for somebody else's review; null otherwise. */
  reviewWantedAt: z.string().nullable().default(null),
  /** The person who has it. */
  owner: z.object({ id: z.string(), name: z.string(), since: z.string() }).nullable(),
  /** Why it is not investigated unless a person asks. */
  keptReason: z.string().nullable(),
  /** The incident it follows: the same alert, earlier. */
  previousId: z.string().nullable(),
  createdAt: z.string(),
  queuedAt: z.string().nullable(),
  closedAt: z.string().nullable(),
  updatedAt: z.string(),
  events: z.number().int(),
})
export type Incident = z.infer<typeof incident>
