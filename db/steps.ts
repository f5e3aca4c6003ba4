import { sql } from 'kysely'
import type { IncidentEvent } from '../domain/event.ts'
import type { Db } from './connect.ts'

/** The plan behind an effect, as `result` names it while it runs. Null for an effect that is one write. */
export async function planOfEffect(db: Db, key: string): Promise<string | null> {
  const row = await db.selectFrom('effect').select(['result', 'tool']).where('key', '=', key).executeTakeFirst()
  const proposalId = row?.result.proposalId
  return row?.tool === 'execute_migration' && typeof proposalId === 'string' ? proposalId : null
}

/** Notes, while an effect runs, which plan it carries out: a later reconciliation finds the steps' keys by that. */
export async function notePlanOfEffect(db: Db, key: string, proposalId: string): Promise<void> {
  await db
    .updateTable('effect')
    .set({ result: JSON.stringify({ proposalId }) })
    .where('key', '=', key)
    .where('status', '=', 'running')
    .execute()
}

/** Has somebody stopped the run that announced this call, or closed its incident? */
export async function cancelAsked(db: Db, { incidentId, attempt }: IncidentEvent<'tool_started'>): Promise<boolean> {
  const closed = await db
    .selectFrom('incident')
    .select('id')
    .where('id', '=', incidentId)
    .where((where) =>
      where.or([where('status', 'in', ['resolved', 'escalated', 'cancelled']), where('attempt', '!=', attempt)]),
    )
    .executeTakeFirst()
  if (closed) return true
  const asked = await db
    .selectFrom('incidentEvent')
    .select('id')
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('kind', '=', 'commented')
    .where(sql<boolean>`metadata->>'action' = 'cancel_requested'`)
    .executeTakeFirst()
  return asked !== undefined
}
