import type { IncidentEvent } from '../domain/event.ts'
import type { Db, Trx } from './connect.ts'
import { wasJudged } from './effects.ts'
import { eventByStepKey } from './events.ts'

/** The `tool_started` row that announces this very action for the incident's current attempt; null when there is none. */
export async function judgedRow(
  db: Db | Trx,
  stepKey: string,
  actionDigest: string,
): Promise<IncidentEvent<'tool_started'> | null> {
  if (!(await wasJudged(db, stepKey, actionDigest))) return null
  const row = await eventByStepKey(db, stepKey)
  return row?.kind === 'tool_started' ? row : null
}

/** Was this approval given for exactly this action of this incident, and used up by the run that announced it? */
export async function wasConsumed(
  db: Db | Trx,
  approval: { id: string; incidentId: string; actionDigest: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('approval')
    .select('id')
    .where('id', '=', approval.id)
    .where('incidentId', '=', approval.incidentId)
    .where('actionDigest', '=', approval.actionDigest)
    .where('status', '=', 'consumed')
    .executeTakeFirst()
  return row !== undefined
}
