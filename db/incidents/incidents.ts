import { sql } from 'kysely'
import { newId } from '../../domain/digest.ts'
import type { OpenedIncident } from '../../domain/event-metadata.ts'
import {
  type Incident,
  type IncidentAction,
  type IncidentRole,
  type IncidentStatus,
  incidentActions,
  type Severity,
} from '../../domain/incident.ts'
import { formerTypes } from '../../domain/incident-type.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { idIn } from '../../domain/step-key.ts'
import { cleanse } from '../../safety/redact.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { holdUntilOf } from '../outbox/page-hold.ts'
import type { Scope } from '../scope.ts'
import type { IncidentRow } from '../tables.ts'
import { namedBy } from './named-by.ts'

/**
 * Thrown if the status of an incident does not allow an action. The message names the statuses that
 * allow it.
 */
export class NotAllowedError extends Error {
  override name = 'NotAllowedError' as const
  readonly status: IncidentStatus
  constructor(id: string, action: IncidentAction, status: IncidentStatus) {
    super(`${id} is ${status}: ${action} needs ${incidentActions[action].join(' or ')}`)
    this.status = status
  }
}

/** Facts about an incident that are stored in other tables. */
type About = { firing: number | null; unknown: number | null; ownerName: string | null; alertName: string | null }

/** Converts a row. Without the facts, the state of alerts and the owner's name are unknown. */
export function toIncident(row: IncidentRow & Partial<About>): Incident {
  return {
    id: row.id,
    type: row.type,
    severity: row.severity,
    severitySource: row.severitySource,
    status: row.status,
    title: row.title,
    alertName: row.alertName ?? null,
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
    reviewWantedAt: row.reviewWantedAt,
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
  /**
   * The person who requested the investigation; null if nobody did. This person may not approve
   * critical actions of the investigation.
   */
  requestedBy: string | null
  /** The earlier incident of the alert that opens this incident. */
  previousId?: string | null
}

/** Opens an incident. The caller must announce it with `announceCritical`. */
export async function openIncident(trx: Trx, incident: NewIncident): Promise<Incident> {
  const row = await trx
    .insertInto('incident')
    .values({ id: newId('inc'), ...columnsOf(incident) })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toIncident(row)
}

/** Returns the subject of an incident for the row that opens it. */
export function openedAs({ type, severity, title, resource }: OpenedIncident): OpenedIncident {
  return { type, severity, title, resource }
}

function columnsOf(incident: NewIncident) {
  return {
    type: incident.type,
    severity: incident.severity,
    severitySource: incident.severitySource,
    title: cleanse(incident.title),
    resourceKind: incident.resource?.kind ?? null,
    resourceId: incident.resource?.id ?? null,
    requestedBy: incident.requestedBy,
    previousId: incident.previousId ?? null,
  }
}

/** An incident with the log rows that are stored together with it (`firstRows`). */
type WrittenIncident = NewIncident & {
  id: string
  keptReason: string | null
  log: { nextSeq: number; headHash: string; at: string }
}

/** Opens many incidents in one statement. The caller stores their rows and announces them. */
export async function insertIncidents(trx: Trx, incidents: readonly WrittenIncident[]): Promise<void> {
  const rows = incidents.map(({ id, keptReason, log: { nextSeq, headHash, at }, ...incident }, index) => {
    // Keeps the order of the request in the queue, because the times of the incidents differ by a
    // microsecond.
    const createdAt = sql<string>`${at}::timestamptz - make_interval(secs => ${(incidents.length - index) / 1e6}::float8)`
    return { id, keptReason, ...columnsOf(incident), nextSeq, headHash, lastEventAt: at, updatedAt: at, createdAt }
  })
  await trx.insertInto('incident').values(rows).execute()
}

/**
 * Queues the `critical` notification of a critical incident, in the transaction that opens it. The
 * page of the incident may be delayed.
 */
export async function announceCritical(trx: Trx, id: string): Promise<void> {
  const row = await lockIncident(trx, id)
  if (row?.severity !== 'critical') return
  await enqueueNotification(trx, row, 'critical', null, { holdUntil: await holdUntilOf(trx, row) })
}

/** Selects incidents together with facts from other tables. */
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
      select
        .selectFrom('alert')
        .select('alert.name')
        .whereRef('alert.incidentId', '=', 'incident.id')
        .orderBy('alert.id')
        .limit(1)
        .as('alertName'),
      select.selectFrom('operator').select('name').whereRef('operator.id', '=', 'incident.ownerId').as('ownerName'),
    ])
}

