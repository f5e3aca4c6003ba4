import { sql } from 'kysely'
import { type InvestigateFilter, keptReasonOf } from '../../domain/admission.ts'
import type { Alert, IngestOutcome } from '../../domain/alert.ts'
import type { AlertResource } from '../../domain/alert-resource.ts'
import { newId } from '../../domain/digest.ts'
import type { NewEvent } from '../../domain/event.ts'
import type { OpenedIncident } from '../../domain/event-metadata.ts'
import { incidentTypeOf } from '../../domain/incident-type.ts'
import type { ResourceRule } from '../../domain/resource-rules.ts'
import { describeEndReason, describeStateWord } from '../../domain/unproven-end.ts'
import { databaseTime, now } from '../clock.ts'
import { type Db, escapeLike, type Trx } from '../connect.ts'
import { announceCritical, insertIncidents, openedAs } from '../incidents/incidents.ts'
import { withAlertWords } from '../incidents/named-by.ts'
import { notInvestigatedEvent } from '../incidents/queue.ts'
import { findAlertResources } from '../inventory/resources.ts'
import { type LifecycleEffect, noEffect } from '../lifecycle/apply-lifecycle.ts'
import { append, firstRows, insertRows } from '../log/append.ts'
import { hasDestination } from '../outbox/destinations.ts'
import type { Scope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import type { AlertRow } from '../tables.ts'
import { isAbout, namesOfThing } from './active-alerts.ts'

export async function alertsOf(db: Db | Trx, incidentId: string): Promise<AlertRow[]> {
  return await db
    .selectFrom('alert')
    .selectAll()
    .where('incidentId', '=', incidentId)
    .orderBy('startsAt')
    .limit(50)
    .execute()
}

/** Lists received alerts, newest first. */
export async function listAlerts(
  { db }: Scope,
  filter: { status?: AlertRow['status']; source?: string; q?: string; resource?: string; isUnmatched?: boolean },
  page: { before: string | null; limit: number },
): Promise<AlertRow[]> {
  let query = db.selectFrom('alert').selectAll().orderBy('id', 'desc').limit(page.limit)
  if (filter.status) query = query.where('status', '=', filter.status)
  if (filter.source) query = query.where('source', '=', filter.source)
  const { q } = filter
  if (q) {
    const pattern = `%${escapeLike(q)}%`
    query = query.where((where) =>
      where.or([
        where('name', 'ilike', pattern),
        where('fingerprint', 'ilike', pattern),
        where(sql<string>`raw->>'title'`, 'ilike', pattern),
        sql<boolean>`alert.id in (select named.id from ${withAlertWords(q)})`,
      ]),
    )
  }
  if (filter.resource) query = query.where(isAbout(await namesOfThing(db, filter.resource)))
  if (filter.isUnmatched) query = query.where(isUnmatched)
  if (page.before) query = query.where('id', '<', page.before)
  return await query.execute()
}

/** Whether the incident of the alert has no known resource. */
export const isUnmatched = sql<boolean>`alert.incident_id in (select id from incident where resource_kind is null)`

/**
 * Returns how the resource of an incident was searched for, if its name was ambiguous; otherwise
 * null.
 */
export async function ambiguityOf(db: Db, incidentId: string): Promise<Omit<AlertResource, 'resource'> | null> {
  const row = await db
    .selectFrom('incidentEvent')
    .select(sql<Omit<AlertResource, 'resource'> | null>`metadata->'about'`.as('about'))
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'alert_received')
    .where(sql<boolean>`jsonb_array_length(coalesce(metadata->'about'->'candidates', '[]')) > 0`)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.about ?? null
}

/**
 * Opens an incident for each of these alerts, with one statement for each table. The caller holds
 * the locks of their fingerprints, and knows that each alert is new and not expected. Earlier
 * incidents, attempts and reads therefore do not matter.
 */
export async function openIncidents(trx: Trx, alerts: readonly Alert[]): Promise<IngestResult[]> {
  const settings = await readSettings(trx)
  const found = await findAlertResources(
    trx,
    alerts.map(({ labels }) => labels),
    settings.value<ResourceRule[]>('alert.resource_labels'),
  )
  const at = await databaseTime(trx)
  const opened = alerts.map((alert, index) => {
    const id = newId('inc')
    const type = incidentTypeOf(alert.labels, alert.name)
    const filter = settings.value<InvestigateFilter>('agent.investigate', type)
    const keptReason = keptReasonOf(filter, alert)
    const about = found[index] ?? null
    const { severity, severitySource, title } = alert
    const incident = { type, severity, severitySource, title, requestedBy: null, resource: about?.resource ?? null }
    const events: NewEvent[] = [alertEvent(alert, 'opened', 1, { about, incident })]
    if (keptReason !== null) events.push(notInvestigatedEvent(keptReason))
    return { id, alert, keptReason, incident, rows: firstRows(id, at, events) }
  })
  await insertIncidents(
    trx,
    opened.map(({ id, incident, keptReason, rows }) => ({
      id,
      keptReason,
      ...incident,
      log: { nextSeq: rows.length + 1, headHash: rows.at(-1)!.hash, at },
    })),
  )
  await storeAlerts(
    trx,
    opened.map(({ id, alert }) => ({ alert, incidentId: id })),
  )
  await insertRows(
    trx,
    opened.flatMap(({ rows }) => rows),
  )
  if (await hasDestination(trx, 'critical'))
    for (const { id } of opened.filter(isCritical)) await announceCritical(trx, id)
  return opened.map(({ alert, id }) => ingestResult(alert, id, 'opened', { wakesQueue: true, tellRun: null }))
}

