import { beganAt, changesNear } from '../db/changes.ts'
import type { Db } from '../db/connect.ts'
import { chooseNearest, summarizeChange } from '../domain/change.ts'
import type { Incident } from '../domain/incident.ts'

const beforeMs = 3_600_000
/** Of what came after the beginning so many are looked at. */
const mostAfter = 200
const mostBefore = 5

/**
 * What was deployed or configured from an hour before an incident began, on its resource and on what that needs: five at most, the last
 * ones before it began first.
 */
export async function changesAround(
  db: Db,
  { id, resource }: Pick<Incident, 'id' | 'resource'>,
): Promise<Record<string, unknown>[]> {
  const began = resource ? await beganAt(db, id) : null
  if (!resource || began === null) return []
  const fromIso = new Date(Date.parse(began) - beforeMs).toISOString()
  const before = await changesNear(db, resource, { fromIso, untilIso: began, limit: mostBefore })
  const after = await changesNear(db, resource, { fromIso: began, limit: mostAfter })
  const each = new Map([...before.changes, ...after.changes].map((change) => [change.id, change]))
  return chooseNearest([...each.values()], began).map((change) =>
    summarizeChange(change, { iso: began, isBegin: true }),
  )
}
