import type { Alert } from '../../domain/alert.ts'
import { incidentTypeOf } from '../../domain/incident-type.ts'
import {
  attemptsPerDay,
  decideLifecycle,
  type Happening,
  type LifecycleDecision,
  nextCheckMs,
  reopenText,
} from '../../domain/lifecycle.ts'
import { endsOccurrence, isNewOccurrence, type SeenAlert, type StoredOccurrence } from '../../domain/occurrence.ts'
import type { ResourceRule } from '../../domain/resource-rules.ts'
import { isSeriesGone } from '../../domain/unproven-end.ts'
import { databaseTime, now } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { announceCritical, lockIncident, openIncident } from '../incidents/incidents.ts'
import { keepIfNotInvestigated } from '../incidents/queue.ts'
import { findAlertResources } from '../inventory/resources.ts'
import {
  applyLifecycle,
  escalateByTable,
  type LifecycleEffect,
  reopenBecause,
  scheduleCheck,
  storeCheck,
  tellReopened,
} from '../lifecycle/apply-lifecycle.ts'
import { attemptsToday } from '../lifecycle/attempts.ts'
import { lifecycleRules, lifecycleView } from '../lifecycle/read-lifecycle.ts'
import { append } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { settlePage } from '../outbox/page-hold.ts'
import { readSettings } from '../settings.ts'
import type { AlertRow, IncidentRow } from '../tables.ts'
import { loseRepair } from '../trust/lose.ts'
import {
  appendAlert,
  countRepeat,
  countSight,
  currentOccurrence,
  endUnseen,
  forgetEndReason,
  type IngestResult,
  ingestResult,
  lastEndedOccurrence,
  storeAlert,
} from './alerts.ts'
import { awaitExpectedLook } from './expectations.ts'
import { noteMassEnd } from './mass-resolve.ts'

/**
 * Stores one alert whose secrets are removed, and decides about its incident. The caller holds the
 * lock of the alert's fingerprint (`ingest-body.ts`).
 */
export async function takeAlert(trx: Trx, alert: Alert): Promise<IngestResult> {
  return alert.status === 'firing' ? await fire(trx, alert) : await end(trx, alert)
}

async function fire(trx: Trx, alert: Alert): Promise<IngestResult> {
  const current = await currentOccurrence(trx, alert)
  if (current) {
    if (alert.endReason !== undefined) return await endUnproven(trx, alert, current, alert.endReason)
    // Treats a later start from a foreign sender as a repeat. Otherwise this sender could take over
    // the alert and end it with two requests.
    const isNew = !isForeign(alert, current) && isNewOccurrence(await seenAlert(trx, alert), storedOccurrence(current))
    return isNew ? await beginAgain(trx, alert, current) : await repeat(trx, alert, current)
  }
  const last = await lastEndedOccurrence(trx, alert)
  if (last?.early) {
    // Stores only the count: the end of this occurrence was received first, so it is stored as
    // ended.
    await countSight(trx, last.id)
    return ingestResult(alert, last.incidentId, 'orphan')
  }
  if (last?.endReason) await forgetEndReason(trx, last.id)
  if (last?.incidentId) return await occurrence(trx, alert, last.incidentId)
  return await open(trx, alert, null)
}

async function seenAlert(trx: Trx, alert: Alert): Promise<SeenAlert> {
  return seenAt(alert, await databaseTime(trx))
}

export function seenAt(alert: Alert, now: string): SeenAlert {
  const startsAtMs = alert.startGiven !== false ? Date.parse(alert.startsAt) : null
  return { startsAtMs, receivedAtMs: Date.parse(now) }
}

export function storedOccurrence(row: AlertRow): StoredOccurrence {
  return {
    startsAtMs: Date.parse(row.startsAt),
    isStartGiven: row.startGiven,
    startSeen: row.startSeen,
    startReceivedAtMs: Date.parse(row.startReceivedAt),
    lastSeenMs: Date.parse(row.lastSeenAt),
  }
}

/** Handles a repeat of an alert. Most repeats change only a counter and lock no incident. */
async function repeat(trx: Trx, alert: Alert, current: AlertRow): Promise<IngestResult> {
  if (current.incidentId === null) {
    await countRepeat(trx, alert, current)
    return ingestResult(alert, null, 'repeated')
  }
  const isNewWord = alert.stateWord !== undefined && alert.stateWord !== current.stateWord
  if (
    !isNewWord &&
    current.status === 'firing' &&
    (await onlyCounts(trx, [current.incidentId])).has(current.incidentId)
  ) {
    await countRepeat(trx, alert, current)
    return ingestResult(alert, current.incidentId, 'repeated')
  }
  const locked = await decide(trx, current.incidentId, 'repeat')
  if (current.status === 'unknown' || isNewWord) await appendAlert(trx, current.incidentId, alert, 'repeated')
  return await follow(trx, alert, locked, current)
}