const isCritical = ({ alert }: { alert: Alert }): boolean => alert.severity === 'critical'

/**
 * Finds the occurrence of an alert that fires or may fire. A sender and a fingerprint have at most
 * one.
 */
export async function currentOccurrence(trx: Trx, alert: Alert): Promise<AlertRow | null> {
  const row = await trx
    .selectFrom('alert')
    .selectAll()
    .where('source', '=', alert.source)
    .where('fingerprint', '=', alert.fingerprint)
    .where('status', 'in', ['firing', 'unknown'])
    .executeTakeFirst()
  return row ?? null
}

/**
 * Finds the newest occurrence of an alert that has ended. `early`: the end was received before the
 * begin, with the same start.
 */
export async function lastEndedOccurrence(trx: Trx, alert: Alert) {
  return await trx
    .selectFrom('alert')
    .select(['id', 'incidentId', 'endReason'])
    .select(
      sql<boolean>`incident_id is null and start_given and starts_at = ${alert.startsAt}::timestamptz`.as('early'),
    )
    .where('source', '=', alert.source)
    .where('fingerprint', '=', alert.fingerprint)
    .where('status', '=', 'resolved')
    .orderBy('lastSeenAt', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Counts a repeat of an occurrence that has ended. Changes nothing else. */
export async function countSight(trx: Trx, alertId: string): Promise<void> {
  await trx
    .updateTable('alert')
    .set((update) => ({ count: update('count', '+', 1), lastSeenAt: now }))
    .where('id', '=', alertId)
    .execute()
}

/** Removes the reason of an unproven end when the alert fires again. The log keeps the reason. */
export async function forgetEndReason(trx: Trx, alertId: string): Promise<void> {
  await trx.updateTable('alert').set({ endReason: null }).where('id', '=', alertId).execute()
}

/**
 * Records a repeat of an alert that fires. If the start changes with every request, the newest
 * start is stored.
 */
export async function countRepeat(trx: Trx, alert: Alert, current: AlertRow): Promise<void> {
  await trx
    .updateTable('alert')
    .set((update) => ({
      status: 'firing' as const,
      unknownSince: null,
      unknownWhy: null,
      endedBy: null,
      endReason: null,
      stateWord: alert.stateWord ?? null,
      endReceivedAt: null,
      count: update('count', '+', 1),
      lastSeenAt: now,
      ...(isSameStart(alert, current)
        ? { startSeen: update('startSeen', '+', 1) }
        : { startsAt: alert.startsAt, startSeen: 1, startReceivedAt: now }),
    }))
    .where('id', '=', current.id)
    .execute()
}

/** Records repeats of many alerts in one statement. */
export async function countRepeats(trx: Trx, sights: readonly { alert: Alert; current: AlertRow }[]): Promise<void> {
  const seen = sights.map(({ alert, current }) => ({
    id: current.id,
    start: isSameStart(alert, current) ? null : alert.startsAt,
  }))
  await sql`
    update alert set
      status = 'firing', unknown_since = null, unknown_why = null, end_received_at = null,
      count = count + 1, last_seen_at = nightshift_now(),
      start_seen = case when seen.start is null then start_seen + 1 else 1 end,
      starts_at = coalesce(seen.start, starts_at),
      start_received_at = case when seen.start is null then start_received_at else nightshift_now() end
    from jsonb_to_recordset(${JSON.stringify(seen)}::jsonb) as seen (id text, start timestamptz)
    where alert.id = seen.id`.execute(trx)
}

const isSameStart = (alert: Alert, current: AlertRow): boolean =>
  alert.startGiven === false || Date.parse(alert.startsAt) === Date.parse(current.startsAt)

/** Ends an occurrence that got no end, because a new occurrence began after its last repeat. */
export async function endUnseen(trx: Trx, current: AlertRow): Promise<void> {
  await trx
    .updateTable('alert')
    .set({ status: 'resolved', endsAt: current.lastSeenAt, endReceivedAt: current.lastSeenAt })
    .where('id', '=', current.id)
    .execute()
}

/**
 * Stores a row for an occurrence that begins, or for an end without a begin (`incidentId` is null).
 */
export async function storeAlert(trx: Trx, alert: Alert, incidentId: string | null): Promise<void> {
  await storeAlerts(trx, [{ alert, incidentId }])
}

async function storeAlerts(
  trx: Trx,
  occurrences: readonly { alert: Alert; incidentId: string | null }[],
): Promise<void> {
  const rows = occurrences.map(({ alert, incidentId }) => ({
    id: newId('alr'),
    source: alert.source,
    fingerprint: alert.fingerprint,
    status: alert.status,
    name: alert.name,
    labels: JSON.stringify(alert.labels),
    annotations: JSON.stringify(alert.annotations),
    links: JSON.stringify(alert.links),
    groupKey: alert.groupKey,
    sender: alert.sender ?? null,
    startsAt: alert.startsAt,
    startGiven: alert.startGiven !== false,
    endsAt: alert.endsAt,
    endReceivedAt: alert.status === 'resolved' ? now : null,
    endReason: alert.status === 'resolved' ? (alert.endReason ?? null) : null,
    stateWord: alert.stateWord ?? null,
    incidentId,
    raw: JSON.stringify(alert),
  }))
  await trx.insertInto('alert').values(rows).execute()
}

/** Appends an alert to the log of its incident, with its effect on the incident. */
export async function appendAlert(
  trx: Trx,
  incidentId: string,
  alert: Alert,
  outcome: IngestOutcome,
  opening: Opening | null = null,
): Promise<void> {
  const { count } = await trx
    .selectFrom('alert')
    .select(({ fn }) => fn.coalesce(fn.sum<number>('count'), sql<number>`0`).as('count'))
    .where('incidentId', '=', incidentId)
    .executeTakeFirstOrThrow()
  await append(trx, incidentId, null, alertEvent(alert, outcome, Number(count), opening))
}

/** The incident that an alert opened, and how its resource was searched for. */
type Opening = { about: AlertResource | null; incident: OpenedIncident }

/**
 * Builds the log row about an alert. `count`: how many requests have delivered alerts of this
 * incident, the current request included.
 */
function alertEvent(
  alert: Alert,
  outcome: IngestOutcome,
  count: number,
  opening: Opening | null = null,
): NewEvent<'alert_received'> {
  const about = opening?.about ?? null
  const notes: string[] = []
  if (alert.severitySource === 'default') {
    notes.push(
      `severity ${alert.severity} by default: the sender reported ${alert.severityWord === null ? 'nothing' : JSON.stringify(alert.severityWord)}`,
    )
  }
  if (alert.stateWord !== undefined) notes.push(describeStateWord(alert.stateWord))
  if (alert.truncatedAlerts > 0) notes.push(`the sender cut ${alert.truncatedAlerts} more alerts of this group`)
  if (alert.cappedFields.length > 0) notes.push(`shortened: ${alert.cappedFields.join(', ')}`)
  notes.push(...(alert.timeNotes ?? []))
  if (about && about.candidates.length > 0) notes.push(`its resource is ambiguous: ${about.candidates.join(' or ')}`)
  const what = alert.status === 'firing' ? 'Alert received' : outcome === 'unproven' ? 'No end' : 'Alert ended'
  if (outcome === 'unproven' && alert.endReason !== undefined)
    notes.push(`${describeEndReason(alert.endReason)}; nothing shows that the problem is over`)
  return {
    kind: 'alert_received',
    actor: `source:${alert.source}`,
    detail: [`${what}: ${alert.title}`, ...notes].join('; '),
    metadata: {
      fingerprint: alert.fingerprint,
      source: alert.source,
      status: alert.status,
      count,
      labels: alert.labels,
      severityWord: alert.severityWord,
      severitySource: alert.severitySource,
      truncatedAlerts: alert.truncatedAlerts,
      cappedFields: alert.cappedFields,
      outcome,
      ...(alert.endReason !== undefined && { endReason: alert.endReason }),
      ...(opening && { opened: openedAs(opening.incident) }),
      ...(about && { about: { by: about.by, tried: about.tried, candidates: about.candidates } }),
    },
  }
}

export type IngestResult = {
  fingerprint: string
  incidentId: string | null
  outcome: IngestOutcome | 'refused'
  /** Why the alert was refused; absent if it was stored. */
  reason?: string
  /** Whether the queue has a new or reopened incident to investigate. */
  wakesQueue: boolean
  /** The run to inform that all alerts of its incident are over; null if there is no such run. */
  tellRun: { incidentId: string; attempt: number } | null
}

export function ingestResult(
  alert: Alert,
  incidentId: string | null,
  outcome: IngestOutcome,
  effect: LifecycleEffect = noEffect,
): IngestResult {
  return { fingerprint: alert.fingerprint, incidentId, outcome, ...effect }
}
