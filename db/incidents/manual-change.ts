import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import type { Incident, ReviewVerdict, Severity } from '../../domain/incident.ts'
import { type ManualChange, manualChangeType } from '../../domain/manual-change.ts'
import { resourceKey } from '../../domain/registry.ts'
import type { Risk } from '../../domain/tool.ts'
import { refusalForRisk } from '../access/operators.ts'
import { withdrawPending } from '../approvals/settle.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { leaseKeys } from '../inventory/registry.ts'
import { append } from '../log/append.ts'
import { recordAudit } from '../log/audit.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { closeIncident, type Person } from './close-incident.ts'
import { lockIncident, openedAs, openIncident } from './incidents.ts'

const severities: Record<Risk, Severity> = {
  none: 'info',
  low: 'info',
  medium: 'info',
  high: 'warning',
  critical: 'critical',
}

/**
 * Opens the incident of a person's own write, which records who requested what, and on which state.
 * Withdraws questions about the write's targets in other incidents; the logs of the incidents name
 * each other. A write that an admin does alone pages everybody and waits for its review.
 */
export async function openManualChange(
  trx: Trx,
  person: Person,
  change: Omit<ManualChange, 'actor' | 'operatorId' | 'name'> & { summary: string },
): Promise<Incident> {
  const { summary, ...asked } = change
  const incident = await openIncident(trx, {
    type: manualChangeType,
    severity: severities[change.risk],
    severitySource: 'person',
    title: `${person.name}: ${summary}`,
    resource: change.targets[0] ?? null,
    requestedBy: null,
  })
  const how = change.alone ? ', alone' : ''
  const detail = `${person.name} asked for this${how}: ${summary}. ${change.reason}`
  await append(trx, incident.id, null, {
    kind: 'change_requested',
    actor: person.actor,
    detail,
    metadata: { ...asked, operatorId: person.operatorId, name: person.name, opened: openedAs(incident) },
  })
  const audited = `${summary}${how}, as ${incident.id}: ${change.reason}`
  await recordAudit(trx, { who: person.name, what: 'change.requested', subject: incident.id, detail: audited })
  if (change.alone) await announceAlone(trx, incident.id, detail)
  return incident
}

async function announceAlone(trx: Trx, id: string, text: string): Promise<void> {
  await trx.updateTable('incident').set({ reviewWantedAt: now }).where('id', '=', id).execute()
  const row = await lockIncident(trx, id)
  if (row) await enqueueNotification(trx, row, 'escalated', text)
}

/**
 * Begins a person's own write. Notifies open incidents about its resource, and withdraws their
 * questions about the resource. Called when the write starts, because a mere request must not
 * cancel votes.
 */
export async function takeOverQuestions(trx: Trx, changeId: string, change: ManualChange): Promise<void> {
  const [subject] = change.targets
  if (!subject) return
  const keys = new Set(await leaseKeys(trx, [subject]))
  const isAsking = trx
    .selectFrom('approval')
    .select('incidentId')
    .where('status', '=', 'pending')
    .where('incidentId', '!=', changeId)
  const open = await trx
    .selectFrom('incident')
    .select(['id', 'resourceKind', 'resourceId'])
    .where('status', 'in', ['open', 'investigating', 'awaiting_approval'])
    .where('id', '!=', changeId)
    .where(({ or, and, eb }) =>
      or([and([eb('resourceKind', '=', subject.kind), eb('resourceId', '=', subject.id)]), eb('id', 'in', isAsking)]),
    )
    .orderBy('id')
    .execute()
  for (const { id, resourceKind, resourceId } of open) {
    const touched = await questionsAbout(trx, id, keys)
    if (touched.length === 0 && (resourceKind !== subject.kind || resourceId !== subject.id)) continue
    await lockIncident(trx, id)
    const { name, actor, tool } = change
    for (const question of touched)
      await withdrawPending(trx, id, `${name} acts on the target directly (${changeId})`, question)
    const text = `${name} acts on ${resourceKey(subject)} directly: ${tool}, ${changeId}`
    await append(trx, id, null, { kind: 'noted', actor, detail: text, metadata: { code: 'manual_change', text } })
  }
}

/**
 * Lists questions of an incident whose first target has one of these keys. The first target is the
 * subject of a question.
 */