/**
 * Finds the incidents whose repeated alerts are only counted. Reads only the incidents' rows. If a
 * row changes meanwhile, a repeat may only be counted although it could do more.
 */
export async function onlyCounts(trx: Trx, incidentIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (incidentIds.length === 0) return new Set()
  const rows = await trx
    .selectFrom('incident')
    .select(['id', 'status', 'closedBy', 'outcome', 'watchUntil'])
    .where('id', 'in', incidentIds)
    .execute()
  return new Set(rows.filter(isOnlyCounted).map(({ id }) => id))
}

function isOnlyCounted(row: Pick<IncidentRow, 'status' | 'closedBy' | 'outcome' | 'watchUntil'>): boolean {
  const { status, closedBy, outcome } = row
  if (status === 'open' || status === 'investigating' || status === 'awaiting_approval') return true
  if (status === 'escalated') return closedBy !== null
  // Excludes incidents that are cancelled or expected until a time that is only in the table.
  if (status === 'cancelled' || outcome === 'expected') return false
  return closedBy === 'person' || (closedBy === 'agent' && outcome === 'repaired' && row.watchUntil !== null)
}

/** Handles a new start without an end: the stored occurrence is over, and another begins. */
async function beginAgain(trx: Trx, alert: Alert, current: AlertRow): Promise<IngestResult> {
  if (current.incidentId !== null) await lockIncident(trx, current.incidentId)
  await endUnseen(trx, current)
  return current.incidentId === null ? await open(trx, alert, null) : await occurrence(trx, alert, current.incidentId)
}

async function occurrence(trx: Trx, alert: Alert, incidentId: string): Promise<IngestResult> {
  return await follow(trx, alert, await decide(trx, incidentId, 'occurrence'), null)
}

/** `nextCheckAtMs`: when the watchdog must decide again if nothing happens before. */
type Decided = { row: IncidentRow; decision: LifecycleDecision; nextCheckAtMs: number | null }

/**
 * Thrown if retention removed the incident and its alert after they were read. If the alert is
 * processed again, it is new.
 */
export class IncidentGoneError extends Error {
  override name = 'IncidentGoneError' as const
}

async function decide(trx: Trx, incidentId: string, happening: Happening): Promise<Decided> {
  const row = await lockIncident(trx, incidentId)
  if (!row) throw new IncidentGoneError(`an alert names ${incidentId}, which is gone`)
  const settings = await readSettings(trx)
  const view = await lifecycleView(trx, row, settings)
  const rules = lifecycleRules(settings, row.type)
  return { row, decision: decideLifecycle(view, happening, rules), nextCheckAtMs: nextCheckMs(view, rules) }
}

/**
 * Executes a decision about a firing alert. `current`: the stored occurrence that the alert
 * repeats. If null, a row for a new occurrence is stored.
 */
async function follow(trx: Trx, alert: Alert, decided: Decided, current: AlertRow | null): Promise<IngestResult> {
  const { row, decision } = decided
  if (decision.do === 'open_linked') {
    if (current) await endUnseen(trx, current)
    await loseRepair(trx, row, reopenText.came_back)
    return await open(trx, alert, row.id)
  }
  if (current) await countRepeat(trx, alert, current)
  else await storeAlert(trx, alert, row.id)

  switch (decision.do) {
    case 'flap':
    case 'flap_tell_owner':
      await appendAlert(trx, row.id, alert, 'flapped')
      if (decision.do === 'flap_tell_owner') await tellOwner(trx, row.id)
      await scheduleCheck(trx, row.id)
      return ingestResult(alert, row.id, 'flapped')
    case 'reopen':
      await appendAlert(trx, row.id, alert, 'reopened')
      await reopenBecause(trx, row, decision.why)
      if (!(await awaitExpectedLook(trx, row.id, alert))) await tellReopened(trx, row.id, decision.why)
      await scheduleCheck(trx, row.id)
      return ingestResult(alert, row.id, 'reopened', { wakesQueue: true, tellRun: null })
    case 'escalate':
      await appendAlert(trx, row.id, alert, 'escalated')
      await escalateByTable(trx, row, decision.code)
      return ingestResult(alert, row.id, 'escalated')
    default: {
      const effect = await applyLifecycle(trx, row, decision)
      if (!current) await appendAlert(trx, row.id, alert, 'repeated')
      await scheduleCheck(trx, row.id)
      return ingestResult(alert, row.id, 'repeated', effect)
    }
  }
}

