import type { Generated } from 'kysely'
import type { Deadline, Time } from './column.ts'

/** Where Slack has what it was told, and what it asked. */
export type SlackTables = {
  slackChannel: { channel: string; active: boolean; readyAt: Deadline }
  slackThread: { incidentId: string; channel: string | null; ts: string | null; posted: Generated<boolean> }
  slackCard: { approvalId: string; channel: string | null; ts: string | null }
  slackRequest: { signature: string; receivedAt: Time }
}