export async function incidentById(db: Db | Trx, id: string): Promise<Incident | null> {
  const row = await selectIncidents(db).where('incident.id', '=', id).executeTakeFirst()
  return row ? toIncident(row) : null
}

/** Returns the incidents with these ids that exist, in no particular order. */
export async function incidentsById({ db }: Scope, ids: string[]): Promise<Incident[]> {
  if (ids.length === 0) return []
  return (await selectIncidents(db).where('incident.id', 'in', ids).execute()).map(toIncident)
}

/** Reads the status of an incident for its run. Null if the incident no longer exists. */
export async function incidentState(db: Db | Trx, id: string) {
  const columns = ['status', 'severity', 'assignedTo', 'attempt', 'headHash'] as const
  return (await db.selectFrom('incident').select(columns).where('id', '=', id).executeTakeFirst()) ?? null
}

export type IncidentFilter = {
  status?: IncidentStatus[]
  type?: string
  severity?: Severity[]
  role?: IncidentRole[]
  group?: string
  /** `me`: the reader. `none`: nobody. Otherwise the name of a person. */
  owner?: string
  /** Times in RFC 3339. Lists incidents that were opened from `since` on and before `until`. */
  since?: string
  until?: string
  q?: string
  idPrefix?: string
}

/** Lists incidents, the newest first, by keyset. `before`: the last id of the previous page. */
export async function listIncidents(
  { db, reader }: Scope,
  filter: IncidentFilter,
  page: { before: string | null; limit: number },
): Promise<Incident[]> {
  let query = selectIncidents(db).orderBy('incident.id', 'desc').limit(page.limit)
  if (filter.status?.length) query = query.where('incident.status', 'in', filter.status)
  if (filter.type) query = query.where('incident.type', 'in', [filter.type, ...formerTypes(filter.type)])
  if (filter.severity?.length) query = query.where('incident.severity', 'in', filter.severity)
  if (filter.role?.length) query = query.where('incident.role', 'in', filter.role)
  if (filter.group) query = query.where('incident.groupId', '=', filter.group)
  if (filter.since) query = query.where('incident.createdAt', '>=', filter.since)
  if (filter.until) query = query.where('incident.createdAt', '<', filter.until)
  if (filter.owner === 'none') query = query.where('incident.ownerId', 'is', null)
  else if (filter.owner === 'me')
    query = query.where('incident.ownerId', '=', reader === 'system' ? null : reader.operatorId)
  else if (filter.owner)
    query = query.where(
      'incident.ownerId',
      '=',
      db.selectFrom('operator').select('id').where('name', '=', filter.owner),
    )
  if (filter.idPrefix) query = query.where(sql<boolean>`starts_with(incident.id, ${filter.idPrefix})`)
  const named = idIn(filter.q)
  if (named?.startsWith('inc_')) query = query.where('incident.id', '=', named)
  else if (named)
    query = query.where('incident.id', '=', db.selectFrom('approval').select('incidentId').where('id', '=', named))
  else if (filter.q) query = query.where(await namedBy(db, filter.q))
  if (page.before) query = query.where('incident.id', '<', page.before)
  return (await query.execute()).map(toIncident)
}

/**
 * Claims an open incident that no run has for one run, or confirms that this run has the incident.
 * Of several simultaneous runs exactly one gets true, because the statement itself is the lock.
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
      updatedAt: now,
    })
    .where('id', '=', claim.incidentId)
    .where((where) =>
      where.or([
        where.and([
          where('status', '=', 'open'),
          where('assignedTo', 'is', null),
          where('keptReason', 'is', null),
          where('attempt', '=', claim.attempt - 1),
        ]),
        where.and([where('assignedTo', '=', claim.workflowId), where('attempt', '=', claim.attempt)]),
      ]),
    )
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Locks an incident until the transaction ends, so that its facts do not change. */
export async function lockIncident(trx: Trx, id: string): Promise<IncidentRow | null> {
  return (await trx.selectFrom('incident').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()) ?? null
}

/**
 * Switches an incident that is being investigated between working and waiting. The caller holds the
 * incident's lock.
 */
export async function setWaiting(trx: Trx, id: string, waiting: boolean): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ status: waiting ? 'awaiting_approval' : 'investigating', updatedAt: now })
    .where('id', '=', id)
    .where('status', 'in', ['investigating', 'awaiting_approval'])
    .execute()
}

/** Lists ids of incidents in the order of their creation. */
export async function incidentIdsAfter(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db.selectFrom('incident').select('id').where('id', '>', after).orderBy('id').limit(limit).execute()
  return rows.map(({ id }) => id)
}
