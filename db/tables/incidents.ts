import type { ColumnType, Generated, Selectable } from 'kysely'
import type { Alert, AlertLinks } from '../../domain/alert.ts'
import type { ClosedBy, EscalationCategory, ResolveOutcome } from '../../domain/incident.ts'
import type { PostmortemEdit } from '../../domain/postmortem.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

type AlertTable = {
  id: string
  source: string
  fingerprint: string
  /** `unknown`: nobody knows whether it goes on. */
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
  /** The sender gave `startsAt`; else it is the time of receipt. */
  startGiven: Generated<boolean>
  /** Bodies that carried this very start. */
  startSeen: Generated<number>
  startReceivedAt: Time
  /** When the body that ended it came in. */
  endReceivedAt: NullableTime
  unknownSince: NullableTime
  unknownWhy: 'crowd' | 'stale' | 'foreign' | 'unproven' | null
  /** The opener's token name; null where unknown. */
  sender: string | null
  /** The sender that ended it, where that is another one. */
  endedBy: string | null
  /** Its sender's word for an end that proves nothing. */
  endReason: string | null
  /** The newest word for its state that nobody knows. */
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
  /** How it was resolved; null while it is open, and for what version 0.1 closed. */
  outcome: ResolveOutcome | null
  /** Why it was escalated, in a closed word. */
  category: EscalationCategory | null
  closedBy: ClosedBy | null
  /** After a repair: until then its firing alert is given time to end. */
  watchUntil: NullableTime
  repairConfirmedAt: NullableTime
  cancelledUntil: NullableTime
  remindedAt: NullableTime
  ownerId: string | null
  ownedAt: NullableTime
  /** Why it is not investigated unless a person asks. */
  keptReason: string | null
  previousId: string | null
  expectationId: string | null
  lookWanted: 'watch' | 'expected' | 'crowd' | null
  lookWantedAt: NullableTime
  /** When the watchdog decides about it next. */
  checkAt: NullableTime
  /** Done by an admin alone, and nobody else has reviewed it yet. */
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

/** A body with more alerts than one answer takes in. */
type WaitingBodyTable = {
  id: Generated<number>
  dialect: string
  sender: string
  alerts: number
  parts: number
  /** Tries of its next part that failed. */
  failures: Generated<number>
  /** Alerts of it that could not be stored. */
  refused: Generated<number>
  nextAt: Deadline
  receivedAt: Time
  /** When a part of it was taken up last. */
  takenAt: NullableTime
  /** Everything of it is taken up. */
  endedAt: NullableTime
}

type SnsTopicTable = {
  id: Generated<number>
  arn: string
  /** What asks SNS for the subscription; null: nothing waits. */
  subscribeUrl: string | null
  confirmedAt: NullableTime
  confirmedBy: string | null
  askedAt: Deadline
}

/** What came in, what is made of it, and the log of it. */
export type IncidentTables = {
  alert: AlertTable
  waitingBody: WaitingBodyTable
  /** Cleansed alerts in order, until they are taken up; `keys`: their senders and fingerprints. */
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
  /** Work that is left after an incident ended as mitigated. */
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
  /** What a person wrote of some sections, a row a version. */
  postmortemEdit: {
    incidentId: string
    version: number
    sections: Json<PostmortemEdit['sections']>
    operatorId: string
    at: Time
  }
  resultBody: { digest: string; bytes: Buffer; createdAt: Time }
  /** Incidents of which Temporal had no open run when it was asked. */
  runMissed: { incidentId: string; attempt: number; missedAt: Time }
  /** What a run waits for, noted at each of its tries. */
  runWait: { incidentId: string; attempt: number; waitsFor: 'core_api' | 'database'; since: Time; seenAt: Time }
}

export type ExpectationRow = Selectable<ExpectationTable>
export type AlertRow = Selectable<AlertTable>
export type IncidentRow = Selectable<IncidentTable>
export type IncidentEventRow = Selectable<IncidentEventTable>
