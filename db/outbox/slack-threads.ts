import type { Approval } from '../../domain/approval.ts'
import type { EscalationReport } from '../../domain/escalation.ts'
import type { EventMetadata } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { listApprovals } from '../approvals/find.ts'
import type { Db, Trx } from '../connect.ts'
import { incidentById } from '../incidents/incidents.ts'
import { systemScope } from '../scope.ts'

/** The place of a message of Nightshift in Slack. */
type SlackPlace = { channel: string; ts: string }

export type SlackView = {
  incident: Incident
  /** The report for the person who takes over; null unless the incident is escalated. */
  report: EscalationReport | null
  /** The approvals of the incident, newest first. */
  approvals: Approval[]
  /** `posted`: whether the thread had a first message, even if Slack has lost it since. */
  thread: { posted: boolean; place: SlackPlace | null }
}

/** Reads what the thread of an incident must show now. */
export async function slackView(db: Db, incidentId: string): Promise<SlackView | null> {
  const incident = await incidentById(db, incidentId)
  const thread = await db.selectFrom('slackThread').selectAll().where('incidentId', '=', incidentId).executeTakeFirst()
  if (!incident || !thread) return null
  const approvals = await listApprovals(systemScope(db), { incidentId }, { before: null, limit: 100 })
  const report = incident.status === 'escalated' ? await newestReport(db, incidentId) : null
  return { incident, report, approvals, thread: { posted: thread.posted, place: placeOf(thread) } }
}

/** Finds the incident of a Slack thread; null for a thread of anything else. */
export async function incidentOfThread(db: Db, place: { channel: string; thread: string }): Promise<Incident | null> {
  const row = await db
    .selectFrom('slackThread')
    .select('incidentId')
    .where('channel', '=', place.channel)
    .where('ts', '=', place.thread)
    .executeTakeFirst()
  return row ? await incidentById(db, row.incidentId) : null
}

async function newestReport(db: Db, incidentId: string): Promise<EscalationReport | null> {
  const row = await db
    .selectFrom('incidentEvent')
    .select('metadata')
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'escalated')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return (row?.metadata as EventMetadata['escalated'] | undefined)?.report ?? null
}

/** Finds an approval's Slack message, or null. `place` is null if Slack lost the message. */
export async function slackCard(db: Db, approvalId: string): Promise<{ place: SlackPlace | null } | null> {
  const row = await db.selectFrom('slackCard').selectAll().where('approvalId', '=', approvalId).executeTakeFirst()
  return row ? { place: placeOf(row) } : null
}

export async function saveThread(trx: Trx, incidentId: string, place: SlackPlace | null): Promise<void> {
  await trx
    .updateTable('slackThread')
    .set({ channel: place?.channel ?? null, ts: place?.ts ?? null, posted: true })
    .where('incidentId', '=', incidentId)
    .execute()
}

export async function saveCard(trx: Trx, approvalId: string, place: SlackPlace | null): Promise<void> {
  const at = { channel: place?.channel ?? null, ts: place?.ts ?? null }
  await trx
    .insertInto('slackCard')
    .values({ approvalId, ...at })
    .onConflict((conflict) => conflict.column('approvalId').doUpdateSet(at))
    .execute()
}

function placeOf({ channel, ts }: { channel: string | null; ts: string | null }): SlackPlace | null {
  return channel !== null && ts !== null ? { channel, ts } : null
}
