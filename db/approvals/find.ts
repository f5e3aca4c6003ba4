import { sql } from 'kysely'
import type { Approval, ApprovalStatus, Attachment, Decision, DenialCategory, Evidence } from '../../domain/approval.ts'
import { sha256 } from '../../domain/digest.ts'
import { foldHypotheses, formatCause } from '../../domain/hypothesis.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { Risk } from '../../domain/tool.ts'
import { type Db, now, type Scope, type Trx } from '../connect.ts'
import { eventsOf } from '../events.ts'
import type { ApprovalRow } from '../tables.ts'
import { countVotes } from './settle.ts'

/** The pending approval of the very same action for another incident: joined, not asked again. */
export async function pendingOfAction(db: Db | Trx, actionDigest: string, incidentId: string): Promise<string | null> {
  const row = await db
    .selectFrom('approval')
    .select('id')
    .where('actionDigest', '=', actionDigest)
    .where('incidentId', '!=', incidentId)
    .where('status', '=', 'pending')
    .executeTakeFirst()
  return row?.id ?? null
}

/** What waits for an answer with this tool for other incidents: the same action may go by another name there. */
export async function pendingOfTool(
  db: Db | Trx,
  tool: string,
  incidentId: string,
): Promise<{ id: string; arguments: Record<string, unknown>; targets: ResourceRef[] }[]> {
  const rows = await db
    .selectFrom('approval')
    .select(['id', 'args', 'targets'])
    .where('tool', '=', tool)
    .where('incidentId', '!=', incidentId)
    .where('status', '=', 'pending')
    .orderBy('requestedAt')
    .execute()
  return rows.map(({ id, args, targets }) => ({ id, arguments: args, targets: targets as ResourceRef[] }))
}

/** The newest approval of one call of an attempt; null where nobody was asked about it. */
export async function latestOfCall(
  db: Db | Trx,
  { incidentId, attempt }: { incidentId: string; attempt: number },
  callId: string,
): Promise<Pick<ApprovalRow, 'id' | 'status' | 'askedWith'> | null> {
  const row = await db
    .selectFrom('approval')
    .select(['id', 'status', 'askedWith'])
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('callId', '=', callId)
    .orderBy('requestedAt', 'desc')
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return row ?? null
}

/** Where an approval stands, and which state of its targets it was given for; null when there is none. */
export async function approvalState(db: Db | Trx, id: string) {
  const columns = ['incidentId', 'status', 'expiresAt', 'stateFingerprint'] as const
  return (await db.selectFrom('approval').select(columns).where('id', '=', id).executeTakeFirst()) ?? null
}

/** An approval that people gave who may still give it, and that may still be used, by the database's clock. */
export async function usableApproval(trx: Trx, id: string): Promise<ApprovalRow | null> {
  const row = await trx
    .selectFrom('approval')
    .selectAll()
    .where('id', '=', id)
    .where('status', '=', 'approved')
    .where('useBy', '>', now)
    .executeTakeFirst()
  return row && (await countVotes(trx, row)) >= row.required ? row : null
}

/** Approvals as people see them, newest first. */
export async function listApprovals(
  { db }: Scope,
  filter: { status?: ApprovalStatus; incidentId?: string; id?: string; idPrefix?: string; askedWith?: string },
  page: { before: string | null; limit: number },
): Promise<Approval[]> {
  let query = db
    .selectFrom('approval')
    .leftJoin('operator as editor', 'editor.id', 'approval.editedBy')
    .selectAll('approval')
    .select('editor.name as editor')
    .orderBy('approval.id', 'desc')
    .limit(page.limit)
  if (filter.status === 'pending') query = query.where('expiresAt', '>', now)
  if (filter.status) query = query.where('approval.status', '=', filter.status)
  if (filter.incidentId) query = query.where('incidentId', '=', filter.incidentId)
  if (filter.idPrefix) query = query.where(sql<boolean>`starts_with(approval.id, ${filter.idPrefix})`)
  if (filter.askedWith) query = query.where('approval.askedWith', '=', filter.askedWith)
  if (filter.id) query = query.where('approval.id', '=', filter.id)
  if (page.before) query = query.where('approval.id', '<', page.before)
  const rows = await query.execute()
  if (rows.length === 0) return []
  const decisions = await db
    .selectFrom('approvalDecision')
    .innerJoin('operator', 'operator.id', 'approvalDecision.operatorId')
    .select(['approvalId', 'operator.name as operator', 'decision', 'reason', 'category', 'via', 'at'])
    .where(
      'approvalId',
      'in',
      rows.map((row) => row.id),
    )
    .orderBy('at')
    .execute()
  const approvals = rows.map((row) => toApproval(row, decisions))
  for (const each of approvals) {
    // Who may not approve it any more does not count: asked only where somebody still waits for the rest.
    if (each.status === 'pending' && each.approvals > 0) {
      each.approvals = await countVotes(db, each)
    }
  }
  return approvals
}

