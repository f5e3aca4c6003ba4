import { z } from 'zod'
import type { EventMetadata } from './event-metadata.ts'

export type {
  BodyRef,
  ConfigInForce,
  EventMetadata,
  JudgedBasis,
  NotedCode,
  ProposedCall,
  Verdict,
} from './event-metadata.ts'

/**
 * The grammar of an incident's log. An attempt begins with `claimed` and `context_assembled`. A
 * turn consists of one `model_answered` (or `model_failed`), and of one `call_judged` for each
 * proposed call. A call that runs continues with `tool_started`, any `tool_output`, and
 * `tool_finished`. A call that people are asked about continues with the rows of its approval and
 * another `call_judged`. `verification` follows a write. An attempt ends with `resolved`,
 * `escalated` or `cancelled`. A person's own write begins with `change_requested`, and a turn takes
 * its call from that row. Reads that code makes for a follower come after the calls of a turn
 * (`isCallOfCode`).
 */
export const eventKind = z.enum([
  'alert_received',
  'looked',
  'noted',
  'claimed',
  'context_assembled',
  'model_answered',
  'model_failed',
  'correction_sent',
  'call_judged',
  'tool_started',
  'tool_output',
  'tool_finished',
  'step_started',
  'step_finished',
  'verification',
  'approval_requested',
  'approval_decided',
  'approval_expired',
  'approval_withdrawn',
  'grant_used',
  'hint_confirmed',
  'hint_diverged',
  'budget_ended',
  'security_event',
  'resolved',
  'escalated',
  'cancelled',
  'capability_gap',
  'commented',
  'notified',
  'change_requested',
  'change_reviewed',
  'graded',
])
export type EventKind = z.infer<typeof eventKind>

/** Actions of log rows, by which the timeline and older consumers filter. */
export const eventAction = z.enum([
  'investigated',
  'attempted_fix',
  'fix_succeeded',
  'fix_failed',
  'resolved',
  'escalated',
  'cancelled',
  'capability_gap',
  'commented',
])
export type EventAction = z.infer<typeof eventAction>

/** Actions that a model may record through `add_incident_event`. */
export const recordableAction = eventAction.exclude(['resolved', 'cancelled'])

export const agentActor = 'agent:incident-investigator'
export const systemActor = 'system:nightshift'

/**
 * A row of an incident's log as it is stored, exported and streamed. `at`: UTC with microseconds,
 * exactly as the row was hashed.
 */
export type IncidentEvent<K extends EventKind = EventKind> = {
  [P in K]: {
    id: string
    incidentId: string
    attempt: number
    seq: number
    stepKey: string | null
    turn: number | null
    kind: P
    action: EventAction
    actor: string
    detail: string
    metadata: EventMetadata[P]
    at: string
    prevHash: string
    hash: string
  }
}[K]

/** The input of `append()`, which sets the number, time and hash of the new row itself. */
export type NewEvent<K extends EventKind = EventKind> = {
  [P in K]: {
    kind: P
    actor: string
    detail: string
    metadata: EventMetadata[P]
    turn?: number | null
    stepKey?: string | null
    action?: EventAction
  }
}[K]
