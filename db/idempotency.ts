import { sql } from 'kysely'
import type { EventMetadata } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { told } from '../domain/message.ts'
import { append } from './append.ts'
import { reopenIncident } from './closing.ts'
import { type Db, now, type Trx } from './connect.ts'
import { announceCritical, incidentById, lockIncident, type NewIncident, openIncident } from './incidents.ts'

type IdempotencyKey = { tokenId: string; route: string; key: string }
export type Stored = { status: number; response: unknown }

/**
 * Takes a key for one request. `taken`: go ahead and call `storeAnswer`. `stored`: answered before, the same again. `busy`:
 * the first one is still at work. `other_body`: the key was used for something else.
 */
export async function takeKey(
  db: Db,
  key: IdempotencyKey,
  bodyDigest: string,
): Promise<{ state: 'taken' } | { state: 'stored'; answer: Stored } | { state: 'busy' } | { state: 'other_body' }> {
  const taken = await db
    .insertInto('idempotency')
    .values({ ...key, bodyDigest, status: null, response: null })
    .onConflict((conflict) => conflict.columns(['tokenId', 'route', 'key']).doNothing())
    .returning('key')
    .executeTakeFirst()
  if (taken) return { state: 'taken' }
  const row = await db
    .selectFrom('idempotency')
    .select(['bodyDigest', 'status', 'response'])
    // A process that died at work leaves its key unanswered: after a minute the next one may try.
    .select(sql<boolean>`created_at < nightshift_now() - interval '1 minute'`.as('abandoned'))
    .where('tokenId', '=', key.tokenId)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .executeTakeFirst()
  if (!row) return { state: 'busy' }
  if (row.bodyDigest !== bodyDigest) return { state: 'other_body' }
  if (row.status !== null) return { state: 'stored', answer: { status: row.status, response: row.response } }
  if (!row.abandoned) return { state: 'busy' }
  const again = await db
    .updateTable('idempotency')
    .set({ createdAt: now })
    .where('tokenId', '=', key.tokenId)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .where('status', 'is', null)
    .where(sql<boolean>`created_at < nightshift_now() - interval '1 minute'`)
    .returning('key')
    .executeTakeFirst()
  return again ? { state: 'taken' } : { state: 'busy' }
}

export async function storeAnswer(db: Db, key: IdempotencyKey, answer: Stored): Promise<void> {
  await db
    .updateTable('idempotency')
    .set({ status: answer.status, response: JSON.stringify(answer.response ?? null) })
    .where('tokenId', '=', key.tokenId)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .execute()
}

/** Gives a key back: the request failed in a way that a retry may fix, so the retry must be let in. */
export async function releaseKey(db: Db, key: IdempotencyKey): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('tokenId', '=', key.tokenId)
    .where('route', '=', key.route)
    .where('key', '=', key.key)
    .where('status', 'is', null)
    .execute()
}

/** Drops answers older than the 30 days they are promised for. */
export async function dropOldAnswers(db: Db): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('createdAt', '<', sql<string>`nightshift_now() - interval '30 days'`)
    .execute()
}

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
    // A message that no turn has read yet is in the next turn, and so not here.
    .where(
      sql<boolean>`(coalesce(metadata->>'action', '') <> ${told} or exists (
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
