import { sql } from 'kysely'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Db, Trx } from '../connect.ts'
import { leaseKeys, leasesOfOthers } from '../inventory/registry.ts'

/**
 * Takes every target for one call, or none: false when another incident holds one. The same
 * incident may take it again. A thing under two names is one target. Sorted, so that two callers
 * cannot wait for each other.
 */
export async function takeLeases(
  trx: Trx,
  holder: { incidentId: string; attempt: number; callId: string },
  targets: ResourceRef[],
): Promise<boolean> {
  const keys = await leaseKeys(trx, targets)
  await dropStale(trx)
  for (const target of keys) {
    await trx
      .insertInto('targetLease')
      .values({ target, ...holder })
      .onConflict((conflict) =>
        conflict
          .column('target')
          .doUpdateSet({ attempt: holder.attempt, callId: holder.callId })
          .where('targetLease.incidentId', '=', holder.incidentId),
      )
      .execute()
  }
  if ((await leasesOfOthers(trx, holder.incidentId, targets)).length === 0) return true
  await trx
    .deleteFrom('targetLease')
    .where('incidentId', '=', holder.incidentId)
    .where('callId', '=', holder.callId)
    .execute()
  return false
}

/** The same for a person's own write without an incident: its key holds its targets to its end. */
export async function takeLeasesOfEffect(trx: Trx, effectKey: string, targets: ResourceRef[]): Promise<string | null> {
  const keys = await leaseKeys(trx, targets)
  await dropStale(trx)
  for (const target of keys) {
    const taken = await trx
      .insertInto('targetLease')
      .values({ target, incidentId: null, attempt: 0, callId: '', effectKey })
      .onConflict((conflict) => conflict.column('target').doNothing())
      .returning('target')
      .executeTakeFirst()
    if (!taken) return target
  }
  return null
}

/**
 * Drops leases of effects that nobody ended, as a dead process leaves them. A running effect is
 * waited for ten minutes.
 */
async function dropStale(trx: Trx): Promise<void> {
  await trx
    .deleteFrom('targetLease')
    .where('effectKey', 'is not', null)
    .where('since', '<', sql<string>`nightshift_now() - interval '15 minutes'`)
    .execute()
}

/**
 * Lets go of all that an incident held. Targets stay taken while one of its writes runs at the
 * platform, even without its run: that effect's end releases them (`releaseAfterEffect`).
 */
export async function releaseLeases(trx: Db | Trx, incidentId: string): Promise<void> {
  await trx
    .deleteFrom('targetLease')
    .where('incidentId', '=', incidentId)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(selectFrom('effect').select('key').where('incidentId', '=', incidentId).where('status', '=', 'running')),
      ),
    )
    .execute()
}

/** A write ended whose incident was closed meanwhile: nobody else will let go of what it held. */
export async function releaseAfterEffect(db: Db | Trx, effectKey: string): Promise<void> {
  await db.deleteFrom('targetLease').where('effectKey', '=', effectKey).execute()
  const closed = await db
    .selectFrom('effect')
    .innerJoin('incident', 'incident.id', 'effect.incidentId')
    .select('incident.id')
    .where('effect.key', '=', effectKey)
    .where('incident.status', 'in', ['resolved', 'escalated', 'cancelled'])
    .executeTakeFirst()
  if (closed) await releaseLeases(db, closed.id)
}