/** The bytes of what the dry run of this approval brought along; null for a digest that it does not name, and where they are gone. */
export async function attachmentBytes(
  { db }: Scope,
  id: string,
  digest: string,
): Promise<{ attachment: Attachment; bytes: Buffer } | null> {
  const asked = await db.selectFrom('approval').select('dryRun').where('id', '=', id).executeTakeFirst()
  const attachment = asked?.dryRun.attachments?.find((each) => each.digest === digest)
  if (!attachment) return null
  const stored = await db.selectFrom('resultBody').select('bytes').where('digest', '=', digest).executeTakeFirst()
  return stored && sha256(stored.bytes) === digest ? { attachment, bytes: stored.bytes } : null
}

function toApproval(
  row: ApprovalRow & { editor: string | null },
  decisions: {
    approvalId: string
    operator: string
    decision: Decision
    reason: string | null
    category: DenialCategory | null
    via: string
    at: string
  }[],
): Approval {
  const own = decisions.filter((entry) => entry.approvalId === row.id)
  return {
    id: row.id,
    incidentId: row.incidentId,
    attempt: row.attempt,
    callId: row.callId,
    tool: row.tool,
    arguments: row.args,
    targets: row.targets as ResourceRef[],
    reason: row.reason,
    risk: row.risk as Risk,
    reversible: row.reversible,
    required: row.required,
    approvals: own.filter((entry) => entry.decision === 'approve').length,
    dryRun: row.dryRun,
    actionDigest: row.actionDigest,
    stateFingerprint: row.stateFingerprint,
    status: row.status,
    requestedAt: row.requestedAt,
    expiresAt: row.expiresAt as string,
    useBy: row.useBy,
    askedWith: row.askedWith,
    edited: row.edited && row.editor ? { by: row.editor, arguments: row.edited } : null,
    decisions: own.map(({ operator, decision, reason, category, via, at }) => ({
      operator,
      decision,
      reason,
      category,
      via,
      at,
    })),
  }
}

/** The approvals of the same call just before and just after this one: who changed something asked again. */
export async function neighbours(
  { db }: Scope,
  { id, incidentId, attempt, callId }: Pick<Approval, 'id' | 'incidentId' | 'attempt' | 'callId'>,
): Promise<{ replaces: string | null; replacedBy: string | null }> {
  return await db
    .selectFrom('approval')
    .select([
      sql<string | null>`max(id) filter (where id < ${id})`.as('replaces'),
      sql<string | null>`min(id) filter (where id > ${id})`.as('replacedBy'),
    ])
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('callId', '=', callId)
    .executeTakeFirstOrThrow()
}

/** Enough of an answer to see whether the row is worth opening. */
const shownLetters = 200

type Look = {
  seq: number
  tool: string
  found: string
  isSaid: boolean
  named: ResourceRef[] | null
  told: ResourceRef[] | null
}

/**
 * The rows an approval rests on, oldest first: the newest alert; for each target, and for what the incident is about, the
 * newest look that named it and the newest that told of it; the model's turn that proposed the call. Read from the log each
 * time, so every approval has them.
 */
