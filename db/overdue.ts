import { sql } from 'kysely'
import { type EventMetadata, systemActor } from '../domain/event.ts'
import type { ResourceRef } from '../domain/registry.ts'
import { append } from './append.ts'
import { withdrawPending } from './approvals/settle.ts'
import { closeIncident } from './closing.ts'
import { type Db, inSeconds, now, onceNow, type Trx } from './connect.ts'
import { releaseLeases } from './effects.ts'
import { eventsOf } from './events.ts'
import { settleExpected } from './expectations.ts'
import { lockIncident } from './incidents.ts'
import { scheduleCheck } from './lifecycle/carry-out.ts'
import type { ExpectationRow, IncidentRow } from './tables.ts'

/** Of an approval: somebody may still decide it, or the run has not had the time to read what was decided. */
const answerable = sql<boolean>`(
  (approval.status = 'pending' and approval.expires_at > nightshift_now() - interval '2 minutes')
  or (approval.status <> 'pending' and approval.decided_at > nightshift_now() - interval '5 minutes'))`

export type Overdue = { incidentId: string; attempt: number; why: 'silent' | 'unexpired' }

/**
 * Running incidents that no run seems to carry: investigating without a row for twice their time budget, or waiting for a
 * person two minutes past the expiry.
 */
export async function overdueIncidents(db: Db): Promise<Overdue[]> {
  const silent = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'investigating')
    .where(sql<boolean>`last_event_at < nightshift_now() - make_interval(secs => 2 * time_budget_seconds)`)
    // A run in the line for the model says nothing else, and lives.
    .where(
      sql<boolean>`not exists (select from model_slot where incident_id = incident.id and until > nightshift_now())`,
    )
    .limit(100)
    .execute()
  const unexpired = await db
    .selectFrom('incident')
    .select(['id', 'attempt'])
    .where('status', '=', 'awaiting_approval')
    // Each kind by its own key: one condition over both would go through all approvals for each that waits.
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('approval').select('id').whereRef('incidentId', '=', 'incident.id').where(answerable))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('incidentEvent as joined')
            .innerJoin('approval', (join) => join.on('approval.id', '=', sql<string>`joined.metadata->>'approvalId'`))
            .select('approval.id')
            .whereRef('joined.incidentId', '=', 'incident.id')
            .whereRef('joined.attempt', '=', 'incident.attempt')
            .where('joined.kind', '=', 'call_judged')
            .where(answerable),
        ),
      ),
    )
    .limit(100)
    .execute()
  return [
    ...silent.map((row) => ({ incidentId: row.id, attempt: row.attempt, why: 'silent' as const })),
    ...unexpired.map((row) => ({ incidentId: row.id, attempt: row.attempt, why: 'unexpired' as const })),
  ]
}

/** Lets members of a dead group go: queued for this long and claimed by nobody, they are stamped again by the next tick. */
export async function releaseStranded(db: Db, afterSeconds: number): Promise<number> {
  const released = await db
    .updateTable('incident')
    .set({ groupId: null, queuedAt: null })
    .where('status', '=', 'open')
    .where('groupId', 'is not', null)
    .where('queuedAt', '<', sql<string>`nightshift_now() - make_interval(secs => ${afterSeconds})`)
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('incident as other')
            .select('other.id')
            .whereRef('other.groupId', '=', 'incident.groupId')
            .where('other.status', 'in', ['investigating', 'awaiting_approval']),
        ),
      ),
    )
    .returning('id')
    .execute()
  return released.length
}

/** `runId`: the run that made the claim; null in claims of version 0.1.0, which name none. */
export type Carried = { incidentId: string; attempt: number; runId: string | null }

/** A run that writes rows is not asked about: it lives. */
const quietSeconds = 20
/** Between two looks: what Temporal says in the same moment is one look. */
const betweenLooksSeconds = 5
/** A run that is lost this often is lost for a reason that another one would meet too. */
const lostAtMost = 3

/**
 * Incidents that a run should be carrying, those whose rows were silent for a while. First what was missed before, then what is at work;
 * of the many that may wait for a person, others each time.
 */
