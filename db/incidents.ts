import { sql } from 'kysely'
import { type StoredClaim, type Unshown, withMarks } from '../domain/claim.ts'
import type { NewEvent } from '../domain/event.ts'
import { newId } from '../domain/id.ts'
import {
  type Incident,
  type IncidentAction,
  type IncidentRole,
  type IncidentStatus,
  incidentActions,
  type ResolveOutcome,
  type Severity,
} from '../domain/incident.ts'
import type { ResourceRef } from '../domain/resource.ts'
import { cleanse } from '../safety/cleanse.ts'
import { append } from './append.ts'
import { withdrawPending } from './approvals/settle.ts'
import type { Db, Trx } from './connect.ts'
import { enqueueNotification } from './deliveries.ts'
import { releaseLeases } from './leases.ts'
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

export function toIncident(row: IncidentRow): Incident {
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
}

/** Opens an incident; a critical one is also queued for the `critical` webhook, in the same transaction. */
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
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  if (row.severity === 'critical') await enqueueNotification(trx, row, 'critical', null)
  return toIncident(row)
}

export async function incidentById(db: Db | Trx, id: string): Promise<Incident | null> {
  const row = await db.selectFrom('incident').selectAll().where('id', '=', id).executeTakeFirst()
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
  let query = db.selectFrom('incident').selectAll().orderBy('id', 'desc').limit(page.limit)
  if (filter.status?.length) query = query.where('status', 'in', filter.status)
  if (filter.type) query = query.where('type', '=', filter.type)
  if (filter.severity?.length) query = query.where('severity', 'in', filter.severity)
  if (filter.role?.length) query = query.where('role', 'in', filter.role)
  if (filter.group) query = query.where('groupId', '=', filter.group)
  if (filter.q) {
    const patterns = patternsOf(filter.q)
    query = query.where((where) =>
      where.or(patterns.flatMap((one) => [where('title', 'ilike', one), where('resourceId', 'ilike', one)])),
    )
  }
  if (page.before) query = query.where('id', '<', page.before)
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
  | { status: 'escalated'; reason: string; code: string; unshown?: Unshown[] }
  | { status: 'cancelled'; reason: string }

/**
 * Closes an incident, once: the row, the status, what was pending for it (approvals withdrawn, leases released) and the
 * `escalated` notification, all or nothing. `attempt` fences as in `append()`; people and the watchdog pass null. Answers
 * false when it was closed already. The watchdog's `nextAttempt` fences the run it speaks over.
 */
export async function closeIncident(
  trx: Trx,
  id: string,
  attempt: number | null,
  closing: Closing,
  by: { actor: string; stepKey: string | null; nextAttempt?: boolean; turn?: number | null },
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
  const { event } = await append(trx, id, attempt, closingEvent(closing, row.severity, by))
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
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  if (closing.status === 'escalated') await enqueueNotification(trx, closed, 'escalated', event.detail)
  return true
}

function closingEvent(
  closing: Closing,
  severity: Severity,
  by: { actor: string; stepKey: string | null; turn?: number | null },
): NewEvent {
  const common = { actor: by.actor, stepKey: by.stepKey, turn: by.turn ?? null }
  if (closing.status === 'resolved') {
    const { resolution, outcome, claims, confidence, unshown = [] } = closing
    const metadata = { resolution, outcome, claims, confidence, ...(unshown.length > 0 && { unshown }) }
    return { ...common, kind: 'resolved', detail: withMarks(resolution, claims, unshown), metadata }
  }
  if (closing.status === 'escalated') {
    const { reason, code, unshown = [] } = closing
    const metadata = { reason, code, severity, ...(unshown.length > 0 && { unshown }) }
    return { ...common, kind: 'escalated', detail: withMarks(reason, [], unshown), metadata }
  }
  return { ...common, kind: 'cancelled', detail: closing.reason, metadata: { reason: closing.reason } }
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
      updatedAt: sql`nightshift_now()`,
    })
    .where('id', '=', id)
    .execute()
}
