import { sql } from 'kysely'
import type { Alert } from '../../domain/alert.ts'
import { describeMark } from '../../domain/authority-words.ts'
import { newId } from '../../domain/digest.ts'
import { systemActor } from '../../domain/event.ts'
import { formatMinute } from '../../domain/format.ts'
import { incidentActions, runningStatuses } from '../../domain/incident.ts'
import { formerTypes, incidentTypeOf, isType } from '../../domain/incident-type.ts'
import { inSeconds, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { closeIncident } from '../incidents/close-incident.ts'
import { announceCritical, lockIncident } from '../incidents/incidents.ts'
import { append, IncidentNotFoundError } from '../log/append.ts'
import { recordAudit } from '../log/audit.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import type { Scope } from '../scope.ts'
import type { ExpectationRow } from '../tables.ts'

/** The subject of an expected state: an alert, all alerts of a resource, or an incident type. */
export type ExpectationSubject =
  | { subject: 'alert'; source: string; fingerprint: string }
  | { subject: 'resource'; resourceKind: string; resourceId: string }
  | { subject: 'type'; type: string }

/** Stores a mark as expected, with the state as it was read for the mark. Returns the row. */
async function markExpected(
  trx: Trx,
  mark: ExpectationSubject & {
    until: string
    reason: string
    state: Record<string, unknown>
    createdBy: string
  },
): Promise<ExpectationRow> {
  return await trx
    .insertInto('expectation')
    .values({
      ...mark,
      id: newId('exp'),
      state: JSON.stringify(mark.state),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

type Mark = ExpectationSubject & { until: string; reason: string; state: Record<string, unknown> }

/**
 * Marks an incident as expected and closes it as expected. The new status of the incident ends an
 * active run. `run`: the run to inform.
 */
export async function markIncidentExpected(
  trx: Trx,
  incidentId: string,
  mark: Mark,
  by: { operatorId: string; actor: string; name: string },
): Promise<{ expectation: ExpectationRow; run: { incidentId: string; attempt: number } | null }> {
  const row = await lockIncident(trx, incidentId)
  if (!row) throw new IncidentNotFoundError(incidentId)
  const expectation = await markExpected(trx, { ...mark, createdBy: by.operatorId })
  const text = `${by.name} expects this until ${formatMinute(expectation.until)}: ${mark.reason}`
  const detail = `${describeMark(expectation)}: ${mark.reason}`
  await recordAudit(trx, { who: by.name, what: 'expectation.marked', subject: expectation.id, detail })
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: by.actor,
    detail: text,
    metadata: { code: 'expected_marked', text },
  })
  const isRunning = (runningStatuses as string[]).includes(row.status)
  if ((incidentActions.resolve as string[]).includes(row.status)) {
    const resolution = `${by.name} marked this as expected until ${formatMinute(expectation.until)}: ${mark.reason}`
    const closing = {
      status: 'resolved' as const,
      outcome: 'expected' as const,
      resolution,
      claims: [],
      confidence: null,
    }
    await closeIncident(trx, incidentId, null, closing, { actor: by.actor, stepKey: null })
  } else {
    await trx
      .updateTable('incident')
      .set({ outcome: 'expected' })
      .where('id', '=', incidentId)
      .where('status', '=', 'resolved')
      .execute()
  }
  await trx
    .updateTable('incident')
    .set({ expectationId: expectation.id, checkAt: now })
    .where('id', '=', incidentId)
    .execute()
  return { expectation, run: isRunning ? { incidentId, attempt: row.attempt } : null }
}

/** Lists expected states: those in force first, then the newest. */
export async function listExpectations(
  { db }: Scope,
  limit: number,
): Promise<(ExpectationRow & { inForce: boolean; createdByName: string })[]> {
  return await db
    .selectFrom('expectation')
    .innerJoin('operator', 'operator.id', 'expectation.createdBy')
    .selectAll('expectation')
    .select('operator.name as createdByName')
    .select(sql<boolean>`(ended_at is null and until > (select nightshift_now()))`.as('inForce'))
    .orderBy('inForce', 'desc')
    .orderBy('expectation.createdAt', 'desc')
    .limit(limit)
    .execute()
}

/** Ends a mark as expected. Later alerts are treated normally. Null if it is not in force. */
export async function endExpectation(
  db: Db,
  id: string,
  { operatorId, name }: { operatorId: string; name: string },
): Promise<ExpectationRow | null> {
  return await db.transaction().execute(async (trx) => {
    const ended = await trx
      .updateTable('expectation')
      .set({ endedAt: now, endedBy: operatorId })
      .where('id', '=', id)
      .where('endedAt', 'is', null)
      .where('until', '>', now)
      .returningAll()
      .executeTakeFirst()
    if (!ended) return null
    await recordAudit(trx, { who: name, what: 'expectation.ended', subject: id, detail: 'Taken back' })
    await trx
      .updateTable('incident')
      .set({ checkAt: now })
      .where('expectationId', '=', id)
      .where('status', '=', 'resolved')
      .execute()
    return ended
  })
}

/**
 * Returns a function that tells whether a mark as expected may be about an alert. Needs only one
 * statement if no mark is in force, which is usual.
 */
export async function expectationsInForce(trx: Trx): Promise<(alert: Alert) => boolean> {
  const marks = await trx
    .selectFrom('expectation')
    .select(['source', 'fingerprint', 'resourceId', 'type'])
    .where('endedAt', 'is', null)
    .where('until', '>', now)
    .execute()
  if (marks.length === 0) return () => false
  return (alert) =>
    marks.some(
      ({ source, fingerprint, resourceId, type }) =>
        (source === alert.source && fingerprint === alert.fingerprint) ||
        (type !== null && isType(type, incidentTypeOf(alert.labels, alert.name))) ||
        (resourceId !== null && Object.values(alert.labels).includes(resourceId)),
    )
}

/** Finds the mark in force for an alert: by alert, else by resource, else by type; then newest. */
async function expectationFor(trx: Trx, incidentId: string, alert: Alert): Promise<ExpectationRow | null> {
  const incident = await lockIncident(trx, incidentId)
  if (!incident) return null
  const row = await trx
    .selectFrom('expectation')
    .selectAll()
    .where('endedAt', 'is', null)
    .where('until', '>', now)
    .where((where) =>
      where.or([
        where.and([where('source', '=', alert.source), where('fingerprint', '=', alert.fingerprint)]),
        where.and([where('resourceKind', '=', incident.resourceKind), where('resourceId', '=', incident.resourceId)]),
        where('type', 'in', [incident.type, ...formerTypes(incident.type)]),
      ]),
    )
    .orderBy(sql`case subject when 'alert' then 0 when 'resource' then 1 else 2 end`)
    .orderBy('createdAt', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row ?? null
}

/** Seconds within which the state must be read. Afterwards the incident is treated normally. */
const lookWithinSeconds = 120

/**
 * Keeps an incident with a mark as expected out of the queue until code has read whether its state
 * is as expected. Returns whether the incident is kept out.
 */
export async function awaitExpectedLook(trx: Trx, incidentId: string, alert: Alert): Promise<boolean> {
  const expectation = await expectationFor(trx, incidentId, alert)
  if (!expectation) return false
  await trx
    .updateTable('incident')
    .set({
      expectationId: expectation.id,
      lookWanted: 'expected',
      lookWantedAt: now,
      checkAt: inSeconds(lookWithinSeconds),
    })
    .where('id', '=', incidentId)
    .execute()
  return true
}

/**
 * Closes an incident as expected if the read matches the mark. Otherwise the incident is treated
 * normally and people are notified. The caller holds the incident's lock. Returns whether the queue
 * has the incident to investigate.
 */
export async function settleExpected(
  trx: Trx,
  incidentId: string,
  look: { differs: string | null; seen: string },
): Promise<boolean> {
  const row = await lockIncident(trx, incidentId)
  if (row?.status !== 'open' || row.expectationId === null || row.lookWanted !== 'expected') return false
  if (look.differs === null) {
    const { expectationId } = row
    const mark = await trx
      .selectFrom('expectation')
      .innerJoin('operator', 'operator.id', 'expectation.createdBy')
      .select(['expectation.reason', 'expectation.until', 'operator.name'])
      .where('expectation.id', '=', expectationId)
      .executeTakeFirstOrThrow()
    await closeIncident(
      trx,
      incidentId,
      null,
      {
        status: 'resolved',
        outcome: 'expected',
        resolution: `Expected by ${mark.name} until ${formatMinute(mark.until)} (${mark.reason}): ${look.seen}`,
        claims: [],
        confidence: null,
      },
      { actor: systemActor, stepKey: null },
    )
    await trx.updateTable('incident').set({ expectationId }).where('id', '=', incidentId).execute()
    return false
  }
  await trx
    .updateTable('incident')
    .set({ expectationId: null, lookWanted: null, lookWantedAt: null, checkAt: null })
    .where('id', '=', incidentId)
    .execute()
  const text = `Marked as expected, but its state differs: ${look.differs}`
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: systemActor,
    detail: text,
    metadata: { code: 'not_as_expected', text },
  })
  if (row.reopened > 0) await tellUnexpected(trx, incidentId, text)
  else await announceCritical(trx, incidentId)
  return true
}

/**
 * Notifies people of an incident that is not shown to be as expected. The notification was delayed
 * while the state might be expected.
 */
async function tellUnexpected(trx: Trx, incidentId: string, text: string): Promise<void> {
  const row = await lockIncident(trx, incidentId)
  if (row) await enqueueNotification(trx, row, 'reopened', text)
}
