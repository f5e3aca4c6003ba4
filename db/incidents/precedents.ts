import { sql } from 'kysely'
import type { SimilarIncident } from '../../domain/brief.ts'
import type { Incident } from '../../domain/incident.ts'
import { formerTypes } from '../../domain/incident-type.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'

/**
 * Closed incidents of the same type, those about the same kind of thing first, then the newest: what similar trouble came to and
 * which repairs held, with a person's approval or without. Only closed fields, never free text, never arguments.
 */
export async function precedentsOf(db: Db | Trx, incident: Incident, limit: number) {
  // Newest first within each kind, so that an index ends the search after a few.
  const alike = sql<boolean>`(resource_kind is not distinct from ${incident.resource?.kind ?? null})`
  const sameKind = await closedOf(db, incident, limit).where(alike, '=', true).execute()
  if (sameKind.length >= limit) return sameKind
  const others = await closedOf(db, incident, limit - sameKind.length)
    .where(alike, '=', false)
    .execute()
  return [...sameKind, ...others]
}

function closedOf(db: Db | Trx, incident: Incident, limit: number) {
  return db
    .selectFrom('incident')
    .select(['id', 'status', 'resourceKind', 'closedAt'])
    .select(
      sql<string | null>`(select metadata->>'outcome' from incident_event e where e.incident_id = incident.id
        and e.kind = 'resolved' order by seq desc limit 1)`.as('outcome'),
    )
    .select(
      sql<string[] | null>`(select array_agg(distinct metadata->>'tool') from incident_event e
        where e.incident_id = incident.id and e.kind = 'verification' and metadata->>'outcome' = 'held')`.as(
        'repairedBy',
      ),
    )
    .select(
      sql<string[] | null>`(select array_agg(distinct tool) from approval a
        where a.incident_id = incident.id and a.status = 'consumed')`.as('approved'),
    )
    .where('type', 'in', [incident.type, ...formerTypes(incident.type)])
    .where('id', '!=', incident.id)
    .where('status', 'in', ['resolved', 'escalated'])
    .orderBy('closedAt', 'desc')
    .limit(limit)
}

const maxSimilar = 5

/** Closed incidents like this one, with their titles: for people. A model sees them without. */
export async function similarOf({ db }: Scope, incident: Incident): Promise<SimilarIncident[]> {
  const similar = await precedentsOf(db, incident, maxSimilar)
  if (similar.length === 0) return []
  const titles = await db
    .selectFrom('incident')
    .select(['id', 'title', 'resolution'])
    .where(
      'id',
      'in',
      similar.map(({ id }) => id),
    )
    .execute()
  return similar.map(({ id, status, outcome, repairedBy, closedAt }) => {
    const { title = id, resolution = null } = titles.find((each) => each.id === id) ?? {}
    return { id, title, status, outcome, repairedBy: repairedBy ?? [], closedAt, resolution }
  })
}
