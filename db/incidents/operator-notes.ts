import { sql } from 'kysely'
import type { EventMetadata } from '../../domain/event.ts'
import { messageMark } from '../../domain/message.ts'
import type { Db } from '../connect.ts'

/** People's notes and denials in an incident, over all its attempts, newest last. */
type PersonsNote = { at: string; by: string; kind: 'note' | 'denial'; text: string }

const limit = 20

const longest = 500

export async function operatorNotes(db: Db, incidentId: string): Promise<PersonsNote[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .select(['at', 'actor', 'kind', 'metadata'])
    .where('incidentId', '=', incidentId)
    .where('kind', 'in', ['commented', 'approval_decided'])
    .where('actor', 'like', 'user:%')
    // Leaves out a message that no turn has read, because the next turn contains it anyway.
    .where(
      sql<boolean>`(coalesce(metadata->>'action', '') <> ${messageMark} or exists (
        select from incident_event answered where answered.incident_id = incident_event.incident_id
          and answered.kind = 'model_answered' and answered.metadata->'read' @> to_jsonb(incident_event.seq)))`,
    )
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute()
  return rows.reverse().flatMap(({ at, actor, kind, metadata }): PersonsNote[] => {
    if (kind === 'commented')
      return [{ at, by: actor, kind: 'note' as const, text: cut(metadata as EventMetadata['commented']) }]
    const { decision, reason } = metadata as EventMetadata['approval_decided']
    return decision === 'deny'
      ? [{ at, by: actor, kind: 'denial' as const, text: (reason ?? 'no reason given').slice(0, longest) }]
      : []
  })
}

function cut({ text }: EventMetadata['commented']): string {
  return text.slice(0, longest).toWellFormed()
}

/**
 * Finds why a closed incident was reopened: the newest note about it, or who requested it. Null if
 * no row shows why.
 */
export async function whyReopened(db: Db, incidentId: string): Promise<string | null> {
  const rows = await db
    .selectFrom('incidentEvent')
    .select(['kind', 'detail', 'metadata'])
    .where('incidentId', '=', incidentId)
    .where('kind', 'in', ['noted', 'commented'])
    .orderBy('seq', 'desc')
    .limit(50)
    .execute()
  const found = rows.find(({ kind, metadata }) => {
    const { code, action } = metadata as { code?: string; action?: string | null }
    return kind === 'noted' ? code === 'reopened' : action === 'investigate_requested'
  })
  return found?.detail ?? null
}
