import { type RawBuilder, sql } from 'kysely'
import { hastySeconds } from '../../domain/format-approval.ts'
import type { EscalationCategory, Severity } from '../../domain/incident.ts'
import type { Report, ReportLine, Spread } from '../../domain/report.ts'
import type { Db } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { isClosed, isResolved, isResolvedByItself, isUnproven } from './figures.ts'

/** Days in UTC such as `2026-11-21`, the first and the last day included. */
type ReportRange = { since: string; until: string }

type ReportFilter = { type?: string | null; severity?: Severity | null }
type Question = ReportRange & { type: string | null; severity: Severity | null }
/**
 * Identifies a line of the report: the line of a type, the line of a week, or the line of the total
 * if type and week are null.
 */
type ReportPlace = { type: string | null; week: string | null }
type Seconds = [p50: number, p90: number] | null
type Counted = ReportPlace &
  Omit<ReportLine, 'escalations' | 'dollars' | 'approvals' | `${string}Seconds`> & {
    acknowledge: Seconds
    resolve: Seconds
  }
type Escalated = ReportPlace & { category: EscalationCategory; count: number }
type QuestionCounts = ReportPlace & { approvals: number; hasty: number; wait: Seconds }
type Spent = ReportPlace & { dollars: number }

const maxTypes = 100
const maxSpared = 100
const dayMs = 86_400_000

/**
 * Reports the outcomes of incidents that began in a range of days: in total, by type (the hundred
 * types with the most incidents) and by week. Seconds are null if no incident has a value. The cost
 * covers the responses in the range, whenever their incident began. It is stored only by type, so
 * it is null for a single severity.
 */
export async function reportOf({ db }: Scope, range: ReportRange, filter: ReportFilter = {}): Promise<Report> {
  const question = { ...range, type: filter.type ?? null, severity: filter.severity ?? null }
  const [counted, escalated, asked, spared, spent] = await Promise.all([
    countedOf(db, question),
    escalatedOf(db, question),
    askedOf(db, question),
    sparedOf(db, question),
    question.severity === null ? spentOf(db, question) : [],
  ])
  const at = (place: ReportPlace): ReportLine => {
    const isHere = (row: ReportPlace) => row.type === place.type && row.week === place.week
    const { acknowledge = null, resolve = null, ...counts } = counted.find(isHere) ?? {}
    const { approvals = 0, hasty = 0, wait = null } = asked.find(isHere) ?? {}
    return {
      ...nothing,
      ...without(counts),
      acknowledgeSeconds: spread(acknowledge),
      resolveSeconds: spread(resolve),
      escalations: escalated.filter(isHere).map(({ category, count }) => ({ category, count })),
      approvals,
      approvalsWithinSeconds: hasty,
      approvalSeconds: spread(wait),
      dollars: question.severity === null ? (spent.find(isHere)?.dollars ?? 0) : null,
    }
  }
  const types = [...new Set([...counted, ...spent].flatMap((row) => row.type ?? []))]
  return {
    ...range,
    total: at({ type: null, week: null }),
    byType: types
      .map((each) => ({ type: each, ...at({ type: each, week: null }) }))
      .sort((a, b) => b.incidents - a.incidents || (a.type < b.type ? -1 : 1))
      .slice(0, maxTypes),
    byWeek: weeksOf(range).map((week) => ({ week, ...at({ type: null, week }) })),
    spared,
  }
}

const nothing = {
  incidents: 0,
  closed: 0,
  resolved: 0,
  autoResolved: 0,
  unproven: 0,
  escalated: 0,
  repairs: 0,
  repairsNotLasting: 0,
  pagesHeld: 0,
  questionsHeld: 0,
  wakesAvoided: 0,
  unshownClaims: 0,
  causesRight: 0,
  causesPartly: 0,
  causesWrong: 0,
}

function without({ type: _, week: __, ...counts }: Partial<Counted>): Partial<typeof nothing> {
  return counts
}

function spread(seconds: Seconds): Spread {
  return seconds === null || seconds[0] === null ? null : { p50: seconds[0], p90: seconds[1] }
}

/** Lists the Mondays of a range, beginning with the Monday of the week of its first day. */
function weeksOf({ since, until }: ReportRange): string[] {
  const first = Date.parse(since)
  const monday = first - ((new Date(first).getUTCDay() + 6) % 7) * dayMs
  const weeks = Math.max(0, Math.floor((Date.parse(until) - monday) / (7 * dayMs)) + 1)
  return Array.from({ length: weeks }, (_, at) => new Date(monday + at * 7 * dayMs).toISOString().slice(0, 10))
}

