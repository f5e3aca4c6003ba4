import { sql } from 'kysely'
import { type EscalationReport, reportText } from '../domain/escalation.ts'
import { escalationReport } from '../domain/escalation-report.ts'
import { agentActor, type NewEvent, systemActor } from '../domain/event.ts'
import { newId } from '../domain/id.ts'
import {
  type ClosedBy,
  type EscalationCategory,
  type Incident,
  type IncidentAction,
  type IncidentRole,
  type IncidentStatus,
  incidentActions,
  type ResolveOutcome,
  type Severity,
} from '../domain/incident.ts'
import { cancelledSeconds } from '../domain/lifecycle.ts'
import type { ResourceRef } from '../domain/resource.ts'
import { type StoredClaim, type Unshown, withMarks } from '../domain/stored-claim.ts'
import { cleanse } from '../safety/cleanse.ts'
import { append } from './append.ts'
import { withdrawPending } from './approvals/settle.ts'
import type { Db, Trx } from './connect.ts'
import { enqueueNotification } from './deliveries.ts'
import { eventsOf } from './events.ts'
import { releaseLeases } from './leases.ts'
import { readSettings } from './settings.ts'
import type { IncidentRow } from './tables.ts'

/** The incident's status does not allow this; says which statuses would. */
export class NotAllowedError extends Error {
  override name = 'NotAllowedError' as const
  readonly status: IncidentStatus
  constructor(id: string, action: IncidentAction, status: IncidentStatus) {
    super(`${id} is ${status}: ${action} needs ${incidentActions[action].join(' or ')}`)
    this.status = status
  }
}

/** What stands about an incident in other tables. */
type About = { firing: number | null; unknown: number | null; ownerName: string | null }

/** An incident as the rest of the code knows it. Without `about`, nothing is known of its alerts and its owner's name. */
export function toIncident(row: IncidentRow & Partial<About>): Incident {
  return {
    id: row.id,
    type: row.type,
    severity: row.severity,
    severitySource: row.severitySource,
    status: row.status,
    title: row.title,
    resource:
      row.resourceKind && row.resourceId ? { kind: row.resourceKind as ResourceRef['kind'], id: row.resourceId } : null,
    assignedTo: row.assignedTo,
    attempt: row.attempt,
    role: row.role,
    groupId: row.groupId,
    resolution: row.resolution,
    outcome: row.outcome,
    category: row.category,
    closedBy: row.closedBy,
    alerts: { firing: row.firing ?? 0, unknown: row.unknown ?? 0 },
    reopened: row.reopened,
    watchUntil: row.watchUntil,
    cancelledUntil: row.cancelledUntil,
    owner:
      row.ownerId === null || row.ownedAt === null
        ? null
        : { id: row.ownerId, name: row.ownerName ?? row.ownerId, since: row.ownedAt },
    keptReason: row.keptReason,
    previousId: row.previousId,
    createdAt: row.createdAt,
    queuedAt: row.queuedAt,
    closedAt: row.closedAt,
    updatedAt: row.updatedAt,
    events: row.nextSeq - 1,
  }
}

export type NewIncident = {
  type: string
  severity: Severity
  severitySource: 'alert' | 'default' | 'person'
  title: string
  resource: ResourceRef | null
  /** Who asked for it, where a person did: never among those who approve its critical actions. */
  requestedBy: string | null
  /** The incident it follows: the same alert, earlier. */
  previousId?: string | null
}

