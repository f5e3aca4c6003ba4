import type { ColumnType, Generated } from 'kysely'
import type { DestinationSecrets } from '../../domain/destination.ts'
import type { ReleaseReason } from '../../domain/page-gate.ts'
import type { DestinationKind, Route } from '../../domain/route.ts'
import type { Deadline, Json, NullableTime, Time } from '../tables.ts'

/** Notifications, one row for each attempt to deliver. */
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
    /** The time after which no attempt follows, although the message reached nobody. */
    givenUpAt: NullableTime
    /** The time at which another destination was notified of the undelivered message. */
    toldElsewhereAt: NullableTime
    /** The latest time at which a delayed page is sent; null for other messages. Never changed. */
    holdUntil: ColumnType<string | null, string | null | undefined, never>
    releasedAt: ColumnType<string | null, unknown, unknown>
    releasedWhy: ReleaseReason | null
  }
  /** Vital parts that an API process found failed. */
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

/** Places of messages in Slack, and requests from Slack. */
export type SlackTables = {
  slackChannel: { channel: string; active: boolean; readyAt: Deadline }
  slackThread: { incidentId: string; channel: string | null; ts: string | null; posted: Generated<boolean> }
  slackCard: { approvalId: string; channel: string | null; ts: string | null }
  slackRequest: { signature: string; receivedAt: Time }
}