export async function evidenceOf(
  { db }: Scope,
  { id, incidentId, attempt, callId, targets }: Pick<Approval, 'id' | 'incidentId' | 'attempt' | 'callId' | 'targets'>,
): Promise<Evidence[]> {
  const { resourceKind, resourceId } = await db
    .selectFrom('incident')
    .select(['resourceKind', 'resourceId'])
    .where('id', '=', incidentId)
    .executeTakeFirstOrThrow()
  // The dead host is not a target but must be shown as evidence.
  const things = resourceId === null ? targets : [...targets, { kind: resourceKind, id: resourceId }]
  const before = sql`incident_id = ${incidentId} and seq < coalesce((
    select min(seq) from incident_event
    where incident_id = ${incidentId} and kind = 'approval_requested' and metadata->>'approvalId' = ${id}), 2147483647)`
  const among = (field: 'targets' | 'discovered') => sql`(
    select jsonb_agg(thing) from jsonb_array_elements(${JSON.stringify(things)}::jsonb) as thing
    where metadata->${sql.lit(field)} @> jsonb_build_array(thing))`
  const looks = sql<Look>`
    select seq, metadata->>'tool' as tool, ${among('targets')} as named, ${among('discovered')} as told,
      metadata ? 'said' as "isSaid",
      left(coalesce(metadata->>'said', metadata->'result'->>'data', metadata->'body'->>'head', ''), ${shownLetters + 1}) as found
    from incident_event
    where ${before} and attempt = ${attempt} and kind = 'tool_finished'
      and metadata->>'effect' in ('read', 'resolve') and metadata->'result'->>'ok' = 'true'
    order by seq`.execute(db)
  const ends = sql<{ seq: number; kind: 'alert_received' | 'model_answered'; detail: string }>`
    select distinct on (kind) seq, kind, left(detail, ${shownLetters + 1}) as detail from incident_event
    where ${before} and (kind = 'alert_received' or (kind = 'model_answered' and attempt = ${attempt}
      and metadata->'calls' @> ${JSON.stringify([{ id: callId }])}::jsonb))
    order by kind, seq desc`.execute(db)
  const found: Evidence[] = (await ends).rows.map(({ seq, kind, detail }) =>
    kind === 'alert_received'
      ? { seq, what: 'alert', tool: null, about: [], found: brief(detail), isSaid: false }
      : { seq, what: 'proposed', tool: null, about: [], found: '', isSaid: false },
  )
  return [...found, ...newest((await looks).rows)].sort((a, b) => a.seq - b.seq)
}

/** The newest findings that an approval rests on, in the sentences of their tools, oldest first. */
export async function findingsOf(
  scope: Scope,
  approval: Parameters<typeof evidenceOf>[1],
  most: number,
): Promise<string[]> {
  const said = (await evidenceOf(scope, approval)).filter(({ what, isSaid }) => what === 'look' && isSaid)
  return said.slice(-most).map(({ found }) => found)
}

/** Of all looks those that no later one replaces for something they told about. */
function newest(looks: Look[]): Evidence[] {
  const last = new Map<string, Look>()
  for (const look of looks) {
    for (const target of look.told ?? []) last.set(`told ${resourceKey(target)}`, look)
    for (const target of look.named ?? []) last.set(`named ${resourceKey(target)}`, look)
  }
  return [...new Set(last.values())].map(({ seq, tool, found, isSaid, named, told }) => {
    const about = new Map([...(named ?? []), ...(told ?? [])].map((thing) => [resourceKey(thing), thing]))
    return { seq, what: 'look', tool, about: [...about.values()], found: brief(found), isSaid }
  })
}

function brief(text: string): string {
  return text.length > shownLetters ? `${text.slice(0, shownLetters - 1)}…` : text
}

/** The line about what the run of an approval takes for the cause now; null where it has said none. */
export async function causeOf(
  { db }: Scope,
  { incidentId, attempt }: { incidentId: string; attempt: number },
): Promise<string | null> {
  return formatCause(foldHypotheses(await eventsOf(db, incidentId, { attempt }), attempt))
}
