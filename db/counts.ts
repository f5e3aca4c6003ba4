import type { Db } from './connect.ts'
import { now } from './time.ts'

/** What is open now, by type and severity. */
export async function openIncidentCounts(db: Db) {
  return await db
    .selectFrom('incident')
    .select(['type', 'severity'])
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', 'in', ['open', 'investigating', 'awaiting_approval'])
    .groupBy(['type', 'severity'])
    .execute()
}

/** What people are asked now, by risk. */
export async function pendingApprovalCounts(db: Db) {
  return await db
    .selectFrom('approval')
    .select('risk')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', '=', 'pending')
    .where('expiresAt', '>', now)
    .groupBy('risk')
    .execute()
}
