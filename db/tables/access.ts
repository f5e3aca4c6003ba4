import type { ColumnType, Generated } from 'kysely'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

/** People and tokens: rights, credentials, and actions. */
export type AccessTables = {
  operator: {
    id: string
    name: string
    role: 'viewer' | 'operator' | 'approver' | 'admin'
    createdAt: Time
    /** The highest risk that this person may decide. */
    maxRisk: Generated<'none' | 'low' | 'medium' | 'high' | 'critical'>
    /** Null stands for incidents of all types. */
    incidentTypes: ColumnType<string[] | null, string | null | undefined, string | null>
    /** Further rights as text, as `domain/decision-right.ts` reads them. */
    rights: ColumnType<string[], string | undefined, string>
    disabledAt: NullableTime
    /** The person's identity provider; null for a person who was created in Nightshift. */
    issuer: ColumnType<string | null, string | null | undefined, never>
    subject: ColumnType<string | null, string | null | undefined, never>
    slackUserId: string | null
    pagerdutyUserId: string | null
  }
  apiToken: {
    id: string
    name: string
    prefix: string
    /** `sign_in`: the token stands for browser sessions, and was never given to anybody. */
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
  /** A person's browser: its address at a push service, and the keys that encrypt messages. */
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
    /**
     * Set by the database at each insert, like `prevHash` and `hash`. Numbers begin at 1 and have
     * no gaps.
     */
    seq: ColumnType<number, never, never>
    prevHash: ColumnType<string, never, never>
    hash: ColumnType<string, never, never>
  }
  auditHead: { id: ColumnType<number, never, never>; seq: number; hash: string }
}
