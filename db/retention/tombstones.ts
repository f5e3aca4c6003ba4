import type { Db, Trx } from '../connect.ts'

/**
 * Finds the tombstone of an incident, with the rule by which it was removed; null if it was not
 * removed.
 */
export async function findTombstone(db: Db | Trx, incidentId: string) {
  const found = await db
    .selectFrom('removedIncident')
    .innerJoin('removal', 'removal.id', 'removedIncident.removalId')
    .select(['removedIncident.incidentId', 'removedIncident.headHash', 'removedIncident.rows', 'removal.at', 'rule'])
    .where('removedIncident.incidentId', '=', incidentId)
    .executeTakeFirst()
  return found ?? null
}
