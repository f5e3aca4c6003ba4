import type { ResourceRef } from '../../domain/registry.ts'
import type { Db, Trx } from '../connect.ts'
import { leaseKeys, leasesOfOthers } from '../inventory/registry.ts'

/**
 * Takes every target for one call, or none: false when another incident holds one. Taken again by the same incident it is
 * simply held. A thing under two names is one target. Sorted, so that two callers cannot wait for each other.
 */
export async function takeLeases(
  trx: Trx,
  holder: { incidentId: string; attempt: number; callId: string },
  targets: ResourceRef[],
): Promise<boolean> {
  const keys = await leaseKeys(trx, targets)
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

/**
 * Lets go of everything an incident held. While one of its writes still runs at the platform the targets stay taken, even if
 * its run is gone: the end of that effect releases it (`releaseAfterEffect`).
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
  const closed = await db
    .selectFrom('effect')
    .innerJoin('incident', 'incident.id', 'effect.incidentId')
    .select('incident.id')
    .where('effect.key', '=', effectKey)
    .where('incident.status', 'in', ['resolved', 'escalated', 'cancelled'])
    .executeTakeFirst()
  if (closed) await releaseLeases(db, closed.id)
}
