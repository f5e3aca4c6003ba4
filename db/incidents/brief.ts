import { sql } from 'kysely'
import type { AttemptSpent, BriefSources } from '../../domain/brief.ts'
import type { EventKind, IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { byCall } from '../../domain/step-key.ts'
import { alertsOf } from '../alerts/alerts.ts'
import { listApprovals } from '../approvals/find.ts'
import { fromRow } from '../log/append.ts'
import type { Scope } from '../scope.ts'

/** Kinds of log rows of which a brief reads all. It reads only some rows of every other kind. */
const briefKinds = [
  ...(['claimed', 'context_assembled', 'verification', 'looked', 'resolved', 'escalated', 'cancelled'] as const),
  ...(['approval_requested', 'approval_decided', 'approval_expired'] as const),
] satisfies EventKind[]

/**
 * Maximum number of newest rows that a brief reads, so that a log of ten thousand rows takes no
 * longer than one of a hundred.
 */
const maxRows = 600

/**
 * Reads the input for the brief of an incident: the needed rows without the data of results, and
 * its alerts, questions and followers.
 */
export async function briefSources(scope: Scope, incident: Incident): Promise<BriefSources> {
  const { db } = scope
  const [events, spent, alerts, questions, followers] = await Promise.all([
    briefEvents(scope, incident),
    spentOfAttempts(scope, incident.id),
    alertsOf(db, incident.id),
    listApprovals(scope, { status: 'pending', incidentId: incident.id }, { before: null, limit: 20 }),
    countFollowers(scope, incident),
  ])
  // Takes the first of several calls on one card as the question.
  const [asked = null, ...more] = questions.toSorted(byCall)
  return { incident, events, spent, alerts, asked, alsoAsked: more.length, followers }
}

async function briefEvents({ db }: Scope, { id, attempt }: Incident): Promise<IncidentEvent[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .selectAll()
    // Leaves out the data of results and the inputs of policy decisions, which are most of a log
    // and which no brief uses.
    .select(sql<IncidentEvent['metadata']>`metadata #- '{result,data}' #- '{basis}'`.as('metadata'))
    .where('incidentId', '=', id)
    .where((where) =>
      where.or([
        where('kind', 'in', briefKinds),
        where.and([where('kind', '=', 'commented'), sql<boolean>`metadata->'hypothesis' is not null`]),
        where.and([where('kind', '=', 'noted'), sql<boolean>`starts_with(metadata->>'code', 'page_')`]),
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
    .limit(maxRows)
    .execute()
  return rows.reverse().map(fromRow)
}

async function spentOfAttempts({ db }: Scope, incidentId: string): Promise<AttemptSpent[]> {
  const { rows } = await sql<AttemptSpent>`
    select attempt, count(*)::int as turns,
      sum((metadata->'usage'->>'promptTokens')::float8 + (metadata->'usage'->>'completionTokens')::float8)::float8 as tokens,
      coalesce(sum((metadata->'cost'->>'dollars')::float8), 0) as dollars,
      sum((metadata->>'durationMs')::float8)::int as "modelMs"
    from incident_event where incident_id = ${incidentId} and kind = 'model_answered' group by attempt`.execute(db)
  return rows
}

/** Counts incidents of the group that wait or run behind this leader; 0 for a follower. */
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
