import type { ColumnType, Generated } from 'kysely'
import type { DestinationSecrets } from '../../domain/destination.ts'
import type { ReleaseReason } from '../../domain/page-gate.ts'
import type { DestinationKind, Route } from '../../domain/route.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

/** Notifications, a row per attempt. */
export type DeliveryTables = {
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
    nextAt: Deadline
    leasedUntil: ColumnType<string | null, unknown, unknown>
    finishedAt: NullableTime
    createdAt: Time
    /** Nobody was reached, and nothing more is tried. */
    givenUpAt: NullableTime
    /** Another way has told of that. */
    toldElsewhereAt: NullableTime
    /** A page that waits leaves then at the latest; null for all else. Never written again. */
    holdUntil: ColumnType<string | null, string | null | undefined, never>
    releasedAt: ColumnType<string | null, unknown, unknown>
    releasedWhy: ReleaseReason | null
  }
  /** Duties that some API process found lost. */
  lostDuty: { name: string; since: Deadline; seenAt: Deadline; toldAt: NullableTime }
  outboxAddress: { address: string; readyAt: Generated<string> | Deadline }
  destination: {
    name: string
    kind: DestinationKind
    options: Json<object>
    secrets: Json<DestinationSecrets>
    route: Json<Route>
    enabled: boolean
    createdBy: string
    createdAt: Time
    updatedAt: Time
  }
}

/** Where Slack has what it was told, and what it asked. */
export type SlackTables = {
  slackChannel: { channel: string; active: boolean; readyAt: Deadline }
  slackThread: { incidentId: string; channel: string | null; ts: string | null; posted: Generated<boolean> }
  slackCard: { approvalId: string; channel: string | null; ts: string | null }
  slackRequest: { signature: string; receivedAt: Time }
}
