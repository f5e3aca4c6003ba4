import { sql } from 'kysely'
import type { Trx } from './connect.ts'

export type Person = { operatorId: string; actor: string; name: string }

/** The person whose wish to take it ended this attempt; null when nobody asked. */
export async function takerOf(trx: Trx, id: string, attempt: number): Promise<Person | null> {
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
