import { sql } from 'kysely'
import type { IncidentEvent } from '../domain/event.ts'
import { siblingKey } from '../domain/step-key.ts'
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

/**
 * What a person gave leave by for an announced action: an approval of exactly this, used up by the run, or a standing grant of
 * exactly this, one use of which the run took. Null where there is neither.
 */
export async function authorityOf(db: Db | Trx, row: IncidentEvent<'tool_started'>): Promise<string | null> {
  const { approvalId: id, actionDigest } = row.metadata
  const { incidentId } = row
  if (id !== null) return (await wasConsumed(db, { id, incidentId, actionDigest })) ? id : null
  const key = siblingKey(row.stepKey, 'grant_used')
  const used = key === null ? null : await eventByStepKey(db, key)
  if (used?.kind !== 'grant_used' || used.incidentId !== incidentId || used.attempt !== row.attempt) return null
  const granted = await db
    .selectFrom('standingGrant')
    .select('id')
    .where('id', '=', used.metadata.grantId)
    .where('actionDigest', '=', actionDigest)
    .executeTakeFirst()
  return granted?.id ?? null
}

/** What the ruling on an announced call found: the details of its last `call_judged` row. */
export async function foundByRuling(
  db: Db | Trx,
  { incidentId, attempt, metadata }: IncidentEvent<'tool_started'>,
): Promise<Record<string, unknown>> {
  const row = await db
    .selectFrom('incidentEvent')
    .select('metadata')
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('kind', '=', 'call_judged')
    .where(sql<boolean>`metadata ->> 'callId' = ${metadata.callId}`)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return ((row?.metadata as { details?: Record<string, unknown> } | undefined)?.details ?? {}) as Record<
    string,
    unknown
  >
}