/**
 * Opens an incident for an alert. An incident that follows an earlier incident names the earlier
 * one and shares its attempts of the day.
 */
async function open(trx: Trx, alert: Alert, previousId: string | null): Promise<IngestResult> {
  const rules = (await readSettings(trx)).value<ResourceRule[]>('alert.resource_labels')
  const [about = null] = await findAlertResources(trx, [alert.labels], rules)
  const incident = await openIncident(trx, {
    type: incidentTypeOf(alert.labels, alert.name),
    severity: alert.severity,
    severitySource: alert.severitySource,
    title: alert.title,
    resource: about?.resource ?? null,
    requestedBy: null,
    previousId,
  })
  await storeAlert(trx, alert, incident.id)
  await appendAlert(trx, incident.id, alert, 'opened', { about, incident })
  if ((await attemptsToday(trx, incident.id)) >= attemptsPerDay) {
    const row = await lockIncident(trx, incident.id)
    if (row) await escalateByTable(trx, row, 'DOES_NOT_LAST')
    return ingestResult(alert, incident.id, 'escalated')
  }
  const isExpected = await awaitExpectedLook(trx, incident.id, alert)
  if (!isExpected) await announceCritical(trx, incident.id)
  await keepIfNotInvestigated(trx, incident.id, alert.labels)
  return ingestResult(alert, incident.id, 'opened', { wakesQueue: true, tellRun: null })
}

async function end(trx: Trx, alert: Alert): Promise<IngestResult> {
  const current = await currentOccurrence(trx, alert)
  if (!current) {
    const last = await lastEndedOccurrence(trx, alert)
    if (!last) {
      await storeAlert(trx, alert, null)
      return ingestResult(alert, null, 'orphan')
    }
    await countSight(trx, last.id)
    return ingestResult(alert, last.incidentId, last.incidentId ? 'resolved' : 'orphan')
  }
  const endsAtMs = alert.endsAt === null ? null : Date.parse(alert.endsAt)
  if (!endsOccurrence({ ...(await seenAlert(trx, alert)), endsAtMs }, storedOccurrence(current))) {
    return await recordLateEnd(trx, alert, current)
  }
  const locked = current.incidentId !== null ? await lockIncident(trx, current.incidentId) : null
  if (isForeign(alert, current) && (await endForeign(trx, alert, current, locked)))
    return ingestResult(alert, current.incidentId, 'resolved')
  if (alert.endReason !== undefined) return await endUnproven(trx, alert, current, alert.endReason)
  await trx
    .updateTable('alert')
    .set({
      status: 'resolved',
      endedBy: isForeign(alert, current) ? (alert.sender ?? null) : null,
      endsAt: alert.endsAt ?? now,
      lastSeenAt: now,
      endReceivedAt: now,
      unknownSince: null,
      unknownWhy: null,
      endReason: null,
      stateWord: null,
    })
    .where('id', '=', current.id)
    .execute()
  if (current.incidentId === null) return ingestResult(alert, null, 'resolved')
  await appendAlert(trx, current.incidentId, alert, 'resolved')
  await noteMassEnd(trx, alert.source, current.incidentId)
  return ingestResult(alert, current.incidentId, 'resolved', await followEnd(trx, current.incidentId))
}

async function followEnd(trx: Trx, incidentId: string): Promise<LifecycleEffect> {
  const { row, decision, nextCheckAtMs } = await decide(trx, incidentId, 'end')
  const isRepaired = row.status === 'resolved' && row.outcome === 'repaired' && row.closedBy === 'agent'
  const note = await settlePage(trx, incidentId, { isRepaired })
  if (note) await append(trx, incidentId, null, note)
  const effect = await applyLifecycle(trx, row, decision)
  if (decision.do === 'nothing') await storeCheck(trx, incidentId, nextCheckAtMs)
  else await scheduleCheck(trx, incidentId)
  return effect
}

/**
 * Handles an end that proves nothing, because the rule had no data, was paused, changed or deleted.
 * The state of the alert is then unknown until a read, a person, or a day without the alert decides
 * about it. If the series is missing and code cannot read any state, the alert counts as over, and
 * people are notified once if the incident is critical.
 */
