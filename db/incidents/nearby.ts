import { sql } from 'kysely'
import { foldHypotheses, formatHypothesis } from '../../domain/hypothesis.ts'
import type { Incident } from '../../domain/incident.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { Db, Trx } from '../connect.ts'
import { otherNames } from '../inventory/registry.ts'
import { type AttemptStory, readAttempt } from '../lifecycle/attempts.ts'
import { eventsOf } from '../log/events.ts'

/** An incident that perhaps has this incident's cause: who works on it, and its result. */
type NearbyIncident = Pick<AttemptStory, 'writes' | 'ending' | 'text' | 'next' | 'denied'> & {
  incidentId: string
  type: string
  title: string
  resource: string
  status: string
  since: string
  /** The causes that are assumed so far in the incident, with their states. */
  causes: string[]
}

/**
 * The time for which a closed incident still counts. An incident that closed earlier is a
 * precedent.
 */
const justClosed = '1 hour'
const maxNearby = 3
const maxCauses = 3
const titleCharacters = 160

/**
 * Lists incidents about this incident's resource under any name, or near the resource: open
 * incidents, and incidents that closed within an hour. Incidents about the resource itself come
 * first, then the newest. Excludes earlier attempts, which are incidents that share an alert with
 * this one.
 */
export async function nearbyIncidents(
  db: Db | Trx,
  incident: Pick<Incident, 'id' | 'resource'>,
  near: { neighbours: readonly ResourceRef[]; told: readonly string[] },
): Promise<NearbyIncident[]> {
  const { id, resource } = incident
  if (!resource) return []
  const own = resourceKey(resource)
  const names = (await otherNames(db, [resource])).get(own) ?? []
  const itself = [own, ...names.map(resourceKey)]
  const around = [resource, ...names, ...near.neighbours]
  const [kinds, ids] = [around.map(({ kind }) => kind), around.map((each) => each.id)]
  const rows = await db
    .selectFrom('incident')
    .select(['id', 'type', 'title', 'status', 'attempt', 'createdAt', 'resourceKind', 'resourceId'])
    // Compares pairs of kind and id, because the index has no combined key.
    .where(sql<boolean>`(resource_kind, resource_id) in (select * from unnest(${kinds}::text[], ${ids}::text[]))`)
    .where('id', 'not in', [id, ...near.told])
    .where(sql<boolean>`(closed_at is null or closed_at > nightshift_now() - ${sql.lit(justClosed)}::interval)`)
    .orderBy(sql`(resource_kind || ':' || resource_id = any(${itself}::text[])) desc`)
    .orderBy('createdAt', 'desc')
    .limit(maxNearby)
    .execute()
  const nearby: NearbyIncident[] = []
  for (const row of rows) {
    const { writes, ending, text, next, denied } = await readAttempt(db, { incidentId: row.id, attempt: row.attempt })
    const causes = foldHypotheses(await eventsOf(db, row.id, { attempt: row.attempt }), row.attempt)
    nearby.push({
      incidentId: row.id,
      type: row.type,
      title: row.title.slice(0, titleCharacters).toWellFormed(),
      resource: `${row.resourceKind}:${row.resourceId}`,
      status: row.status,
      since: row.createdAt,
      ...{ writes, ending, text, next, denied },
      // Removes numbers of rows, because a reader would take them for rows of this incident.
      causes: causes.slice(-maxCauses).map((each) => formatHypothesis(each).replace(/ \(#[^)]*\)/g, '')),
    })
  }
  return nearby
}