async function questionsAbout(trx: Trx, incidentId: string, keys: ReadonlySet<string>): Promise<string[]> {
  const pending = await trx
    .selectFrom('approval')
    .select(['id', 'targets'])
    .where('incidentId', '=', incidentId)
    .where('status', '=', 'pending')
    .execute()
  const found: string[] = []
  for (const { id, targets } of pending) {
    const about = (targets as ManualChange['targets']).slice(0, 1)
    if ((await leaseKeys(trx, about)).some((key) => keys.has(key))) found.push(id)
  }
  return found
}

/** Removes the wish for a review, because the admin did not act alone after all. */
export async function forgetReview(trx: Trx, id: string): Promise<void> {
  await trx.updateTable('incident').set({ reviewWantedAt: null }).where('id', '=', id).execute()
}

/** Finds the person behind an own write, its risk and its targets. */
export async function requesterOf(
  db: Db | Trx,
  id: string,
): Promise<{ operatorId: string; risk: Risk; targets: ManualChange['targets'] }> {
  return await db
    .selectFrom('incidentEvent')
    .select([sql<string>`metadata->>'operatorId'`.as('operatorId'), sql<Risk>`metadata->>'risk'`.as('risk')])
    .select(sql<ManualChange['targets']>`metadata->'targets'`.as('targets'))
    .where('incidentId', '=', id)
    .where('kind', '=', 'change_requested')
    .executeTakeFirstOrThrow()
}

type ReviewOutcome = { outcome: 'reviewed' } | { outcome: 'not_found' | 'conflict' | 'forbidden'; message: string }

/** Stores a review of a write that an admin did alone. Home then no longer lists the write. */
export async function reviewManualChange(
  db: Db,
  person: Person,
  id: string,
  { verdict, text }: { verdict: ReviewVerdict; text: string },
): Promise<ReviewOutcome> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, id)
    if (!row) return { outcome: 'not_found', message: `there is no incident ${id}` }
    if (row.reviewWantedAt === null) return { outcome: 'conflict', message: `${id} waits for no review` }
    const asked = await requesterOf(trx, id)
    if (asked.operatorId === person.operatorId)
      return { outcome: 'forbidden', message: 'the person who did this write cannot review it: somebody else must' }
    const who = { risk: asked.risk, incidentType: manualChangeType, targets: asked.targets }
    const refused = await refusalForRisk(trx, person.operatorId, who)
    if (refused) return { outcome: 'forbidden', message: refused }
    const { operatorId, name, actor } = person
    const detail = `${name} reviewed it: ${verdict}. ${text}`
    await append(trx, id, null, {
      kind: 'change_reviewed',
      actor,
      detail,
      metadata: { verdict, text, operatorId, name },
    })
    await recordAudit(trx, { who: name, what: 'change.reviewed', subject: id, detail: `${verdict}: ${text}` })
    await trx.updateTable('incident').set({ reviewWantedAt: null }).where('id', '=', id).execute()
    return { outcome: 'reviewed' }
  })
}

/**
 * Seconds after which a write that has not begun is cancelled, because the platform may have
 * changed.
 */
const maxUnbegunSeconds = 600

/**
 * Lists people's own writes whose run did not start, the oldest first: Temporal was unavailable, or
 * the process ended.
 */
export async function unbegunManualChanges(db: Db): Promise<string[]> {
  const rows = await unbegun(db, 5).execute()
  return rows.map(({ id }) => id)
}

/** Lists people's own writes that did not begin within ten minutes. */
export async function overdueManualChanges(db: Db): Promise<string[]> {
  const rows = await unbegun(db, maxUnbegunSeconds).execute()
  return rows.map(({ id }) => id)
}

/** Cancels a write that did not begin. Nothing was done; the person may request the write again. */
export async function cancelUnbegunChange(db: Db, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, id)
    if (row?.status !== 'open' || row.attempt !== 0) return
    const reason = 'The write did not begin within ten minutes, and nothing was done. Request the write again.'
    await closeIncident(trx, id, null, { status: 'cancelled', reason }, { actor: systemActor, stepKey: null })
    await forgetReview(trx, id)
  })
}

function unbegun(db: Db, sinceSeconds: number) {
  return db
    .selectFrom('incident')
    .select('id')
    .where('type', '=', manualChangeType)
    .where('status', '=', 'open')
    .where('attempt', '=', 0)
    .where(sql<boolean>`created_at < nightshift_now() - make_interval(secs => ${sinceSeconds})`)
    .orderBy('createdAt')
    .limit(100)
}
