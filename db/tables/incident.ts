import type { ColumnType, Generated, Selectable } from 'kysely'
import type { Json, NullableTime, Time } from './column.ts'

type AlertTable = {
  id: string
  source: string
  fingerprint: string
  status: 'firing' | 'resolved'
  name: string
  labels: Json<Record<string, string>>
  annotations: Json<Record<string, string>>
  links: Json<{ generator: string | null; external: string | null; runbook: string | null }>
  groupKey: string | null
  startsAt: ColumnType<string, string, string>
  endsAt: NullableTime
  count: Generated<number>
  firstSeenAt: Time
  lastSeenAt: Time
  incidentId: string | null
  raw: Json<unknown>
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

/** What came in, what is made of it, and the log of it. */
export type IncidentTables = {
  alert: AlertTable
  incident: IncidentTable
  incidentEvent: IncidentEventTable
  resultBody: { digest: string; bytes: Buffer; createdAt: Time }
}

export type AlertRow = Selectable<AlertTable>
export type IncidentRow = Selectable<IncidentTable>
export type IncidentEventRow = Selectable<IncidentEventTable>