/** Selects the incidents of a range, each with the Monday of the week in which it began. */
function begun({ since, until, type, severity }: Question): RawBuilder<unknown> {
  return sql`
    select id, type, date_trunc('week', created_at at time zone 'UTC')::date as week, status, outcome, category, closed_by, created_at,
      closed_at, resource_kind, resource_id
    from incident
    where created_at >= ${since}::date::timestamp at time zone 'UTC'
      and created_at < (${until}::date + 1)::timestamp at time zone 'UTC'
      ${type === null ? sql`` : sql`and type = ${type}`}
      ${severity === null ? sql`` : sql`and severity = ${severity}`}`
}

/**
 * Rows about claims that no log row shows: a call that the policy check refused, a refused response
 * in prose, a marked ending.
 */
const isUnshown = sql.raw(`(
  kind = 'call_judged' and metadata->>'code' in ('CLAIM_NOT_SHOWN', 'PHANTOM_CLAIM')
  or kind = 'correction_sent' and metadata->>'code' in ('claim_not_shown', 'phantom_claim')
  or kind in ('resolved', 'escalated') and (metadata ? 'unshown' or metadata @? '$.claims[*] ? (@.shown == false)'))`)
const isRepair = sql.raw(`kind = 'resolved' and metadata->>'outcome' = 'repaired' and actor not like 'user:%'`)
const isOfGate = sql.raw(`(
  kind = 'noted' and metadata->>'code' in ('page_held', 'page_spared', 'reopened') or kind = 'escalated')`)
/** Whether an incident's page was not needed and nobody was woken later, by its rows. */
const isSpared = sql.raw(`coalesce(max(seq) filter (where metadata->>'code' = 'page_spared') >= max(seq), false)`)
const isHand = sql.raw(`kind = 'claimed' or actor like 'user:%'`)

/**
 * Counts outcomes of incidents. The first row of a run or person acknowledges an incident. A person
 * took part if a row of a person, except the opening row, precedes the end. A repair is an ending
 * as repaired by the agent, which code accepts only for a verified write. A repair did not last if
 * the incident continued, or if the resource had another incident of the type within a day.
 */
async function countedOf(db: Db, question: Question): Promise<Counted[]> {
  const { rows } = await sql<Counted>`
    with begun as materialized (${begun(question)}),
    hands as materialized (
      select incident_id, min(at) as first_at, min(at) filter (where actor like 'user:%') as person_at
      from incident_event where (${isHand}) and seq > 1 and incident_id in (select id from begun) group by 1),
    repaired as materialized (
      select incident_id, count(*) as repairs, max(seq) as last_seq, max(at) as last_at from incident_event
      where ${isRepair} and incident_id in (select id from begun) group by 1),
    gated as materialized (
      select incident_id, bool_or(metadata->>'code' = 'page_held') as is_held, ${isSpared} as is_spared from incident_event
      where ${isOfGate} and incident_id in (select id from begun) group by 1),
    quiet as materialized (
      select incident_id, count(*) as quiet, count(*) filter (where not exists (
        select from incident_event as late where late.incident_id = held.incident_id and late.seq > held.seq
          and late.kind = 'noted' and late.metadata->>'code' = 'wake_late')) as slept from incident_event as held
      where kind = 'noted' and metadata->>'code' = 'wake_held' and incident_id in (select id from begun) group by 1),
    unshown as materialized (
      select incident_id, count(*) as unshown from incident_event
      where ${isUnshown} and incident_id in (select id from begun) group by 1),
    graded as materialized (
      select distinct on (incident_id) incident_id, metadata->>'verdict' as cause from incident_event
      where kind = 'graded' and not metadata ? 'callId' and incident_id in (select id from begun)
      order by incident_id, seq desc),
    facts as (
      select begun.type, week, status, repairs, unshown, is_held, is_spared, coalesce(quiet, 0) as quiet, coalesce(slept, 0) as slept, cause,
        ${isClosed} as is_closed, ${isResolved} as is_resolved, ${isUnproven} as is_unproven,
        ${isResolvedByItself} and coalesce(person_at > closed_at, true) as is_auto,
        extract(epoch from first_at - created_at)::float8 as acknowledge,
        case when ${isResolved} then extract(epoch from closed_at - created_at)::float8 end as resolve,
        repairs - case when status = 'resolved' and again.id is null and not exists (
          select 1 from incident_event as later where later.incident_id = begun.id and later.seq > last_seq
            and later.kind in ('claimed', 'resolved', 'escalated', 'cancelled')) then 1 else 0 end as not_lasting
      from begun
      left join hands on hands.incident_id = begun.id
      left join repaired on repaired.incident_id = begun.id
      left join gated on gated.incident_id = begun.id
      left join quiet on quiet.incident_id = begun.id
      left join unshown on unshown.incident_id = begun.id
      left join graded on graded.incident_id = begun.id
      left join lateral (
        select other.id from incident as other
        where repairs > 0 and other.type = begun.type and other.resource_kind = begun.resource_kind
          and other.resource_id = begun.resource_id and other.created_at > repaired.last_at
          and other.created_at <= repaired.last_at + interval '1 day' limit 1) as again on true)
    select type, to_char(week, 'YYYY-MM-DD') as week, count(*)::int as incidents,
      (count(*) filter (where is_closed))::int as closed,
      (count(*) filter (where is_resolved))::int as resolved,
      (count(*) filter (where is_unproven))::int as unproven,
      (count(*) filter (where is_auto))::int as "autoResolved",
      (count(*) filter (where status = 'escalated'))::int as escalated,
      percentile_cont(array[0.5, 0.9]) within group (order by acknowledge) as acknowledge,
      percentile_cont(array[0.5, 0.9]) within group (order by resolve) as resolve,
      coalesce(sum(repairs), 0)::int as repairs, coalesce(sum(not_lasting), 0)::int as "repairsNotLasting",
      (count(*) filter (where is_held))::int as "pagesHeld", coalesce(sum(quiet), 0)::int as "questionsHeld",
      (count(*) filter (where is_spared) + coalesce(sum(slept), 0))::int as "wakesAvoided",
      coalesce(sum(unshown), 0)::int as "unshownClaims",
      (count(*) filter (where cause = 'right'))::int as "causesRight",
      (count(*) filter (where cause = 'partly'))::int as "causesPartly",
      (count(*) filter (where cause = 'wrong'))::int as "causesWrong"
    from facts group by grouping sets ((), (type), (week))`.execute(db)
  return rows
}

