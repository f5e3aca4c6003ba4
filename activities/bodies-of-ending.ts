import { bodiesByDigest } from '../db/bodies.ts'
import type { Db, Trx } from '../db/connect.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { bodiesToCheck } from '../safety/claims/rows.ts'

/** The bodies that claims and words of an ending are held against, read before it is judged. */
export async function bodiesOfEnding(
  db: Db | Trx,
  events: readonly IncidentEvent[],
  attempt: number,
): Promise<ReadonlyMap<string, string>> {
  return await bodiesByDigest(db, bodiesToCheck(events, attempt))
}
