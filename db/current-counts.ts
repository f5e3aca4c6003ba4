import { sql } from 'kysely'
import { now, onceNow } from './clock.ts'
import type { Db } from './connect.ts'
import type { Scope } from './scope.ts'

/** Counts open incidents by type and severity. */
export async function openIncidentCounts(db: Db) {
  return await db
    .selectFrom('incident')
    .select(['type', 'severity'])
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', 'in', ['open', 'investigating', 'awaiting_approval'])
    .groupBy(['type', 'severity'])
    .execute()
}

/** Counts pending approvals by risk. */
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

/** Counts the incidents and approvals that wait now. */
export async function backlogOf({ db }: Scope) {
  const { rows } = await sql<{
    waiting: number
    oldestWaitingAt: string | null
    investigating: number
    awaitingApproval: number
    deliveries: number
    failedDeliveries: number
  }>`
    select
      (select count(*) from incident where status = 'open')::int as waiting,
      (select min(created_at) from incident where status = 'open') as oldest_waiting_at,
      (select count(*) from incident where status = 'investigating')::int as investigating,
      (select count(*) from incident where status = 'awaiting_approval')::int as awaiting_approval,
      (select count(*) from delivery where status in ('pending', 'sending'))::int as deliveries,
      (select count(*) from delivery where given_up_at > ${onceNow} - interval '1 day')::int as failed_deliveries`.execute(
    db,
  )
  return rows[0]!
}

/** Reads the model's last hour: counts of responses and failures, and the last of each. */
export async function modelHealth(db: Db) {
  const last = await db
    .selectFrom('incidentEvent')
    .select(['at'])
    .select(sql<string>`metadata->>'model'`.as('model'))
    .select(sql<number>`(metadata->>'durationMs')::float8`.as('durationMs'))
    .where('kind', '=', 'model_answered')
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst()
  const { rows } = await sql<{ answers: number; failures: number }>`
    select count(*) filter (where kind = 'model_answered')::int as answers,
      count(*) filter (where kind = 'model_failed')::int as failures
    from incident_event
    where kind in ('model_answered', 'model_failed') and at > ${onceNow} - interval '1 hour'`.execute(db)
  const failed = await db
    .selectFrom('incidentEvent')
    .select(['detail', 'at'])
    .where('kind', '=', 'model_failed')
    .where('at', '>', sql<string>`${onceNow} - interval '1 hour'`)
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return { last: last ?? null, lastHour: rows[0]!, lastFailure: failed ?? null }
}
