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
type About = { firing: number | null; unknown: number | null; ownerName: string | null; alertName: string | null }

/** An incident for the rest of the code. Without `about`, alerts and owner's name are unknown. */
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
  /** The person who asked for it, if any: never among those who approve its critical actions. */
  requestedBy: string | null
  /** The incident it follows: the same alert, earlier. */
  previousId?: string | null
}

/** Opens an incident. The caller announces it: `announceCritical`. */
export async function openIncident(trx: Trx, incident: NewIncident): Promise<Incident> {
  const row = await trx
    .insertInto('incident')
    .values({ id: newId('inc'), ...columnsOf(incident) })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toIncident(row)
}

/** What an incident is about, for the row that opens it. */
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

/** An incident with the rows of its log that are stored beside it (`firstRows`). */
type WrittenIncident = NewIncident & {
  id: string
  keptReason: string | null
  log: { nextSeq: number; headHash: string; at: string }
}

/** Opens many incidents in one statement. The caller stores their rows and announces them. */
export async function insertIncidents(trx: Trx, incidents: readonly WrittenIncident[]): Promise<void> {
  const rows = incidents.map(({ id, keptReason, log: { nextSeq, headHash, at }, ...incident }, index) => {
    // The order of a body is the order of the queue: each a microsecond after the one before.
    const createdAt = sql<string>`${at}::timestamptz - make_interval(secs => ${(incidents.length - index) / 1e6}::float8)`
    return { id, keptReason, ...columnsOf(incident), nextSeq, headHash, lastEventAt: at, updatedAt: at, createdAt }
  })
  await trx.insertInto('incident').values(rows).execute()
}

/**
 * Queues a critical incident's `critical` notification, in the opening transaction. A page may have
 * to wait.
 */
export async function announceCritical(trx: Trx, id: string): Promise<void> {
  const row = await lockIncident(trx, id)
  if (row?.severity !== 'critical') return
  await enqueueNotification(trx, row, 'critical', null, { holdUntil: await holdUntilOf(trx, row) })
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

/** Those of these incidents that there are, in no order. */
export async function incidentsById({ db }: Scope, ids: string[]): Promise<Incident[]> {
  if (ids.length === 0) return []
  return (await selectIncidents(db).where('incident.id', 'in', ids).execute()).map(toIncident)
}

/** The worker of an incident and its ending: a run asks about its own. Null when it is gone. */
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
  /** `me`: the reader; `none`: nobody; else the name of a person. */
  owner?: string
  /** RFC 3339: opened then or later, and before. */
  since?: string
  until?: string
  q?: string
  idPrefix?: string
}

/** Newest first, by keyset: `before` is the id of the last one already seen. */
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
 * Takes an open, unassigned incident for one run, or says that this run has it. Exactly one of many
 * rivals gets true: the statement is the lock.
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

/** Locks an incident for the rest of the transaction, so that what is read about it stays true. */
export async function lockIncident(trx: Trx, id: string): Promise<IncidentRow | null> {
  return (await trx.selectFrom('incident').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()) ?? null
}

/** Switches a running incident between working and waiting for a person. Its lock is held. */
export async function setWaiting(trx: Trx, id: string, waiting: boolean): Promise<void> {
  await trx
    .updateTable('incident')
    .set({ status: waiting ? 'awaiting_approval' : 'investigating', updatedAt: now })
    .where('id', '=', id)
    .where('status', 'in', ['investigating', 'awaiting_approval'])
    .execute()
}

/** Ids in their own order, which is that of their making. */
export async function incidentIdsAfter(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db.selectFrom('incident').select('id').where('id', '>', after).orderBy('id').limit(limit).execute()
  return rows.map(({ id }) => id)
}
