import type { ColumnType, Generated, Selectable } from 'kysely'
import type { Alert, AlertLinks } from '../../domain/alert.ts'
import type { ClosedBy, EscalationCategory, ResolveOutcome } from '../../domain/incident.ts'
import type { PostmortemEdit } from '../../domain/postmortem.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

type AlertTable = {
  id: string
  source: string
  fingerprint: string
  /** `unknown`: nobody knows whether the alert still fires. */
  status: 'firing' | 'resolved' | 'unknown'
  name: string
  labels: Json<Record<string, string>>
  annotations: Json<Record<string, string>>
  links: Json<AlertLinks>
  groupKey: string | null
  startsAt: ColumnType<string, string, string>
  endsAt: NullableTime
  count: Generated<number>
  firstSeenAt: Time
  lastSeenAt: Time
  incidentId: string | null
  raw: Json<unknown>
  /** Whether the sender gave `startsAt`. Otherwise it is the time of receipt. */
  startGiven: Generated<boolean>
  /** How many request bodies reported the alert with this start. */
  startSeen: Generated<number>
  startReceivedAt: Time
  /** The time at which the request that reported the end was received. */
  endReceivedAt: NullableTime
  unknownSince: NullableTime
  unknownWhy: 'crowd' | 'stale' | 'foreign' | 'unproven' | null
  /** The name of the token that opened the alert; null if unknown. */
  sender: string | null
  /** The sender that ended the alert, if another sender opened the alert. */
  endedBy: string | null
  /** The sender's word for an end of the alert that proves nothing. */
  endReason: string | null
  /** The sender's newest word for a state of the alert that Nightshift does not know. */
  stateWord: string | null
}

type IncidentTable = {
  id: string
  type: string
  severity: 'critical' | 'warning' | 'info'
  severitySource: Generated<'alert' | 'default' | 'person'>
  status: Generated<'open' | 'investigating' | 'awaiting_approval' | 'resolved' | 'escalated' | 'cancelled'>
  title: string
  resourceKind: string | null
  resourceId: string | null
  assignedTo: string | null
  attempt: Generated<number>
  role: 'leader' | 'follower' | null
  groupId: string | null
  queuedAt: NullableTime
  requestedBy: string | null
  resolution: string | null
  timeBudgetSeconds: Generated<number>
  createdAt: Time
  updatedAt: Time
  lastEventAt: Time
  closedAt: NullableTime
  reopened: Generated<number>
  nextSeq: Generated<number>
  headHash: Generated<string>
  /** The outcome of the incident. Null while it is open, and if version 0.1 closed it. */
  outcome: ResolveOutcome | null
  /** Why the incident was escalated, as a fixed code. */
  category: EscalationCategory | null
  closedBy: ClosedBy | null
  /** The end of the watch after a repair, until which the alert may still fire. */
  watchUntil: NullableTime
  repairConfirmedAt: NullableTime
  cancelledUntil: NullableTime
  remindedAt: NullableTime
  ownerId: string | null
  ownedAt: NullableTime
  /** Why the incident is investigated only if a person requests it; otherwise null. */
  keptReason: string | null
  previousId: string | null
  expectationId: string | null
  lookWanted: 'watch' | 'expected' | 'crowd' | null
  lookWantedAt: NullableTime
  /** The time at which the watchdog next decides about the incident. */
  checkAt: NullableTime
  /** Since when a write that an admin did alone waits for a review; null if no write waits. */
  reviewWantedAt: NullableTime
}

type HeartbeatTable = {
  source: string
  fingerprint: string
  name: string
  labels: Json<Record<string, string>>
  firstSeenAt: Time
  lastSeenAt: Time
  sights: Generated<number>
  longestGapSeconds: Generated<number>
  stoppedAt: NullableTime
}

type ExpectationTable = {
  id: string
  subject: 'alert' | 'resource' | 'type'
  source: string | null
  fingerprint: string | null
  resourceKind: string | null
  resourceId: string | null
  type: string | null
  until: ColumnType<string, string, string>
  reason: string
  state: Json<Record<string, unknown>>
  createdBy: string
  createdAt: Time
  endedBy: string | null
  endedAt: NullableTime
}

type IncidentEventTable = {
  id: Generated<number>
  tx: Generated<string>
  incidentId: string
  attempt: number
  seq: number
  stepKey: string | null
  turn: number | null
  kind: string
  action: string
  actor: string
  detail: string
  metadata: Json<unknown>
  at: ColumnType<string, string, never>
  prevHash: string
  hash: string
}

/** A request body with too many alerts to process while the sender waits. */
type WaitingBodyTable = {
  id: Generated<number>
  dialect: string
  sender: string
  alerts: number
  parts: number
  /** How often processing the body's next part has failed. */
  failures: Generated<number>
  /** How many of the body's alerts could not be stored. */
  refused: Generated<number>
  nextAt: Deadline
  receivedAt: Time
  /** The time at which a part of the body was last processed. */
  takenAt: NullableTime
  /** The time at which the whole body was processed. */
  endedAt: NullableTime
}

type SnsTopicTable = {
  id: Generated<number>
  arn: string
  /** The address that confirms the subscription; null if no confirmation is needed. */
  subscribeUrl: string | null
  confirmedAt: NullableTime
  confirmedBy: string | null
  askedAt: Deadline
}

/** Received alerts, their incidents, and the log. */
export type IncidentTables = {
  alert: AlertTable
  waitingBody: WaitingBodyTable
  /**
   * Alerts without secrets, in order, until they are processed. `keys`: senders and fingerprints of
   * the alerts.
   */
  waitingPart: { bodyId: number; part: number; alerts: Json<Alert[]>; keys: string[] }
  refusedBody: {
    sender: string
    hour: Time
    count: Generated<number>
    dialect: string
    code: string
    reason: string
    lastAt: Time
  }
  snsTopic: SnsTopicTable
  heartbeat: HeartbeatTable
  incident: IncidentTable
  incidentEvent: IncidentEventTable
  expectation: ExpectationTable
  /** Work that remains after an incident ended as mitigated. */
  followUp: {
    incidentId: string
    ownerId: string | null
    ownerGroup: ColumnType<string | null, string | null | undefined, string | null>
    dueOn: string
    createdAt: Time
    closedAt: NullableTime
    closedBy: ColumnType<string | null, string | null | undefined, string | null>
  }
  digest: { destination: string; sentAt: ColumnType<string, string, string> }
  /** Texts that people wrote for sections of a postmortem, one row for each version. */
  postmortemEdit: {
    incidentId: string
    version: number
    sections: Json<PostmortemEdit['sections']>
    operatorId: string
    at: Time
  }
  resultBody: { digest: string; bytes: Buffer; createdAt: Time }
  /** Incidents for which Temporal had no open run when it was checked. */
  runMissed: { incidentId: string; attempt: number; missedAt: Time }
  /** The service that a run waits for, recorded at each attempt of a step. */
  runWait: { incidentId: string; attempt: number; waitsFor: 'core_api' | 'database'; since: Time; seenAt: Time }
}

export type ExpectationRow = Selectable<ExpectationTable>
export type AlertRow = Selectable<AlertTable>
export type IncidentRow = Selectable<IncidentTable>
export type IncidentEventRow = Selectable<IncidentEventTable>
