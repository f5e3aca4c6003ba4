import type { ColumnType, Generated, JSONColumnType, Selectable } from 'kysely'
import type { PlatformEffect, PlatformEffectEnding } from '../../domain/platform.ts'
import type { EnvironmentVariable } from '../../domain/setting-row.ts'
import type { ModelProtocol } from '../../domain/status.ts'
import type { Preparation } from '../../domain/tool.ts'
import type { Deadline, Json, JsonOrDefault, NullableTime, Time } from '../tables.ts'

/** Who may do what, how they show who they are, and what they did. */
export type AccessTables = {
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
    expiresAt: Deadline
  }
  signInCode: {
    sha256: string
    tokenId: string
    createdAt: Time
    expiresAt: Deadline
    usedAt: NullableTime
  }
  pushKey: { publicKey: string; privateKey: string; createdAt: Time }
  /** A browser that is reached at its push service, with the keys to encrypt for it. */
  pushSubscription: {
    id: string
    operatorId: string
    endpoint: string
    p256dh: string
    auth: string
    name: string
    createdAt: Time
    lastSentAt: NullableTime
  }
  attempt: { subject: string; count: number; resetsAt: Deadline }
  audit: {
    id: Generated<number>
    at: Time
    who: string
    what: string
    subject: string
    detail: string
    address: string | null
    /** The database sets this and the two below at each insert; numbers are dense from 1. */
    seq: ColumnType<number, never, never>
    prevHash: ColumnType<string, never, never>
    hash: ColumnType<string, never, never>
  }
  auditHead: { id: ColumnType<number, never, never>; seq: number; hash: string }
}

/** What `/metrics` counts, once over all processes. */
export type MetricTables = {
  metricCounter: { name: string; labels: Json<Record<string, string>>; value: number }
  metricPosition: {
    id: Generated<number>
    tx: string
    rowId: number
    memory: Json<Record<string, unknown>>
    /** Who serves the model, as the worker's settings say. */
    provider: string
  }
  metricLabel: { label: string; value: string }
}

/** Settings that people change while it runs, and every value they had. */
export type ConfigTables = {
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
  /** What the worker that started last was started with: one row. */
  workerEnvironment: {
    singleton: Generated<boolean>
    variables: Json<EnvironmentVariable[]>
    startedAt: Generated<string>
  }
}

/** The servers of models: what was learned of each, and who asks them now. */
export type ModelTables = {
  modelProfile: {
    server: string
    model: string
    /** A `RequestShape`, as far as it differs from the plain one. */
    shape: JsonOrDefault<Record<string, unknown>>
    shapeAt: NullableTime
    identity: string | null
    windowTokens: number | null
    windowSource: string | null
    /** The smallest window that a refusal named. */
    refusedWindow: number | null
    cutsSilently: Generated<boolean>
    isProvisional: Generated<boolean>
    readAt: NullableTime
    /** What the server was seen to be able to do. */
    abilities: JsonOrDefault<Record<string, unknown>>
    /** It did not answer, and is left alone until then. */
    awayUntil: NullableTime
  }
  /** As LLM_SERVERS_FILE declares them, without keys. */
  declaredModel: {
    name: string
    server: string
    model: string
    fallbacks: JsonOrDefault<string[]>
    protocol: ModelProtocol | null
    place: number
    declaredAt: Generated<string>
  }
  /** Dollars by day (UTC); `assumed`: of them, for models that have no price. */
  modelSpend: { day: string; model: string; type: string; answers: number; cost: string; assumed: string }
  spendNotice: { period: string; percent: number; cap: string; at: Time }
  modelPassport: {
    server: string
    model: string
    grade: string
    /** A `Passport`. */
    measured: Json<unknown>
    measuredBy: string
    measuredAt: Time
  }
  modelSlot: {
    /** The run that thinks: one incident's attempt, which asks for one answer at a time. */
    holder: string
    server: string
    incidentId: string
    /** Smaller goes first. */
    rank: number
    askedAt: Time
    /** Null while it waits. */
    heldAt: NullableTime
    /** Of the try that uses it; null while it is kept for the run. */
    token: ColumnType<string | null, string | null | undefined, string | null>
    until: Deadline
  }
}

type ApprovalTable = {
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
  dryRun: JSONColumnType<Preparation['dryRun']>
  status: Generated<'pending' | 'approved' | 'denied' | 'expired' | 'withdrawn' | 'consumed'>
  requestedAt: Time
  expiresAt: Deadline
  decidedAt: NullableTime
  useBy: NullableTime
  /** When the workflow last read a decision: one unread for a minute is woken again. */
  readAt: NullableTime
  /** What a person made of the arguments before approving: the call is judged and asked again with them. */
  edited: ColumnType<Record<string, unknown> | null, unknown, unknown>
  editedBy: string | null
  /** Reminders that went out: at half its life, at nine tenths. */
  reminded: Generated<number>
  /** The first approval of those that share a card, its own id for that one; null where it was asked alone. */
  askedWith: ColumnType<string | null, string | null | undefined, string>
  /** False while an earlier call of its card is asked about: then nobody is notified of this one. */
  announced: Generated<boolean>
}

/** What people are asked, what they said, and what they allowed beforehand. */
export type ApprovalTables = {
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
    expiresAt: Deadline
    revokedAt: NullableTime
  }
  decisionToken: {
    sha256: string
    approvalId: string
    operatorId: string
    createdAt: Time
    expiresAt: Deadline
    /** Null in those that version 0.1.0 minted: good for either. */
    decision: 'approve' | 'deny' | null
    usedAt: NullableTime
    /** What it was spent for: a verdict, `edit`, or why it is void. */
    usedFor: string | null
    /** Digest of the request that spent it, and what that came to. */
    request: string | null
    outcome: ColumnType<{ status: ApprovalRow['status'] } | null, string | null, string | null>
  }
}

export type ApprovalRow = Selectable<ApprovalTable>

/** Writes that must happen once: under their key, and one at a time on a target. */
export type EffectTables = {
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
    action: PlatformEffect['action']
    vmId: string
    node: string
    target: string
    tasksBefore: Json<string[]>
    task: string | null
    status: PlatformEffectEnding['status'] | null
    detail: string | null
    begunAt: Time
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
}
