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

/** `runId`: the run that made the claim; null in claims of version 0.1.0, which name none. */
type CarriedIncident = { incidentId: string; attempt: number; runId: string | null }

/** A run that writes rows is not asked about: it lives. */
const quietSeconds = 20

/** Between two looks: what Temporal says in the same moment is one look. */
const betweenLooksSeconds = 5

/**
 * Incidents whose run was silent for a while. First those missed before, then those at work; of the
 * many that may wait for a person, others each time.
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

/** Its run lives: what an earlier look missed is forgotten. */
export async function noteRunSeen(db: Db, { incidentId }: CarriedIncident): Promise<void> {
  await db.deleteFrom('runMissed').where('incidentId', '=', incidentId).execute()
}

/** Notes that Temporal has no open run for it. True from the second look, some seconds later. */
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

const lostRunReason = 'Temporal knows no open run for it: it ended without its rows, or was lost in a restore'

/**
 * Takes an incident back from a lost run: the next attempt begins with the queue, knows of this
 * one, and asks again. After a write of unknown outcome, or runs lost again and again, a person
 * takes over. The attempt is counted on, so that a run that lives after all writes nothing more.
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
    const text = `Its run is gone, and another takes it up: ${lostRunReason}`
    await append(trx, incidentId, null, {
      kind: 'noted',
      actor: systemActor,
      detail: text,
      metadata: { code: 'run_lost', text },
    })
    return 'open'
  })
}

/** Why no further run is to take it up; null where one may. */
async function whyNotAgain(trx: Trx, incidentId: string, attempt: number): Promise<string | null> {
  const events = await eventsOf(trx, incidentId)
  const manual = findManualChange(events, attempt)
  if (manual) return `${manual.name} asked for it: nobody else begins it again`
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
    return `What became of ${unknown.metadata.tool} is not known: look at its target before anything is done again`
  const lost = events.filter((event) => event.kind === 'noted' && event.metadata.code === 'run_lost').length
  return lost >= maxLosses ? `Its run was lost ${lost + 1} times` : null
}

/** A run that is lost this often is lost for a reason that another one would meet too. */
const maxLosses = 3
