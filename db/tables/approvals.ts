import type { ColumnType, Generated, JSONColumnType, Selectable } from 'kysely'
import type { TokenPurpose } from '../../domain/approval.ts'
import type { Preparation } from '../../domain/tool.ts'
import type { TrustCause, TrustLevel } from '../../domain/trust.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

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
  /** A person's edit of the arguments before approving: the call is judged and asked with it. */
  edited: ColumnType<Record<string, unknown> | null, unknown, unknown>
  editedBy: string | null
  /** Reminders that went out: at half its life, at nine tenths. */
  reminded: Generated<number>
  /** The first approval of a shared card, its own id on that one; null where it was asked alone. */
  askedWith: ColumnType<string | null, string | null | undefined, string>
  /** False while an earlier call of its card is asked: then nobody is notified of this one. */
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
    /** For a denial: the time from which it bars nothing. */
    askAgainAt: NullableTime
  }
  /** People to whom the site's list put the question, in order. */
  approvalAsked: { approvalId: string; step: number; operatorId: string; at: Time }
  /** Questions of a night with a budget: whether each woke somebody, or waits for the card. */
  questionWake: { approvalId: string; wakes: boolean; at: Time }
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
  /** Every level that a pair was given; the newest is in force. Never changed. */
  trustChange: {
    id: Generated<number>
    tx: Generated<string>
    at: Time
    incidentType: string
    tool: string
    level: TrustLevel
    cause: TrustCause
    setBy: string | null
    /** The repair that lost it. */
    incidentId: string | null
  }
  /** Kinds of write that people stopped. Why stands in the audit of the same transaction. */
  trustStop: {
    id: string
    tx: Generated<string>
    at: Time
    incidentType: string
    /** Null: every tool that writes. */
    tool: string | null
    resourceKind: string | null
    resourceId: string | null
    /** Null: until somebody resumes it. */
    until: NullableTime
    setBy: string
    endedAt: NullableTime
    endedBy: string | null
  }
  decisionToken: {
    sha256: string
    approvalId: string
    operatorId: string
    createdAt: Time
    expiresAt: Deadline
    /** Null in those that version 0.1.0 minted: good for either. */
    decision: 'approve' | 'deny' | null
    /** Null in those that version 0.2.0 or an older one minted. */
    purpose: TokenPurpose | null
    /** Digest of the decision that it carries; null where it carries the verdict alone. */
    binds: string | null
    usedAt: NullableTime
    /** What it was spent for: a verdict, `edit`, or why it is void. */
    usedFor: string | null
    /** Digest of the request that spent it, and what that came to. */
    request: string | null
    outcome: ColumnType<{ status: ApprovalRow['status'] } | null, string | null, string | null>
  }
}

export type ApprovalRow = Selectable<ApprovalTable>
