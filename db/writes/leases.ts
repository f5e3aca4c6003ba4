import { sql } from 'kysely'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Db, Trx } from '../connect.ts'
import { leaseKeys, leasesOfOthers } from '../inventory/registry.ts'

/**
 * Takes the leases of all targets for one call, or none: false if another incident has one of them.
 * An incident may take its own lease again. A resource with two names is one target. Keys are
 * sorted, so that two callers cannot deadlock.
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

/**
 * Takes the leases for a person's own write without an incident. The key of the write has the
 * leases until the write ends.
 */
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
 * Deletes leases of effects whose end nobody recorded, for example because a process died. Waits 15
 * minutes, because a running effect is followed for ten.
 */
async function dropStale(trx: Trx): Promise<void> {
  await trx
    .deleteFrom('targetLease')
    .where('effectKey', 'is not', null)
    .where('since', '<', sql<string>`nightshift_now() - interval '15 minutes'`)
    .execute()
}

/**
 * Releases all leases of an incident. A target stays leased while a write of the incident is
 * running at the platform, even without its run. When this effect ends, `releaseAfterEffect`
 * releases the lease.
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

/** Releases the leases of a write that ended after its incident was closed. */
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
