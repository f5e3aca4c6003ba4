import type { ColumnType, Generated, JSONColumnType, Selectable } from 'kysely'
import type { DeviceTerms, Guests } from '../domain/device.ts'
import type { Manifest, MeshHealth, MeshMode } from '../domain/mesh.ts'
import type { Obstacle, Plan, Proof, Standing } from '../domain/placement.ts'

/** Times are RFC 3339 UTC text with microseconds: `connect()` installs the parser, so that no precision is lost. */
type Time = ColumnType<string, string | undefined, string>
type NullableTime = ColumnType<string | null, string | null | undefined, string | null>
type Json<T> = ColumnType<T, string, string>
type JsonOrDefault<T> = ColumnType<T, string | undefined, string>

export type AlertTable = {
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

export type IncidentTable = {
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

export type IncidentEventTable = {
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

export type ApprovalTable = {
  id: string
  incidentId: string
  attempt: number
  callId: string
  tool: string
  args: Json<Record<string, unknown>>
  targets: Json<{ kind: string; id: string }[]>
  reason: string
  actionDigest: string
  stateFingerprint: string
  risk: string
  reversible: boolean
  required: number
  dryRun: JSONColumnType<{ possible: boolean; summary: string; details: Record<string, unknown> }>
  status: Generated<'pending' | 'approved' | 'denied' | 'expired' | 'withdrawn' | 'consumed'>
  requestedAt: Time
  expiresAt: ColumnType<string, unknown, unknown>
  decidedAt: NullableTime
  useBy: NullableTime
  /** When the workflow last read a decision: one unread for a minute is woken again. */
  readAt: NullableTime
  /** What a person made of the arguments before approving: the call is judged and asked anew with them. */
  edited: ColumnType<Record<string, unknown> | null, unknown, unknown>
  editedBy: string | null
  /** Reminders that went out: at half its life, at nine tenths. */
  reminded: Generated<number>
}

export type Database = {
  alert: AlertTable
  incident: IncidentTable
  incidentEvent: IncidentEventTable
  resultBody: { digest: string; bytes: Buffer; createdAt: Time }
  approval: ApprovalTable
  approvalDecision: {
    approvalId: string
    operatorId: string
    decision: 'approve' | 'deny'
    reason: string | null
    category: 'wrong_target' | 'too_risky' | 'wrong_time' | 'need_evidence' | 'other' | null
    via: string
    at: Time
  }
  standingGrant: {
    id: string
    approvalId: string
    tool: string
    actionDigest: string
    stateFingerprint: string
    targets: Json<{ kind: string; id: string }[]>
    uses: number
    usesLeft: number
    grantedBy: string
    grantedAt: Time
    expiresAt: ColumnType<string, unknown, unknown>
    revokedAt: NullableTime
  }
  decisionToken: {
    sha256: string
    approvalId: string
    operatorId: string
    createdAt: Time
    expiresAt: ColumnType<string, unknown, unknown>
    usedAt: NullableTime
    usedFor: string | null
  }
  operator: {
    id: string
    name: string
    role: 'viewer' | 'operator' | 'approver' | 'admin'
    createdAt: Time
    /** The riskiest action this person decides about. */
    maxRisk: Generated<'none' | 'low' | 'medium' | 'high' | 'critical'>
    /** Null: incidents of all types. */
    incidentTypes: ColumnType<string[] | null, string | null | undefined, string | null>
    disabledAt: NullableTime
    /** Whom a provider vouches for, and as whom; null for people who were made here. */
    issuer: ColumnType<string | null, string | null | undefined, never>
    subject: ColumnType<string | null, string | null | undefined, never>
    slackUserId: string | null
  }
  attempt: { subject: string; count: number; resetsAt: ColumnType<string, unknown, unknown> }
  audit: {
    id: Generated<number>
    at: Time
    who: string
    what: string
    subject: string
    detail: string
    address: string | null
  }
  apiToken: {
    id: string
    name: string
    prefix: string
    /** `sign_in`: made for sessions, held by nobody. */
    kind: Generated<'token' | 'sign_in'>
    sha256: string
    role: 'viewer' | 'operator' | 'approver' | 'admin' | 'agent' | 'ingest'
    operatorId: string | null
    scopes: Json<string[]>
    createdAt: Time
    expiresAt: NullableTime
    lastUsedAt: NullableTime
    revokedAt: NullableTime
  }
  session: {
    sha256: string
    tokenId: string
    createdAt: Time
    expiresAt: ColumnType<string, unknown, unknown>
  }
  signInCode: {
    sha256: string
    tokenId: string
    createdAt: Time
    expiresAt: ColumnType<string, unknown, unknown>
    usedAt: NullableTime
  }
  effect: {
    key: string
    incidentId: string | null
    tool: string
    actionDigest: string
    status: 'running' | 'done' | 'failed' | 'indeterminate'
    detail: Generated<string>
    result: Json<Record<string, unknown>>
    startedAt: Time
    finishedAt: NullableTime
  }
  platformEffect: {
    key: string
    action: 'start' | 'migrate' | 'await'
    vmId: string
    node: string
    target: string
    tasksBefore: Json<string[]>
    task: string | null
    status: 'done' | 'failed' | null
    detail: string | null
    begunAt: Time
  }
  device: {
    id: string
    resourceKind: 'node' | 'host' | 'vm'
    resourceId: string
    url: string
    urlEnv: string | null
    mode: MeshMode
    guests: Guests | null
    timeoutSeconds: number
    toolsAllowed: Json<string[]>
    enabled: Generated<boolean>
    terms: Json<DeviceTerms>
    manifestDays: number
    manifest: ColumnType<Manifest | null, undefined, string>
    manifestExpiresAt: NullableTime
    /** Of the secret by which the device fetches its next manifest. */
    refreshSha256: ColumnType<string | null, undefined, string | null>
    health: ColumnType<MeshHealth | null, undefined, string | null>
    healthProblem: ColumnType<string | null, undefined, string | null>
    healthAt: NullableTime
    createdAt: Time
    enrolledAt: NullableTime
    revokedAt: NullableTime
  }
  deviceEnrolment: {
    sha256: string
    deviceId: string
    createdBy: string
    createdAt: Time
    expiresAt: ColumnType<string, unknown, unknown>
    usedAt: NullableTime
  }
  meshKey: {
    id: string
    publicKey: string
    knownSince: Time
    signingSince: NullableTime
    notAfter: NullableTime
  }
  deviceCall: {
    key: string
    requestId: string
    deviceId: string
    incidentId: string | null
    callId: string | null
    capability: string
    argsDigest: string
    rehearse: boolean
    grantId: string | null
    authority: string | null
    begunAt: Time
    finishedAt: NullableTime
    ok: boolean | null
    errorCode: string | null
    approvalStatus: string | null
    auditHash: string | null
    truncated: boolean | null
    durationMs: number | null
  }
  targetLease: { target: string; incidentId: string; attempt: number; callId: string; since: Time }
  idempotency: {
    tokenId: string
    route: string
    key: string
    bodyDigest: string
    status: number | null
    response: Json<unknown> | null
    createdAt: Time
  }
  proposal: {
    id: string
    incidentId: string | null
    intent: string
    hostIds: Json<string[]>
    state: string
    migrations: number
    steps: Json<unknown>
    lowerBound: Generated<number>
    fromInventory: Generated<boolean>
    proof: JsonOrDefault<Proof>
    unplaced: JsonOrDefault<Plan['unplaced']>
    obstacle: Json<Obstacle | null> | null
    standing: Json<Standing | null> | null
    reason: string | null
    planDigest: string
    stateFingerprint: string
    problem: Json<unknown>
    createdAt: Time
  }
  platformConfig: {
    key: string
    value: string
    version: Generated<number>
    updatedAt: Time
    updatedBy: Generated<string>
    reason: string | null
  }
  platformConfigRevision: {
    id: Generated<number>
    key: string
    version: number
    oldValue: string | null
    newValue: string | null
    actor: string | null
    reason: string | null
    at: Time
  }
  delivery: {
    id: Generated<number>
    messageId: string
    destination: string
    incidentId: string
    notification: Json<unknown>
    attempt: number
    status: Generated<'pending' | 'sending' | 'sent' | 'failed' | 'dropped'>
    responseStatus: number | null
    response: string | null
    nextAt: ColumnType<string, unknown, unknown>
    leasedUntil: ColumnType<string | null, unknown, unknown>
    finishedAt: NullableTime
    createdAt: Time
  }
  slackChannel: { channel: string; active: boolean; readyAt: ColumnType<string, unknown, unknown> }
  slackThread: { incidentId: string; channel: string | null; ts: string | null; posted: Generated<boolean> }
  slackCard: { approvalId: string; channel: string | null; ts: string | null }
  slackRequest: { signature: string; receivedAt: Time }
  region: { id: string }
  shard: { id: string; region: string; role: string; status: Generated<string>; config: Json<Record<string, unknown>> }
  node: {
    id: string
    shard: string
    region: string
    role: string
    hostname: string
    ip: string
    status: Generated<string>
    reason: string | null
    replicationLagSeconds: number | null
    diskUsedBytes: number | null
    diskQuotaBytes: number | null
    diskByDirectory: Json<Record<string, number>>
  }
  tenant: { id: string; name: string; shard: string; status: Generated<string> }
  host: { id: string; region: string; rack: string; state: string; ramMib: number; cpuMc: number }
  vm: {
    id: string
    host: string | null
    running: boolean
    ramMib: number
    cpuMc: number
    haGroup: string | null
    priority: Generated<number>
    pinnedTo: JsonOrDefault<string[]>
    forbiddenHosts: JsonOrDefault<string[]>
    affinityGroup: string | null
    tenant: string | null
  }
  link: { a: string; b: string; cost: number; up: boolean }
  inventorySync: { onlyRow: Generated<boolean>; at: Time }
}

export type IncidentRow = Selectable<IncidentTable>
export type AlertRow = Selectable<AlertTable>
export type ApprovalRow = Selectable<ApprovalTable>
export type IncidentEventRow = Selectable<IncidentEventTable>