export async function carriedIncidents(db: Db, limit: number): Promise<Carried[]> {
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
export async function sawRun(db: Db, { incidentId }: Carried): Promise<void> {
  await db.deleteFrom('runMissed').where('incidentId', '=', incidentId).execute()
}

/** Notes that Temporal has no open run for it. True from the second look on that is some seconds after the first. */
export async function missedRun(db: Db, { incidentId, attempt }: Carried): Promise<boolean> {
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

const because = 'Temporal knows no open run for it: it ended without its rows, or was lost in a restore'

/**
 * Takes an incident back from a run that is gone: the next attempt begins with the queue, knows of this one, and asks again what was
 * asked. A write of which nobody knows what became of it is not begun again, and a run that is lost again and again is not started for
 * ever: there a person takes over. The attempt is counted on, so that a run that lives all the same may write nothing more.
 */
export async function releaseLostRun(db: Db, { incidentId, attempt }: Carried): Promise<'open' | 'escalated' | null> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.attempt !== attempt || !['investigating', 'awaiting_approval'].includes(row.status)) return null
    await trx.deleteFrom('runMissed').where('incidentId', '=', incidentId).execute()
    const why = await whyNotAgain(trx, incidentId, attempt)
    if (why !== null) {
      const closing = { status: 'escalated', code: 'WATCHDOG_SILENT', reason: `${because}. ${why}` } as const
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
    const text = `Its run is gone, and another takes it up: ${because}`
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
  return lost >= lostAtMost ? `Its run was lost ${lost + 1} times` : null
}

/** Counts an attempt that the rows know nothing of as made, where the incident still waits for it. False where it does not. */
export async function useUpAttempt(db: Db, incidentId: string, attempt: number): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.status !== 'open' || row.assignedTo !== null || row.attempt !== attempt - 1) return false
    await trx.updateTable('incident').set({ attempt }).where('id', '=', incidentId).execute()
    const text = `Attempt ${attempt} is skipped: Temporal knows a run of it that is not in this log`
    const metadata = { code: 'attempt_skipped' as const, text }
    await append(trx, incidentId, null, { kind: 'noted', actor: systemActor, detail: text, metadata })
    return true
  })
}

/** A look at the world that somebody has to take, outside any transaction. */
export type WantedLook = {
  incidentId: string
  attempt: number
  purpose: NonNullable<IncidentRow['lookWanted']>
  resource: ResourceRef | null
  expectation: ExpectationRow | null
}

/** A look whose taker died is wanted again after this. */
const leaseSeconds = 30

/** Takes up to `limit` wanted looks under a lease, the oldest first. */
export async function leaseLooks(db: Db, limit: number): Promise<WantedLook[]> {
  const wanted = db
    .selectFrom('incident')
    .select('id')
    .where('lookWanted', 'is not', null)
    .where('lookWantedAt', '<=', now)
    .orderBy('lookWantedAt')
    .limit(limit)
    .forUpdate()
    .skipLocked()
  const rows = await db
    .updateTable('incident')
    .set({ lookWantedAt: inSeconds(leaseSeconds) })
    .where('id', 'in', wanted)
    .returning(['id', 'attempt', 'lookWanted', 'resourceKind', 'resourceId', 'expectationId'])
    .execute()
  return await Promise.all(
    rows.map(async (row) => ({
      incidentId: row.id,
      attempt: row.attempt,
      purpose: row.lookWanted as WantedLook['purpose'],
      resource:
        row.resourceKind && row.resourceId
          ? { kind: row.resourceKind as ResourceRef['kind'], id: row.resourceId }
          : null,
      expectation: row.expectationId
        ? ((await db.selectFrom('expectation').selectAll().where('id', '=', row.expectationId).executeTakeFirst()) ??
          null)
        : null,
    })),
  )
}

/**
 * Writes a look down and lets the watchdog decide over it at once. `differs` compares it with what a mark stored. Answers
 * whether the queue has something new; a look that nobody wants any more is dropped.
 */
export async function recordLook(
  db: Db,
  { incidentId, purpose }: WantedLook,
  look: EventMetadata['looked'],
  differs: string | null,
): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.lookWanted !== purpose) return false
    await append(trx, incidentId, null, {
      kind: 'looked',
      actor: systemActor,
      detail: `Looked: ${look.observed}`,
      metadata: look,
    })
    if (purpose === 'expected') return await settleExpected(trx, incidentId, { differs, seen: look.observed })
    await trx
      .updateTable('incident')
      .set({ lookWanted: null, lookWantedAt: null })
      .where('id', '=', incidentId)
      .execute()
    await scheduleCheck(trx, incidentId)
    return false
  })
}
