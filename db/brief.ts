import { sql } from 'kysely'
import type { AttemptSpent, BriefSources, SimilarIncident } from '../domain/brief.ts'
import type { EventKind, IncidentEvent } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { byCall } from '../domain/step-key.ts'
import { alertsOf } from './alerts.ts'
import { fromRow } from './append.ts'
import { listApprovals } from './approvals/find.ts'
import type { Db, Scope, Trx } from './connect.ts'

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
    .where('type', '=', incident.type)
    .where('id', '!=', incident.id)
    .where('status', 'in', ['resolved', 'escalated'])
    .orderBy('closedAt', 'desc')
    .limit(limit)
}

/** Rows that a brief reads whatever they hold; of other kinds it reads some. */
const briefKinds = [
  ...(['claimed', 'context_assembled', 'verification', 'looked', 'resolved', 'escalated', 'cancelled'] as const),
  ...(['approval_requested', 'approval_decided', 'approval_expired'] as const),
] satisfies EventKind[]

/** So many rows at most, the newest: a log of ten thousand is answered as fast as one of a hundred. */
const mostRows = 600

/** What the brief of an incident is folded from: the rows that it needs, without the data of results, and what stands beside the log. */
export async function briefSources(scope: Scope, incident: Incident): Promise<BriefSources> {
  const { db } = scope
  const [events, spent, alerts, questions, followers] = await Promise.all([
    briefEvents(scope, incident),
    spentOfAttempts(scope, incident.id),
    alertsOf(db, incident.id),
    listApprovals(scope, { status: 'pending', incidentId: incident.id }, { before: null, limit: 20 }),
    countFollowers(scope, incident),
  ])
  // Of several on one card the one whose call comes first.
  const [asked = null, ...more] = questions.toSorted(byCall)
  return { incident, events, spent, alerts, asked, alsoAsked: more.length, followers }
}

async function briefEvents({ db }: Scope, { id, attempt }: Incident): Promise<IncidentEvent[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .selectAll()
    // The data of results and what a ruling rested on are most of a log, and a brief reads neither.
    .select(sql<IncidentEvent['metadata']>`metadata #- '{result,data}' #- '{basis}'`.as('metadata'))
    .where('incidentId', '=', id)
    .where((where) =>
      where.or([
        where('kind', 'in', briefKinds),
        where.and([where('kind', '=', 'commented'), sql<boolean>`metadata->'hypothesis' is not null`]),
        where.and([where('kind', '=', 'tool_started'), sql<boolean>`metadata->>'effect' = 'write'`]),
        where.and([
          where('kind', '=', 'call_judged'),
          sql<boolean>`metadata->>'effect' = 'write' and metadata->>'verdict' = 'refuse'`,
        ]),
        where.and([
          where('kind', '=', 'tool_finished'),
          where.or([where('attempt', '=', attempt), sql<boolean>`metadata->>'effect' = 'write'`]),
        ]),
      ]),
    )
    .orderBy('seq', 'desc')
    .limit(mostRows)
    .execute()
  return rows.reverse().map(fromRow)
}

async function spentOfAttempts({ db }: Scope, incidentId: string): Promise<AttemptSpent[]> {
  const { rows } = await sql<AttemptSpent>`
    select attempt, count(*)::int as turns,
      sum((metadata->'usage'->>'promptTokens')::int + (metadata->'usage'->>'completionTokens')::int)::int as tokens,
      coalesce(sum((metadata->'cost'->>'dollars')::float8), 0) as dollars,
      sum((metadata->>'durationMs')::float8)::int as "modelMs"
    from incident_event where incident_id = ${incidentId} and kind = 'model_answered' group by attempt`.execute(db)
  return rows
}

/** How many others of its group wait or work behind it; of a follower none. */
async function countFollowers({ db }: Scope, { id, groupId, role }: Incident): Promise<number> {
  if (!groupId || role === 'follower') return 0
  const { count } = await db
    .selectFrom('incident')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('groupId', '=', groupId)
    .where('id', '!=', id)
    .where('status', 'in', ['open', 'investigating', 'awaiting_approval'])
    .executeTakeFirstOrThrow()
  return count
}

const mostSimilar = 5

/** Closed incidents like this one, with their titles: for people. A model sees them without. */
export async function similarOf({ db }: Scope, incident: Incident): Promise<SimilarIncident[]> {
  const similar = await precedentsOf(db, incident, mostSimilar)
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
