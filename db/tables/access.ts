import type { ColumnType, Generated } from 'kysely'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

/** People and tokens: who may do what, how they show who they are, and what they did. */
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
    /** Further rights in words, as `domain/decision-right.ts` reads them. */
    rights: ColumnType<string[], string | undefined, string>
    disabledAt: NullableTime
    /** The provider's person; null for people made here. */
    issuer: ColumnType<string | null, string | null | undefined, never>
    subject: ColumnType<string | null, string | null | undefined, never>
    slackUserId: string | null
    pagerdutyUserId: string | null
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
