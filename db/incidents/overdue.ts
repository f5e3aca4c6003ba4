import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import type { Db } from '../connect.ts'
import { append } from '../log/append.ts'
import { lockIncident } from './incidents.ts'

/** Approvals that a person may still decide, or whose decision the run has had no time to read. */
const answerable = sql<boolean>`(
  (approval.status = 'pending' and approval.expires_at > nightshift_now() - interval '2 minutes')
  or (approval.status <> 'pending' and approval.decided_at > nightshift_now() - interval '5 minutes'))`

export type Overdue = { incidentId: string; attempt: number; why: 'silent' | 'unexpired' }

/**
 * Lists incidents that are being investigated but apparently have no run: there was no new row for
 * twice the time budget, or the incident still waits two minutes after the approval expired.
 */
export async function overdueIncidents(db: Db): Promise<Overdue[]> {
  const silent = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'investigating')
    .where(sql<boolean>`last_event_at < nightshift_now() - make_interval(secs => 2 * time_budget_seconds)`)
    // Excludes a run that waits for the model, because this run exists but writes no rows.
    .where(
      sql<boolean>`not exists (select from model_slot where incident_id = incident.id and until > nightshift_now())`,
    )
    .limit(100)
    .execute()
  const unexpired = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'awaiting_approval')
    // Checks each kind of wait by its own key. One condition for both kinds would read all
    // approvals for each incident.
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('approval').select('id').whereRef('incidentId', '=', 'incident.id').where(answerable))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('incidentEvent as joined')
            .innerJoin('approval', (join) => join.on('approval.id', '=', sql<string>`joined.metadata->>'approvalId'`))
            .select('approval.id')
            .whereRef('joined.incidentId', '=', 'incident.id')
            .whereRef('joined.attempt', '=', 'incident.attempt')
            .where('joined.kind', '=', 'call_judged')
            .where(answerable),
        ),
      ),
    )
    .limit(100)
    .execute()
  return [
    ...silent.map((row) => ({ incidentId: row.id, attempt: row.attempt, why: 'silent' as const })),
    ...unexpired.map((row) => ({ incidentId: row.id, attempt: row.attempt, why: 'unexpired' as const })),
  ]
}

/**
 * Releases incidents of a group whose workflow ended: incidents that were assigned at least
 * `afterSeconds` ago and not claimed. The next tick assigns them again.
 */
export async function releaseStranded(db: Db, afterSeconds: number): Promise<number> {
  const released = await db
    .updateTable('incident')
    .set({ groupId: null, queuedAt: null })
    .where('status', '=', 'open')
    .where('groupId', 'is not', null)
    .where('queuedAt', '<', sql<string>`nightshift_now() - make_interval(secs => ${afterSeconds})`)
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('incident as other')
            .select('other.id')
            .whereRef('other.groupId', '=', 'incident.groupId')
            .where('other.status', 'in', ['investigating', 'awaiting_approval']),
        ),
      ),
    )
    .returning('id')
    .execute()
  return released.length
}

/** Counts an attempt without rows as made. False if the incident no longer waits for it. */
export async function useUpAttempt(db: Db, incidentId: string, attempt: number): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.status !== 'open' || row.assignedTo !== null || row.attempt !== attempt - 1) return false
    await trx.updateTable('incident').set({ attempt }).where('id', '=', incidentId).execute()
    const text = `Attempt ${attempt} is skipped: Temporal knows a run of it that is not in this log`
    const metadata = { code: 'attempt_skipped' as const, text }
    await append(trx, incidentId, null, { kind: 'noted', actor: systemActor, detail: text, metadata })
    return true
  })
}

/** Seconds after which a read is requested again, because its worker has probably died. */
export const leaseSeconds = 30