async function escalatedOf(db: Db, question: Question): Promise<Escalated[]> {
  const { rows } = await sql<Escalated>`
    select type, to_char(week, 'YYYY-MM-DD') as week, coalesce(category, 'unknown') as category, count(*)::int as count
    from (${begun(question)}) as begun where status = 'escalated'
    group by grouping sets ((3), (type, 3), (week, 3)) order by count desc, 3`.execute(db)
  return rows
}

/**
 * Whether an approval came within a few seconds of the question. Excludes the person who wrote the
 * arguments or requested the write, who knew the action before.
 */
const isHasty = sql.raw(`exists (
  select from approval_decision as vote where vote.approval_id = approval.id and vote.decision = 'approve'
    and vote.via not in ('edit', 'direct') and vote.at < approval.requested_at + make_interval(secs => ${hastySeconds}))`)

async function askedOf(db: Db, question: Question): Promise<QuestionCounts[]> {
  const { rows } = await sql<QuestionCounts>`
    select type, to_char(week, 'YYYY-MM-DD') as week, count(*)::int as approvals, (count(*) filter (where ${isHasty}))::int as hasty,
      percentile_cont(array[0.5, 0.9]) within group (order by extract(epoch from decided_at - requested_at)::float8) as wait
    from (${begun(question)}) as begun join approval on approval.incident_id = begun.id
    group by grouping sets ((), (type), (week))`.execute(db)
  return rows
}

async function sparedOf(db: Db, question: Question): Promise<Report['spared']> {
  const { rows } = await sql<Report['spared'][number]>`
    select incident.id as "incidentId", title, spared.at, spared.text from (
      select incident_id, max(at) filter (where metadata->>'code' = 'page_spared') as at,
        max(metadata->>'text') filter (where metadata->>'code' = 'page_spared') as text
      from incident_event where ${isOfGate} and incident_id in (select id from (${begun(question)}) as begun)
      group by 1 having ${isSpared}) as spared
    join incident on incident.id = spared.incident_id order by spared.at desc limit ${maxSpared}`.execute(db)
  return rows
}

async function spentOf(db: Db, { since, until, type }: Question): Promise<Spent[]> {
  const { rows } = await sql<Spent>`
    select type, to_char(week, 'YYYY-MM-DD') as week, sum(cost)::float8 as dollars
    from (select type, cost, date_trunc('week', day::timestamp)::date as week from model_spend
      where day between ${since}::date and ${until}::date ${type === null ? sql`` : sql`and type = ${type}`}) as spent
    group by grouping sets ((), (type), (week))`.execute(db)
  return rows
}
