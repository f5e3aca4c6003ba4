import { handOver, takeIncident } from '../db/owners.ts'
import type { Person } from '../db/taker.ts'
import type { ApiDeps } from './deps.ts'

const tellWithinMs = 2_000

/**
 * Gives an incident to a person, by whichever door they ask. A run is asked to end first, so that a write under way is looked at,
 * and hands over then; without a run to end it is theirs at once. Answers whether it is theirs now.
 */
export async function takeForPerson(
  { db, runs }: Pick<ApiDeps, 'db' | 'runs'>,
  id: string,
  by: Person,
): Promise<boolean> {
  const taken = await db.transaction().execute((trx) => takeIncident(trx, id, by))
  if (taken.taken) return true
  if ((await runs.tell(taken.run, 'cancelInvestigation', tellWithinMs)) === 'told') return false
  await db.transaction().execute((trx) => handOver(trx, id, null, by))
  return true
}
