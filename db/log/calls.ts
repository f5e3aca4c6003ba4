import { sql } from 'kysely'
import type { IncidentEvent, ProposedCall } from '../../domain/event.ts'
import { findManualChange } from '../../domain/manual-change.ts'
import type { SiteDecision } from '../../domain/site-decision.ts'
import { type CallRef, callId, firstPlaceOfCode, siblingKey, stepKey } from '../../domain/step-key.ts'
import type { Db, Trx } from '../connect.ts'
import { eventByStepKey, eventsOf } from './events.ts'

type CallEdit = NonNullable<Awaited<ReturnType<typeof editOf>>>

/**
 * Reads a call as the model, a person or code proposed it, with a person's change of its arguments.
 * Null if nobody proposed it.
 */
export async function proposedCall(
  db: Db | Trx,
  place: CallRef,
): Promise<{ call: ProposedCall; edit: CallEdit | null } | null> {
  const { incidentId, attempt, turn } = place
  if (place.call >= firstPlaceOfCode) return await callOfCode(db, place)
  const answered = await eventByStepKey(db, stepKey(place, turn, 'model_answered', 0), 'model_answered')
  const call = answered?.metadata.calls[place.call] ?? (await manualCall(db, place))
  return call ? { call, edit: await editOf(db, { incidentId, attempt, callId: call.id }) } : null
}

/**
 * Reads a call that repeats a deciding read of the leader for its follower
 * (`activities/leader-looks.ts`), by its place: before the first turn, or after a write.
 */
async function callOfCode(db: Db | Trx, place: CallRef): Promise<{ call: ProposedCall; edit: null } | null> {
  const opening = await eventByStepKey(db, stepKey(place, 0, 'context_assembled', 0), 'context_assembled')
  const looks = opening?.metadata.looks?.[place.turn === 0 ? 'before' : 'after'] ?? []
  const look = looks[place.call - firstPlaceOfCode]
  return look ? { call: { id: callId(place.turn, place.call), ...look, problem: null }, edit: null } : null
}

/** Reads the only call of a person's own write. */
async function manualCall(db: Db | Trx, { incidentId, attempt, turn, call }: CallRef): Promise<ProposedCall | null> {
  if (turn !== 1 || call !== 0) return null
  const change = findManualChange(await eventsOf(db, incidentId), attempt)
  return change && { id: callId(turn, call), tool: change.tool, arguments: change.arguments, problem: null }
}

/**
 * Finds the `tool_started` row that announces this action for the current attempt; null if there is
 * none.
 */
export async function judgedRow(
  db: Db | Trx,
  stepKey: string,
  actionDigest: string,
): Promise<IncidentEvent<'tool_started'> | null> {
  if (!(await wasJudged(db, stepKey, actionDigest))) return null
  return await eventByStepKey(db, stepKey, 'tool_started')
}

/**
 * Whether an approval was for exactly this action of this incident, and was used up by the run that
 * announced the action.
 */
export async function wasApprovalUsed(
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
 * Finds the authority for an announced action: an approval of exactly this action that the run used
 * up, a standing grant of exactly this action of which the run took one use, or the configured
 * policy that an admin accepted. Null if nothing gives authority.
 */
export async function authorityOf(db: Db | Trx, row: IncidentEvent<'tool_started'>): Promise<string | null> {
  const { approvalId: id, actionDigest } = row.metadata
  const { incidentId } = row
  const site = await siteAuthorityOf(db, row)
  if (site !== null) return site
  if (id !== null) return (await wasApprovalUsed(db, { id, incidentId, actionDigest })) ? id : null
  const used = await eventByStepKey(db, siblingKey(row.stepKey, 'grant_used'), 'grant_used')
  if (!used || used.incidentId !== incidentId || used.attempt !== row.attempt) return null
  const granted = await db
    .selectFrom('standingGrant')
    .select('id')
    .where('id', '=', used.metadata.grantId)
    .where('actionDigest', '=', actionDigest)
    .executeTakeFirst()
  return granted?.id ?? null
}

/** Finds the configured policy whose rule allowed the call, if this policy was in force. */
async function siteAuthorityOf(db: Db | Trx, row: IncidentEvent<'tool_started'>): Promise<string | null> {
  if (row.metadata.approvalId !== null) return null
  const { site } = (await rulingDetailsOf(db, row)) as { site?: SiteDecision }
  if (site?.action !== 'run') return null
  const policy = await db
    .selectFrom('sitePolicy')
    .select('digest')
    .where('digest', '=', site.digest)
    .where('inForceAt', 'is not', null)
    .executeTakeFirst()
  return policy ? `policy_${policy.digest.slice(0, 24)}` : null
}

/** Reads the details of the last `call_judged` row of an announced call. */
export async function rulingDetailsOf(
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

/** Finds a person's last change of a call's arguments, which apply from then on. */
async function editOf(
  db: Db | Trx,
  call: { incidentId: string; attempt: number; callId: string },
): Promise<{ arguments: Record<string, unknown>; operatorId: string; name: string } | null> {
  const row = await db
    .selectFrom('approval')
    .innerJoin('operator', 'operator.id', 'approval.editedBy')
    .select(['edited', 'editedBy', 'operator.name'])
    .where('incidentId', '=', call.incidentId)
    .where('attempt', '=', call.attempt)
    .where('callId', '=', call.callId)
    .where('edited', 'is not', null)
    .orderBy('approval.id', 'desc')
    .executeTakeFirst()
  return row?.edited && row.editedBy ? { arguments: row.edited, operatorId: row.editedBy, name: row.name } : null
}

/**
 * Whether a run announced this action after a policy decision: the current attempt must have a
 * `tool_started` row with this step key and digest. Otherwise the core API refuses any write of an
 * agent.
 */
async function wasJudged(db: Db | Trx, stepKey: string, actionDigest: string): Promise<boolean> {
  const row = await db
    .selectFrom('incidentEvent')
    .innerJoin('incident', 'incident.id', 'incidentEvent.incidentId')
    .select('incidentEvent.id')
    .where('stepKey', '=', stepKey)
    .where('kind', '=', 'tool_started')
    .where(sql<boolean>`metadata->>'actionDigest' = ${actionDigest}`)
    .whereRef('incidentEvent.attempt', '=', 'incident.attempt')
    .executeTakeFirst()
  return row !== undefined
}
