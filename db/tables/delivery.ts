import type { ColumnType, Generated } from 'kysely'
import type { Deadline, Json, NullableTime, Time } from './column.ts'

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
  }
}
