import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import { formatCost } from '../../domain/card-sections.ts'
import type { EscalationCategory, Incident, ResolveOutcome } from '../../domain/incident.ts'
import type { DoneLine, Home, Need, NeedLine, WorkLine } from '../../domain/incident-detail.ts'
import type { Risk } from '../../domain/tool.ts'
import { onceNow } from '../clock.ts'
import type { Scope } from '../scope.ts'
import { isClosed, isResolved, isResolvedByItself, isUnproven } from './figures.ts'
import { incidentsById } from './incidents.ts'
import { urgency } from './queue.ts'

/**
 * Reads Home: incidents that wait for a person, that are in progress, and that are done. A storm of
 * incidents of one type is one line.
 */

/** Maximum number of incidents of one kind that have a line each. More incidents share a line. */
const shownEach = 3
/** Maximum number of lines in a part of Home. Incidents without a line are still counted. */
const maxLines = 30

type Group = { type: string; count: number; since: string; ids: string[]; all: number }

/** Reads all parts of Home. `since`: the beginning of this night, in RFC 3339. */
export async function readHome(scope: Scope, since: string): Promise<Home> {
  const [first, tonight, asked, needing, working, ended] = await Promise.all([
    scope.db.selectFrom('incident').select('id').limit(1).executeTakeFirst(),
    sumUp(scope, since),
    pendingQuestions(scope),
    groupsInNeed(scope),
    groupsAtWork(scope),
    groupsDone(scope, since),
  ])
  const groups = [...needing, ...working, ...ended]
  const ids = [...groups.flatMap((group) => group.ids), ...asked.map(({ incidentId }) => incidentId)]
  const known = new Map((await incidentsById(scope, ids)).map((incident) => [incident.id, incident]))
  const needs = needing.flatMap((group) =>
    toLines(group, known).map((line) => ({ ...line, need: group.need, category: group.category, approval: null })),
  )
  const questions = asked.flatMap((question) => toQuestion(question, known))
  const done = ended.flatMap((group) => toLines(group, known).map((line) => toDone(line, group)))
  return {
    since,
    isFresh: first === undefined,
    tonight,
    needsYou: {
      incidents: new Set(asked.map(({ incidentId }) => incidentId)).size + (needing[0]?.all ?? 0),
      lines: [...questions, ...needs].sort(byUrgency).slice(0, maxLines),
    },
    inProgress: {
      incidents: working[0]?.all ?? 0,
      lines: working.flatMap((group) => toWork(group, known)).slice(0, maxLines),
    },
    done: { incidents: ended[0]?.all ?? 0, lines: done.slice(0, maxLines) },
  }
}

type Line = Pick<NeedLine, 'type' | 'severity' | 'count' | 'since' | 'incident'>

/** Splits a small group into one line for each incident. */
function toLines(group: Group, known: Map<string, Incident>): Line[] {
  const isOneEach = group.count <= shownEach
  const found = group.ids.flatMap((id) => known.get(id) ?? [])
  return (isOneEach ? found : found.slice(0, 1)).map((incident) => ({
    type: incident.type,
    severity: incident.severity,
    count: isOneEach ? 1 : group.count,
    since: isOneEach ? (incident.closedAt ?? incident.createdAt) : group.since,
    incident,
  }))
}

/** Computes the duration of a line's incident, or the median of several incidents. */
function toDone(line: Line, { outcome, seconds }: DoneGroup): DoneLine {
  const { createdAt, closedAt } = line.incident
  const isOne = line.count === 1 && closedAt !== null
  return { ...line, outcome, seconds: isOne ? (Date.parse(closedAt) - Date.parse(createdAt)) / 1_000 : seconds }
}

function toWork({ type, count, since, ids, ...counts }: WorkGroup, known: Map<string, Incident>): WorkLine[] {
  const incident = known.get(ids[0] ?? '')
  if (!incident) return []
  const { investigating, queued, owned } = counts
  return [{ type, severity: incident.severity, count, since, incident, investigating, queued, owned }]
}

function toQuestion(question: Question, known: Map<string, Incident>): NeedLine[] {
  const incident = known.get(question.incidentId)
  if (!incident) return []
  const { id, dryRun, risk, expiresAt, alsoAsked } = question
  const approval = { id, summary: dryRun.summary, cost: formatCost(question), risk, expiresAt, alsoAsked }
  const { type, severity } = incident
  return [
    { type, severity, count: 1, since: question.requestedAt, incident, need: 'approval', category: null, approval },
  ]
}

const urgent = ['critical', 'warning', 'info']
const needed: Need[] = ['approval', 'review', 'yours', 'escalated', 'kept']

/**
 * Sorts lines by need, the lines with a question first, because a question expires. Lines with one
 * need are sorted by urgency, then the newest first.
 */
function byUrgency(a: NeedLine, b: NeedLine): number {
  return (
    needed.indexOf(a.need) - needed.indexOf(b.need) ||
    urgent.indexOf(a.severity) - urgent.indexOf(b.severity) ||
    b.since.localeCompare(a.since)
  )
}

type Question = Pick<Approval, 'reversible' | 'dryRun'> & {
  id: string
  incidentId: string
  risk: Risk
  requestedAt: string
  expiresAt: string
  alsoAsked: number
}

/** Lists calls about which people are asked now. The card of a call also shows its other calls. */
async function pendingQuestions({ db }: Scope): Promise<Question[]> {
  const { rows } = await sql<Question>`
    select id, incident_id as "incidentId", risk, requested_at as "requestedAt", reversible,
      jsonb_build_object('summary', dry_run->'summary', 'possible', dry_run->'possible', 'proof', dry_run->'proof',
        'details', jsonb_build_object('standing', dry_run->'details'->'standing')) as "dryRun",
      expires_at as "expiresAt", (
        select count(*) from approval as other
        where other.asked_with = approval.asked_with and other.status = 'pending' and other.id <> approval.id
      )::int as "alsoAsked"
    from approval where status = 'pending' and announced and expires_at > ${onceNow} order by expires_at`.execute(db)
  return rows
}

