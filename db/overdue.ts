import { sql } from 'kysely'
import type { Db } from './connect.ts'

/** Of an approval: somebody may still decide it, or the run has not had the time to read what was decided. */
const answerable = sql<boolean>`(
  (approval.status = 'pending' and approval.expires_at > nightshift_now() - interval '2 minutes')
  or (approval.status <> 'pending' and approval.decided_at > nightshift_now() - interval '5 minutes'))`

export type Overdue = { incidentId: string; attempt: number; why: 'silent' | 'unexpired' }

/**
 * Running incidents that no run seems to carry: investigating without a row for twice their time budget, or waiting for a
 * person two minutes past the expiry.
 */
export async function overdueIncidents(db: Db): Promise<Overdue[]> {
  const silent = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'investigating')
    .where(sql<boolean>`last_event_at < nightshift_now() - make_interval(secs => 2 * time_budget_seconds)`)
    // A run in the line for the model says nothing else, and lives.
    .where(
      sql<boolean>`not exists (select from model_slot where incident_id = incident.id and until > nightshift_now())`,
    )
    .limit(100)
    .execute()
  const unexpired = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'awaiting_approval')
    // Each kind by its own key: one condition over both would go through all approvals for each that waits.
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('approval').select('id').whereRef('incidentId', '=', 'incident.id').where(answerable))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('incidentEvent as joined')
            .innerJoin('approval', 'approval.id', sql<string>`joined.metadata->>'approvalId'` as never)
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

/** Lets members of a dead group go: queued for this long and claimed by nobody, they are stamped again by the next tick. */
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
