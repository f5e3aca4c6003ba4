import { sql } from 'kysely'
import type { Db, Trx } from '../connect.ts'
import type { Person } from './close-incident.ts'

/**
 * Finds the person whose request to take the incident ended this attempt; null if there is none.
 */
export async function takeoverRequest(trx: Trx, id: string, attempt: number): Promise<Person | null> {
  const request = await trx
    .selectFrom('incidentEvent')
    .select('actor')
    .where('incidentId', '=', id)
    .where('attempt', '=', attempt)
    .where('kind', '=', 'commented')
    .where(sql<boolean>`metadata->>'action' = 'take_requested'`)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!request) return null
  const name = request.actor.replace(/^user:/, '')
  const operator = await trx.selectFrom('operator').select('id').where('name', '=', name).executeTakeFirst()
  return operator ? { operatorId: operator.id, actor: request.actor, name } : null
}

/**
 * Finds a person's request during this attempt to stop the attempt or to take the incident. Null
 * without a request.
 */
export async function stopRequest(
  db: Db | Trx,
  id: string,
  attempt: number,
): Promise<'cancel_requested' | 'take_requested' | null> {
  const wish = await db
    .selectFrom('incidentEvent')
    .select(sql<'cancel_requested' | 'take_requested'>`metadata->>'action'`.as('action'))
    .where('incidentId', '=', id)
    .where('attempt', '=', attempt)
    .where('kind', '=', 'commented')
    .where(sql<boolean>`metadata->>'action' in ('cancel_requested', 'take_requested')`)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return wish?.action ?? null
}
