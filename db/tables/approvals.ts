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
  /**
   * The last time at which the workflow read the approval's decision. If a decision is unread for a
   * minute, the workflow is woken.
   */
  readAt: NullableTime
  /**
   * The arguments as a person changed them before approving. The policy check and the next question
   * use them.
   */
  edited: ColumnType<Record<string, unknown> | null, unknown, unknown>
  editedBy: string | null
  /** How many reminders were sent: one at half of the time to decide, and one at nine tenths. */
  reminded: Generated<number>
  /**
   * The id of the first approval on a card with several approvals; on the first approval it is its
   * own id. Null if the card has one approval.
   */
  askedWith: ColumnType<string | null, string | null | undefined, string>
  /**
   * False while an earlier call of the card is pending, so that nobody is notified of this call
   * yet.
   */
  announced: Generated<boolean>
}

/** Questions to people, people's answers, and the grants that people gave beforehand. */
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
    /** The end of a denial that is valid only for some time. */
    askAgainAt: NullableTime
  }
  /** People who were asked one after another, in the order of the configured list. */
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
  /** Every level that a pair had. The newest level is in force. Rows are never changed. */
  trustChange: {
    id: Generated<number>
    tx: Generated<string>
    at: Time
    incidentType: string
    tool: string
    level: TrustLevel
    cause: TrustCause
    setBy: string | null
    /** The incident whose repair caused the loss of trust. */
    incidentId: string | null
  }
  /**
   * Kinds of write that people stopped. The reason is in the audit entry of the stop's transaction.
   */
  trustStop: {
    id: string
    tx: Generated<string>
    at: Time
    incidentType: string
    /** The stopped tool. Null stands for every tool that writes. */
    tool: string | null
    resourceKind: string | null
    resourceId: string | null
    /** The end of the stop. Null if the stop lasts until somebody resumes the writes. */
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
    /** The token's decision. Null in tokens of version 0.1.0, which are valid for either one. */
    decision: 'approve' | 'deny' | null
    /** Null in tokens of version 0.2.0 or older. */
    purpose: TokenPurpose | null
    /** The digest of the decision that the token contains. Null if it contains only yes or no. */
    binds: string | null
    usedAt: NullableTime
    /** What used up the token: a decision, `edit`, or the reason why the token became invalid. */
    usedFor: string | null
    /** The digest of the request that used up the token, and its outcome. */
    request: string | null
    outcome: ColumnType<{ status: ApprovalRow['status'] } | null, string | null, string | null>
  }
}

export type ApprovalRow = Selectable<ApprovalTable>
