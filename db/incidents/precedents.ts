import { sql } from 'kysely'
import type { SimilarIncident } from '../../domain/brief.ts'
import { truncate } from '../../domain/format.ts'
import type { StoredClaim } from '../../domain/hypothesis.ts'
import type { Incident } from '../../domain/incident.ts'
import { formerTypes } from '../../domain/incident-type.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { causeGrade } from '../trust/grade.ts'

/**
 * Lists closed incidents of the incident's type: incidents about its kind of resource first, then
 * repaired incidents, then the newest. Each has the result, verified repairs, and denials. Contains
 * no arguments and no free text, except claims of an ending that rows showed word for word. Leaves
 * out incidents of `hintedGroup`, because the hint to a follower has what this group found, but not
 * followers to which the hint did not apply.
 */
export async function precedentsOf(db: Db | Trx, incident: Incident, limit: number, hintedGroup: string | null = null) {
  const closed = async (atMost: number, isSameKind: boolean) =>
    await closedOf(db, incident, { limit: atMost, isSameKind, hintedGroup })
  const sameKind = await closed(limit, true)
  const others = sameKind.length < limit ? await closed(limit - sameKind.length, false) : []
  return [...sameKind, ...others]
}

/** How many of the newest incidents are ranked. The index search stops after so many. */
const ranked = 50
const maxSaid = 2
const saidCharacters = 200

type Wanted = { limit: number; isSameKind: boolean; hintedGroup: string | null }

async function closedOf(db: Db | Trx, incident: Incident, { limit, isSameKind, hintedGroup }: Wanted) {
  const newest = db
    .selectFrom('incident')
    .select(['id', 'status', 'outcome', 'resourceKind', 'closedAt'])
    .where('type', 'in', [incident.type, ...formerTypes(incident.type)])
    .where('id', '!=', incident.id)
    .where('status', 'in', ['resolved', 'escalated'])
    // Leaves out incidents whose cause a person graded as wrong.
    .where(sql<boolean>`${causeGrade('incident.id')} is distinct from 'wrong'`)
    .where(sql<boolean>`(resource_kind is not distinct from ${incident.resource?.kind ?? null}) = ${isSameKind}`)
    .$if(hintedGroup !== null, (query) =>
      query.where(
        sql<boolean>`(group_id is distinct from ${hintedGroup} or exists (
          select 1 from incident_event e where e.incident_id = incident.id and e.kind = 'hint_diverged'))`,
      ),
    )
    .orderBy('closedAt', 'desc')
    .limit(ranked)
  const rows = await db
    .selectFrom(newest.as('near'))
    .select(['id', 'status', 'outcome', 'resourceKind', 'closedAt'])
    .select([
      sql<StoredClaim[] | null>`(select metadata->'claims' from incident_event e
        where e.incident_id = near.id and e.kind = 'resolved' order by seq desc limit 1)`.as('claims'),
      sql<string[] | null>`(select array_agg(distinct metadata->>'tool') from incident_event e
        where e.incident_id = near.id and e.kind = 'verification' and metadata->>'outcome' = 'held')`.as('repairedBy'),
      toolsAsked('consumed').as('approved'),
      toolsAsked('denied').as('denied'),
    ])
    .orderBy(sql`(outcome is not distinct from 'repaired') desc`)
    .orderBy('closedAt', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ claims, ...row }) => ({ ...row, shown: sayShown(claims ?? []) }))
}

type WrongCause = { id: string; said: string; reason: string | null; wrote: string[]; shown: string[] }

/**
 * Lists causes in incidents of the type that people graded as wrong, newest first, with their
 * writes. A wrong cause is to be examined and never followed.
 */
export async function wrongCausesOf(db: Db | Trx, incident: Incident, limit: number): Promise<WrongCause[]> {
  const newest = db
    .selectFrom('incident')
    .select(['id', 'closedAt'])
    .where('type', 'in', [incident.type, ...formerTypes(incident.type)])
    .where('id', '!=', incident.id)
    .where('status', 'in', ['resolved', 'escalated'])
    .orderBy('closedAt', 'desc')
    .limit(ranked)
  const rows = await db
    .selectFrom(newest.as('near'))
    .innerJoinLateral(
      sql<{
        verdict: string
        text: string | null
        at: string
      }>`(select metadata->>'verdict' as verdict, metadata->>'text' as text, at
        from incident_event e where e.incident_id = near.id and e.kind = 'graded' and not e.metadata ? 'callId' order by seq desc limit 1)`.as(
        'graded',
      ),
      (join) => join.onTrue(),
    )
    .select(['near.id', 'graded.text as reason', 'graded.at'])
    .select([
      sql<StoredClaim[] | null>`(select metadata->'claims' from incident_event e
        where e.incident_id = near.id and e.kind = 'resolved' order by seq desc limit 1)`.as('claims'),
      sql<string[] | null>`(select array_agg(distinct metadata->>'tool') from incident_event e
        where e.incident_id = near.id and e.kind = 'tool_started' and metadata->>'effect' = 'write')`.as('wrote'),
    ])
    .where('graded.verdict', '=', 'wrong')
    .orderBy('near.closedAt', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ id, reason, at, claims, wrote }) => ({
    id,
    said: `a person graded this cause as wrong on ${at.slice(0, 10)}`,
    reason: reason && truncate(reason, saidCharacters),
    wrote: wrote ?? [],
    shown: sayShown(claims ?? []),
  }))
}

const toolsAsked = (status: 'consumed' | 'denied') =>
  sql<string[] | null>`(select array_agg(distinct tool) from approval a
    where a.incident_id = near.id and a.status = ${status})`

/** Quotes the first claims of an ending that rows showed word for word. */
function sayShown(claims: readonly StoredClaim[]): string[] {
  const shown = claims.filter((each) => 'grade' in each && each.grade === 'A')
  return shown.slice(0, maxSaid).map(({ text }) => truncate(text, saidCharacters))
}

const maxSimilar = 5

/** Lists closed incidents that resemble this one, with titles, which only people see. */
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