/** Opens an incident. Whoever opens it announces it: `announceCritical`. */
export async function openIncident(trx: Trx, incident: NewIncident): Promise<Incident> {
  const row = await trx
    .insertInto('incident')
    .values({
      id: newId('inc'),
      type: incident.type,
      severity: incident.severity,
      severitySource: incident.severitySource,
      title: cleanse(incident.title),
      resourceKind: incident.resource?.kind ?? null,
      resourceId: incident.resource?.id ?? null,
      requestedBy: incident.requestedBy,
      previousId: incident.previousId ?? null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toIncident(row)
}

/** Queues the `critical` notification of an incident that is critical, in the transaction that opened it. */
export async function announceCritical(trx: Trx, id: string): Promise<void> {
  const row = await lockIncident(trx, id)
  if (row?.severity === 'critical') await enqueueNotification(trx, row, 'critical', null)
}

/** Incidents with what stands about them in other tables. */
function selectIncidents(db: Db | Trx) {
  return db
    .selectFrom('incident')
    .selectAll('incident')
    .select((select) => [
      select
        .selectFrom('alert')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .whereRef('alert.incidentId', '=', 'incident.id')
        .where('alert.status', '=', 'firing')
        .as('firing'),
      select
        .selectFrom('alert')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .whereRef('alert.incidentId', '=', 'incident.id')
        .where('alert.status', '=', 'unknown')
        .as('unknown'),
      select.selectFrom('operator').select('name').whereRef('operator.id', '=', 'incident.ownerId').as('ownerName'),
    ])
}

export async function incidentById(db: Db | Trx, id: string): Promise<Incident | null> {
  const row = await selectIncidents(db).where('incident.id', '=', id).executeTakeFirst()
  return row ? toIncident(row) : null
}

export type IncidentFilter = {
  status?: IncidentStatus[]
  type?: string
  severity?: Severity[]
  role?: IncidentRole[]
  group?: string
  q?: string
}

/** Anywhere in a text; of one or two letters, which the index holds no other way, where a word begins. */
function patternsOf(q: string): string[] {
  const literal = q.replace(/[\\%_]/g, (character) => `\\${character}`)
  return q.length < 3 ? [`${literal}%`, `% ${literal}%`, `%-${literal}%`] : [`%${literal}%`]
}

/** Newest first, by keyset: `before` is the id of the last one already seen. */
export async function listIncidents(
  db: Db,
  filter: IncidentFilter,
  page: { before: string | null; limit: number },
): Promise<Incident[]> {
  let query = selectIncidents(db).orderBy('incident.id', 'desc').limit(page.limit)
  if (filter.status?.length) query = query.where('incident.status', 'in', filter.status)
  if (filter.type) query = query.where('incident.type', '=', filter.type)
  if (filter.severity?.length) query = query.where('incident.severity', 'in', filter.severity)
  if (filter.role?.length) query = query.where('incident.role', 'in', filter.role)
  if (filter.group) query = query.where('incident.groupId', '=', filter.group)
  if (filter.q) {
    const patterns = patternsOf(filter.q)
    query = query.where((where) =>
      where.or(
        patterns.flatMap((one) => [where('incident.title', 'ilike', one), where('incident.resourceId', 'ilike', one)]),
      ),
    )
  }
  if (page.before) query = query.where('incident.id', '<', page.before)
  return (await query.execute()).map(toIncident)
}

/**
 * Takes an open, unassigned incident for one run, or says that this very run has it already. Exactly one of many rivals
 * gets true: the statement is the lock.
 */
export async function claimIncident(
  trx: Trx,
  claim: {
    incidentId: string
    attempt: number
    workflowId: string
    role: IncidentRole
    groupId: string
    timeBudgetSeconds: number
  },
): Promise<boolean> {
  const row = await trx
    .updateTable('incident')
    .set({
      status: 'investigating',
      assignedTo: claim.workflowId,
      attempt: claim.attempt,
      role: claim.role,
      groupId: claim.groupId,
      timeBudgetSeconds: claim.timeBudgetSeconds,
      updatedAt: sql`nightshift_now()`,
    })
    .where('id', '=', claim.incidentId)
    .where((where) =>
      where.or([
        where.and([
          where('status', '=', 'open'),
          where('assignedTo', 'is', null),
          where('attempt', '=', claim.attempt - 1),
        ]),
        where.and([where('assignedTo', '=', claim.workflowId), where('attempt', '=', claim.attempt)]),
      ]),
    )
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Locks an incident for the rest of the transaction, so that what is read about it stays true. */
export async function lockIncident(trx: Trx, id: string): Promise<IncidentRow | null> {
  return (await trx.selectFrom('incident').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()) ?? null
}

/** Switches a running incident between working and waiting for a person. The caller holds the incident's lock. */
export async function setWaiting(trx: Trx, id: string, waiting: boolean): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ status: waiting ? 'awaiting_approval' : 'investigating', updatedAt: sql`nightshift_now()` })
    .where('id', '=', id)
    .where('status', 'in', ['investigating', 'awaiting_approval'])
    .execute()
}