async function endUnproven(trx: Trx, said: Alert, current: AlertRow, reason: string): Promise<IngestResult> {
  const alert: Alert = { ...said, status: 'resolved' }
  const { incidentId } = current
  if (current.status === 'unknown' && current.endReason === reason) {
    await countSight(trx, current.id)
    return ingestResult(alert, incidentId, 'unproven')
  }
  const incident = incidentId === null ? null : await lockIncident(trx, incidentId)
  const isGone = isSeriesGone(reason) && incident?.resourceKind == null
  await trx
    .updateTable('alert')
    .set({
      ...(isGone
        ? { status: 'resolved', endReceivedAt: now, unknownSince: null, unknownWhy: null }
        : { status: 'unknown', endReceivedAt: null, unknownSince: now, unknownWhy: 'unproven' }),
      endsAt: alert.endsAt ?? now,
      lastSeenAt: now,
      endReason: reason,
      stateWord: null,
    })
    .where('id', '=', current.id)
    .execute()
  if (!incident) return ingestResult(alert, null, 'unproven')
  await appendAlert(trx, incident.id, alert, 'unproven')
  if (isGone) await noteSeriesGone(trx, alert, incident)
  return ingestResult(alert, incident.id, 'unproven', await followEnd(trx, incident.id))
}

async function noteSeriesGone(trx: Trx, alert: Alert, incident: IncidentRow): Promise<void> {
  const text = `The series of the alert ${alert.name} is gone, and no resource can be checked: the alert is quiet, unproven`
  await append(trx, incident.id, null, {
    kind: 'noted',
    actor: `source:${alert.source}`,
    detail: text,
    metadata: { code: 'series_gone', text },
  })
  const row = incident.severity === 'critical' ? await lockIncident(trx, incident.id) : null
  if (row) await enqueueNotification(trx, row, 'notice', text, { page: true })
}

const isForeign = (alert: Alert, { sender }: AlertRow): boolean =>
  sender !== null && alert.sender !== undefined && alert.sender !== sender

/**
 * Records on the alert and in the log that a sender other than the alert's own ended the alert. A
 * foreign end does not end a critical incident: the state of the alert becomes unknown, and people
 * are notified once. Returns whether the incident is critical.
 */
async function endForeign(trx: Trx, alert: Alert, current: AlertRow, incident: IncidentRow | null): Promise<boolean> {
  if (!incident) return false
  const isCritical = incident.severity === 'critical'
  // Records an end of this sender only once.
  if (current.endedBy === alert.sender) return isCritical
  const rest = isCritical
    ? 'the alert is critical, so it counts as unknown until a check, its own sender or a person reports more'
    : 'the alert counts as ended'
  const text = `ended by another sender: ${alert.sender} ended the alert ${alert.name} of ${current.sender}; ${rest}`
  await append(trx, incident.id, null, {
    kind: 'noted',
    actor: `source:${alert.source}`,
    detail: text,
    metadata: { code: 'foreign_end', text },
  })
  if (!isCritical) return false
  await trx
    .updateTable('alert')
    .set({ status: 'unknown', unknownSince: now, unknownWhy: 'foreign', endedBy: alert.sender ?? null })
    .where('id', '=', current.id)
    .execute()
  await enqueueNotification(trx, incident, 'notice', text, { page: true })
  await scheduleCheck(trx, incident.id)
  return true
}

/**
 * Records the end of an older occurrence, or an end before its own start. The alert continues to
 * fire.
 */
async function recordLateEnd(trx: Trx, alert: Alert, current: AlertRow): Promise<IngestResult> {
  if (current.incidentId === null) return ingestResult(alert, null, 'late_end')
  const text = `An end at ${alert.endsAt ?? 'an unknown time'} arrived for an alert that began at ${current.startsAt}. The end belongs to an older occurrence, so the alert counts as firing`
  await append(trx, current.incidentId, null, {
    kind: 'noted',
    actor: `source:${alert.source}`,
    detail: text,
    metadata: { code: 'late_end', text },
  })
  return ingestResult(alert, current.incidentId, 'late_end')
}

async function tellOwner(trx: Trx, incidentId: string): Promise<void> {
  const row = await lockIncident(trx, incidentId)
  if (row) await enqueueNotification(trx, row, 'owner', 'The alert fires again while you have the incident')
}
