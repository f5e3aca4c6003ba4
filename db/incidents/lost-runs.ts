import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import { findManualChange } from '../../domain/manual-change.ts'
import { withdrawPending } from '../approvals/settle.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { eventsOf } from '../log/events.ts'
import { releaseLeases } from '../writes/leases.ts'
import { closeIncident } from './close-incident.ts'
import { lockIncident } from './incidents.ts'

/**
 * An incident that a run has. `runId`: the run that claimed the incident; null in claims of version
 * 0.1.0, which do not name the run.
 */
type CarriedIncident = { incidentId: string; attempt: number; runId: string | null }

/** Seconds without a new log row after which a run is checked. */
const quietSeconds = 20

/** Minimum seconds between two checks. Responses of Temporal at the same moment count as one. */
const betweenLooksSeconds = 5

/**
 * Lists incidents whose run has written nothing for a while: first incidents whose run was missing
 * before, then incidents at work, then incidents that wait for a person. Each call returns other
 * incidents of the last kind, of which there may be many.
 */
export async function carriedIncidents(db: Db, limit: number): Promise<CarriedIncident[]> {
  return await db
    .selectFrom('incident')
    .leftJoin('incidentEvent as claimed', (join) =>
      join.on('claimed.stepKey', '=', sql<string>`incident.id || '.' || incident.attempt || ':0:claimed:0'`),
    )
    .leftJoin('runMissed as missed', 'missed.incidentId', 'incident.id')
    .select(['incident.id as incidentId', 'incident.attempt'])
    .select(sql<string | null>`claimed.metadata->>'runId'`.as('runId'))
    .where('incident.status', 'in', ['investigating', 'awaiting_approval'])
    .where('incident.lastEventAt', '<', sql<string>`${onceNow} - make_interval(secs => ${quietSeconds})`)
    .orderBy(sql`missed.incident_id is null, incident.status = 'awaiting_approval', random()`)
    .limit(limit)
    .execute()
}

/** Deletes the record of missing checks, because the run exists. */
export async function noteRunSeen(db: Db, { incidentId }: CarriedIncident): Promise<void> {
  await db.deleteFrom('runMissed').where('incidentId', '=', incidentId).execute()
}

/**
 * Records that Temporal has no open run for the incident. True if a check some seconds earlier also
 * found none.
 */
export async function noteRunMissing(db: Db, { incidentId, attempt }: CarriedIncident): Promise<boolean> {
  const { isSecond } = await db
    .insertInto('runMissed')
    .values({ incidentId, attempt })
    .onConflict((conflict) =>
      conflict.column('incidentId').doUpdateSet({
        attempt,
        missedAt: sql<string>`case when run_missed.attempt = ${attempt} then run_missed.missed_at else nightshift_now() end`,
      }),
    )
    .returning(
      sql<boolean>`missed_at < nightshift_now() - make_interval(secs => ${betweenLooksSeconds})`.as('isSecond'),
    )
    .executeTakeFirstOrThrow()
  return isSecond
}

const lostRunReason =
  'Temporal has no open run for this incident: the run ended without writing its rows, or was lost in a restore'

/**
 * Takes an incident back from a lost run. The next attempt begins through the queue, knows about
 * the lost attempt, and asks people again. After a write with an unknown outcome, or repeated
 * losses, the incident is escalated to people instead. The attempt is incremented, so that a run
 * that still exists cannot write.
 */
export async function releaseLostRun(
  db: Db,
  { incidentId, attempt }: CarriedIncident,
): Promise<'open' | 'escalated' | null> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.attempt !== attempt || !['investigating', 'awaiting_approval'].includes(row.status)) return null
    await trx.deleteFrom('runMissed').where('incidentId', '=', incidentId).execute()
    const why = await whyNotAgain(trx, incidentId, attempt)
    if (why !== null) {
      const closing = { status: 'escalated', code: 'WATCHDOG_SILENT', reason: `${lostRunReason}. ${why}` } as const
      await closeIncident(trx, incidentId, attempt + 1, closing, {
        actor: systemActor,
        stepKey: null,
        nextAttempt: true,
      })
      return 'escalated'
    }
    await withdrawPending(trx, incidentId, 'its run is gone')
    await releaseLeases(trx, incidentId)
    await trx
      .updateTable('incident')
      .set({ status: 'open', attempt: attempt + 1, assignedTo: null, role: null, groupId: null, queuedAt: null })
      .where('id', '=', incidentId)
      .execute()
    const text = `The run is gone, and another run takes the incident: ${lostRunReason}`
    await append(trx, incidentId, null, {
      kind: 'noted',
      actor: systemActor,
      detail: text,
      metadata: { code: 'run_lost', text },
    })
    return 'open'
  })
}

/** Explains why no further run may take the incident; null if a further run may. */
async function whyNotAgain(trx: Trx, incidentId: string, attempt: number): Promise<string | null> {
  const events = await eventsOf(trx, incidentId)
  const manual = findManualChange(events, attempt)
  if (manual) return `${manual.name} requested this run, so nobody else starts it again`
  const ended = new Set(
    events.flatMap((event) =>
      event.kind === 'tool_finished' && event.attempt === attempt && event.metadata.outcome !== 'indeterminate'
        ? [event.metadata.callId]
        : [],
    ),
  )
  const unknown = events.find(
    (event) =>
      event.kind === 'tool_started' &&
      event.attempt === attempt &&
      event.metadata.effect === 'write' &&
      !ended.has(event.metadata.callId),
  )
  if (unknown?.kind === 'tool_started')
    return `The result of ${unknown.metadata.tool} is not known. Check its target before anything is repeated`
  const lost = events.filter((event) => event.kind === 'noted' && event.metadata.code === 'run_lost').length
  return lost >= maxLosses ? `The run was lost ${lost + 1} times` : null
}

/** Number of lost runs from which the reason is likely to persist. */
const maxLosses = 3