export type Closing =
  | {
      status: 'resolved'
      resolution: string
      outcome: ResolveOutcome
      claims: StoredClaim[]
      unshown?: Unshown[]
      confidence: string | null
    }
  | {
      status: 'escalated'
      reason: string
      code: string
      category?: EscalationCategory
      unshown?: Unshown[]
      /** What a person does first; by the code where nobody said. */
      nextStep?: string | null
      /** The person who has it from now on. */
      ownerId?: string
    }
  | { status: 'cancelled'; reason: string; untilSeconds?: number }

type By = {
  actor: string
  stepKey: string | null
  /** The watchdog fences the run it closes over. */
  nextAttempt?: boolean
  turn?: number | null
}

/**
 * Closes an incident, once: the row, the status, what was pending for it (approvals withdrawn, leases released), what its
 * alerts are given from now on, and the notification, all or nothing. `attempt` fences as in `append()`; people and the
 * watchdog pass null. Answers false when it was closed already.
 */
export async function closeIncident(
  trx: Trx,
  id: string,
  attempt: number | null,
  closing: Closing,
  by: By,
): Promise<boolean> {
  const row = await lockIncident(trx, id)
  if (!row) return false
  const action = ({ resolved: 'resolve', escalated: 'escalate', cancelled: 'cancel' } as const)[closing.status]
  if (!(incidentActions[action] as IncidentStatus[]).includes(row.status)) {
    if (row.status === closing.status) return false
    throw new NotAllowedError(id, action, row.status)
  }
  if (by.nextAttempt) {
    await trx
      .updateTable('incident')
      .set({ attempt: row.attempt + 1 })
      .where('id', '=', id)
      .execute()
  }
  await withdrawPending(trx, id, `the incident was ${closing.status}`)
  const report = closing.status === 'escalated' ? await reportOf(trx, row, closing) : null
  const { event } = await append(trx, id, attempt, closingEvent(closing, row.severity, by, report))
  await releaseLeases(trx, id)
  const closed = await trx
    .updateTable('incident')
    .set({
      status: closing.status,
      assignedTo: null,
      // As the row has it: cleansed.
      resolution: event.detail,
      closedAt: event.at,
      updatedAt: event.at,
      closedBy: closedByActor(by.actor),
      outcome: closing.status === 'resolved' ? closing.outcome : null,
      category: closing.status === 'escalated' ? (closing.category ?? null) : null,
      lookWanted: null,
      lookWantedAt: null,
      keptReason: null,
      // What its alerts mean now is for the watchdog to say.
      checkAt: event.at,
      ...(await afterwards(trx, row, closing, event.at)),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await announceClosing(trx, closed, closing, report ? reportText(report) : event.detail)
  return true
}

function closedByActor(actor: string): ClosedBy {
  if (actor === agentActor) return 'agent'
  return actor === systemActor ? 'code' : 'person'
}

/** How long its alerts are given: after a repair until it is looked at, after a cancellation until it counts no more. */
async function afterwards(trx: Trx, row: IncidentRow, closing: Closing, at: string) {
  const inSeconds = (seconds: number) => new Date(Date.parse(at) + seconds * 1000).toISOString()
  if (closing.status === 'cancelled') return { cancelledUntil: inSeconds(closing.untilSeconds ?? cancelledSeconds) }
  if (closing.status === 'escalated') return { ownerId: closing.ownerId ?? null, ownedAt: closing.ownerId ? at : null }
  if (closing.outcome !== 'repaired') return {}
  const settings = await readSettings(trx)
  const firing = await trx
    .selectFrom('alert')
    .select('source')
    .distinct()
    .where('incidentId', '=', row.id)
    .where('status', '=', 'firing')
    .execute()
  // Of a sender without ends only a repeat after this shows that the alert fires on.
  const firesOn = firing.some(({ source }) => settings.value<boolean | null>('alert.ends', source) ?? true)
  return { watchUntil: firesOn ? inSeconds(settings.value<number>('alert.settle', row.type)) : null }
}

async function announceClosing(trx: Trx, closed: IncidentRow, closing: Closing, text: string): Promise<void> {
  // Who took it knows.
  if (closing.status === 'escalated' && !closing.ownerId) {
    const isPage = closing.category !== 'mitigated'
    await enqueueNotification(trx, closed, 'escalated', text, null, { page: isPage })
  }
  if (closing.status === 'resolved' && closing.outcome !== 'expected') {
    await enqueueNotification(trx, closed, 'resolved', text, null, { page: false })
  }
}

/** What a person who is handed the incident reads first, from its rows as they are now. */
async function reportOf(
  trx: Trx,
  row: IncidentRow,
  closing: Extract<Closing, { status: 'escalated' }>,
): Promise<EscalationReport> {
  const first = await trx
    .selectFrom('alert')
    .select('startsAt')
    .where('incidentId', '=', row.id)
    .orderBy('startsAt')
    .limit(1)
    .executeTakeFirst()
  return escalationReport(toIncident(row), await eventsOf(trx, row.id, { attempt: row.attempt }), {
    code: closing.code,
    said: closing.reason,
    nextStep: closing.nextStep ?? null,
    since: first?.startsAt ?? null,
  })
}

function closingEvent(closing: Closing, severity: Severity, by: By, report: EscalationReport | null): NewEvent {
  const common = { actor: by.actor, stepKey: by.stepKey, turn: by.turn ?? null }
  if (closing.status === 'resolved') {
    const { resolution, outcome, claims, confidence, unshown = [] } = closing
    const metadata = { resolution, outcome, claims, confidence, ...(unshown.length > 0 && { unshown }) }
    return { ...common, kind: 'resolved', detail: withMarks(resolution, claims, unshown), metadata }
  }
  if (closing.status === 'escalated') {
    const { reason, code, category, unshown = [] } = closing
    const more = { ...(category && { category }), ...(report && { report }), ...(unshown.length > 0 && { unshown }) }
    const metadata = { reason, code, severity, ...more }
    return { ...common, kind: 'escalated', detail: withMarks(reason, [], unshown), metadata }
  }
  return { ...common, kind: 'cancelled', detail: closing.reason, metadata: { reason: closing.reason } }
}

/** What only a closed incident has. */
const stillOpen = {
  outcome: null,
  category: null,
  closedBy: null,
  watchUntil: null,
  repairConfirmedAt: null,
  cancelledUntil: null,
  remindedAt: null,
  ownerId: null,
  ownedAt: null,
  keptReason: null,
  expectationId: null,
  lookWanted: null,
  lookWantedAt: null,
  checkAt: null,
}

/** Opens a closed incident again for its next attempt; the queue takes it up like a new one. */
export async function reopenIncident(trx: Trx, id: string): Promise<void> {
  const row = await lockIncident(trx, id)
  if (!row) return
  if (!(incidentActions.investigate as IncidentStatus[]).includes(row.status)) {
    throw new NotAllowedError(id, 'investigate', row.status)
  }
  await trx
    .updateTable('incident')
    .set({
      status: 'open',
      assignedTo: null,
      role: null,
      groupId: null,
      queuedAt: null,
      resolution: null,
      closedAt: null,
      reopened: row.reopened + 1,
      ...stillOpen,
      updatedAt: sql`nightshift_now()`,
    })
    .where('id', '=', id)
    .execute()
}
