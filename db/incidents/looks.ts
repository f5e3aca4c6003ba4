import { type EventMetadata, systemActor } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { settleExpected } from '../alerts/expectations.ts'
import { inSeconds, now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { scheduleCheck } from '../lifecycle/apply-lifecycle.ts'
import { append } from '../log/append.ts'
import type { ExpectationRow, IncidentRow } from '../tables.ts'
import { lockIncident } from './incidents.ts'
import { leaseSeconds } from './overdue.ts'

/** A read of a resource's state that code must make outside any transaction. */
export type WantedLook = {
  incidentId: string
  attempt: number
  purpose: NonNullable<IncidentRow['lookWanted']>
  resource: ResourceRef | null
  expectation: ExpectationRow | null
}

/** Takes up to `limit` wanted reads under a lease, the oldest first. */
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

/** Gives up the lease on a wanted read, so that another worker can take it at once. */
export async function giveLookBack(db: Db, { incidentId, purpose }: WantedLook): Promise<void> {
  await db
    .updateTable('incident')
    .set({ lookWantedAt: now })
    .where('id', '=', incidentId)
    .where('lookWanted', '=', purpose)
    .execute()
}

/**
 * Stores a read and lets the watchdog decide at once. `differs`: the difference from an expected
 * state. Returns whether the queue has an incident to investigate. Drops a read that is no longer
 * wanted.
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