/** Whether an incident has a pending question, so that Home lists it only with the questions. */
const isAsked = sql<boolean>`exists (
  select 1 from approval where approval.incident_id = incident.id and approval.status = 'pending' and announced and expires_at > ${onceNow})`

type NeedGroup = Group & { need: Exclude<Need, 'approval'>; category: EscalationCategory | null }

async function groupsInNeed({ db, reader }: Scope): Promise<NeedGroup[]> {
  const me = reader === 'system' ? null : reader.operatorId
  const { rows } = await sql<NeedGroup>`
    select case when review_wanted_at is not null then 'review' when owner_id is not null then 'yours' when status = 'escalated' then 'escalated' else 'kept' end as need,
      type, category, count(*)::int as count, min(coalesce(closed_at, created_at)) as since,
      (array_agg(id order by ${urgency}, id desc))[1:${sql.lit(shownEach)}] as ids, sum(count(*)) over ()::int as "all"
    from incident
    where (review_wanted_at is not null or (owner_id = ${me} and status in ('open', 'investigating', 'awaiting_approval', 'escalated'))
        or (owner_id is null and (status = 'escalated' or (status = 'open' and kept_reason is not null))))
      and not ${isAsked}
    group by 1, 2, 3 order by min(${urgency}), max(coalesce(closed_at, created_at)) desc limit 100`.execute(db)
  return rows
}

type WorkGroup = Group & Pick<WorkLine, 'investigating' | 'queued' | 'owned'>

/** Lists groups of incidents in progress. The first id of a group is the id of its leader. */
async function groupsAtWork({ db, reader }: Scope): Promise<WorkGroup[]> {
  const me = reader === 'system' ? null : reader.operatorId
  const { rows } = await sql<WorkGroup>`
    select type, count(*)::int as count, min(created_at) as since,
      count(*) filter (where owner_id is null and status <> 'open')::int as investigating,
      count(*) filter (where owner_id is null and status = 'open')::int as queued,
      count(*) filter (where owner_id is not null)::int as owned,
      (array_agg(id order by status = 'investigating' desc, role = 'leader' desc nulls last, ${urgency}, id))[1:1] as ids,
      sum(count(*)) over ()::int as "all"
    from incident
    where review_wanted_at is null and not ${isAsked} and case
      when owner_id is not null then owner_id is distinct from ${me} and status in ('open', 'investigating', 'awaiting_approval', 'escalated')
      else status in ('investigating', 'awaiting_approval') or (status = 'open' and kept_reason is null) end
    group by type order by min(${urgency}), min(created_at) limit 100`.execute(db)
  return rows
}

type DoneGroup = Group & { outcome: ResolveOutcome | null; seconds: number }

async function groupsDone({ db }: Scope, since: string): Promise<DoneGroup[]> {
  const { rows } = await sql<DoneGroup>`
    select type, outcome, count(*)::int as count, max(closed_at) as since,
      percentile_cont(0.5) within group (order by extract(epoch from closed_at - created_at))::float8 as seconds,
      (array_agg(id order by closed_at desc))[1:${sql.lit(shownEach)}] as ids, sum(count(*)) over ()::int as "all"
    from incident where status in ('resolved', 'cancelled') and closed_at >= ${since}::timestamptz and review_wanted_at is null
    group by type, outcome order by max(closed_at) desc limit 100`.execute(db)
  return rows
}

async function sumUp({ db }: Scope, since: string): Promise<Home['tonight']> {
  const [counts, repairs, spent] = await Promise.all([
    sql<Omit<Home['tonight'], 'failedRepairs' | 'tokens' | 'dollars'>>`
      select count(*)::int as incidents,
        count(*) filter (where ${isClosed})::int as closed,
        count(*) filter (where ${isResolved})::int as resolved,
        count(*) filter (where ${isUnproven})::int as unproven,
        count(*) filter (where ${isResolvedByItself} and not exists (
            select 1 from incident_event event where event.incident_id = incident.id and seq > 1 and at <= closed_at
              and actor like 'user:%'
          ))::int as "resolvedAlone",
        count(*) filter (where status = 'escalated')::int as escalated,
        percentile_cont(0.5) within group (order by extract(epoch from closed_at - created_at))
          filter (where ${isResolved})::float8 as "medianSeconds"
      from incident where created_at >= ${since}::timestamptz`.execute(db),
    sql<{ count: number }>`
      select count(*)::int as count from (
        select distinct on (incident_id, attempt, metadata->>'callId') metadata->>'outcome' as outcome
        from incident_event where kind = 'verification' and at >= ${since}::timestamptz
        order by incident_id, attempt, metadata->>'callId', seq desc) as newest
      where outcome = 'not_held'`.execute(db),
    sql<{ tokens: number; dollars: number }>`
      select coalesce(sum((metadata->'usage'->>'promptTokens')::float8 + (metadata->'usage'->>'completionTokens')::float8), 0)::float8
          as tokens, coalesce(sum((metadata->'cost'->>'dollars')::float8), 0)::float8 as dollars
      from incident_event where kind in ('model_answered', 'model_failed') and at >= ${since}::timestamptz`.execute(db),
  ])
  const [count] = counts.rows
  if (!count) throw new Error('PostgreSQL counted nothing')
  const { tokens = 0, dollars = 0 } = spent.rows[0] ?? {}
  return { ...count, failedRepairs: repairs.rows[0]?.count ?? 0, tokens, dollars }
}
