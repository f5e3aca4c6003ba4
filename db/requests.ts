import type { EventMetadata } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { append } from './append.ts'
import { reopenIncident } from './closing.ts'
import type { Db, Trx } from './connect.ts'
import { announceCritical, incidentById, lockIncident, type NewIncident, openIncident } from './incidents.ts'
import { now } from './time.ts'

/** Who asks: the name for the timeline, and the person who then may not approve the run's critical actions. */
type Requester = { actor: string; operatorId: string | null }

/** Opens an incident for a person, with their words as its first row. */
export async function openByHand(
  trx: Trx,
  incident: Omit<NewIncident, 'requestedBy' | 'severitySource'>,
  text: string,
  by: Requester,
): Promise<Incident> {
  const opened = await openIncident(trx, { ...incident, severitySource: 'person', requestedBy: by.operatorId })
  await announceCritical(trx, opened.id)
  await append(trx, opened.id, null, {
    kind: 'commented',
    actor: by.actor,
    detail: text,
    metadata: { text, confidence: null, action: 'opened' },
  })
  return (await incidentById(trx, opened.id)) as Incident
}

/** What `agent.investigate` left to people goes to the queue after all. */
async function releaseKept(trx: Trx, id: string): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ keptReason: null, lookWanted: null, lookWantedAt: null, expectationId: null })
    .where('id', '=', id)
    .execute()
}

/** Puts an incident before the agent again: the person who asks is the run's requester from now on. */
export async function investigateAgain(trx: Trx, id: string, by: Requester): Promise<void> {
  const row = await lockIncident(trx, id)
  if (row?.status === 'open' && row.keptReason !== null) await releaseKept(trx, id)
  else await reopenIncident(trx, id)
  await trx.updateTable('incident').set({ requestedBy: by.operatorId, updatedAt: now }).where('id', '=', id).execute()
  await append(trx, id, null, {
    kind: 'commented',
    actor: by.actor,
    detail: 'Asked for an investigation',
    metadata: { text: 'Asked for an investigation', confidence: null, action: 'investigate_requested' },
  })
}

/** What people wrote about an incident and what they denied, over all its attempts, newest last. */
export type PersonsNote = { at: string; by: string; kind: 'note' | 'denial'; text: string }

const limit = 20
const longest = 500

export async function peopleSaid(db: Db, incidentId: string): Promise<PersonsNote[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .select(['at', 'actor', 'kind', 'metadata'])
    .where('incidentId', '=', incidentId)
    .where('kind', 'in', ['commented', 'approval_decided'])
    .where('actor', 'like', 'user:%')
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

/** Why a closed incident was opened again: the newest note of it, or who asked. Null when no row says. */
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
