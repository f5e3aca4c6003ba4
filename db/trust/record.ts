import { type RawBuilder, sql } from 'kysely'
import { formerTypes } from '../../domain/incident-type.ts'
import { reopenText } from '../../domain/lifecycle.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import {
  emptyRecord,
  type GradedWeek,
  type PairStanding,
  type TrustCall,
  type TrustPair,
  type TrustRecord,
} from '../../domain/trust.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import type { SettingsReader } from '../settings.ts'
import { setPairs } from './levels.ts'

/**
 * Counts the outcomes of the writes that the agent proposed. They are counted from the logs of
 * incidents each time and stored nowhere else.
 */

/** One pair; null stands for all pairs. */
type Question = TrustPair | null

/**
 * Selects calls that the kernel would have allowed, or about which it would have asked people, with
 * their outcomes in the log. Excludes people's own writes.
 */
function calls(pair: Question): RawBuilder<unknown> {
  const isOfType = pair === null ? sql`` : sql`and incident.type = any(${[pair.type, ...formerTypes(pair.type)]})`
  const isOfTool = pair === null ? sql`` : sql`and tool = ${pair.tool}`
  // Reads each row once, however long an incident is. Rows that belong to no call form one group,
  // which applies to all calls of their attempt.
  return sql`
    facts as (
      select incident_id, ${attemptOf} as attempt, ${callOf} as call_id,
        max(metadata->>'tool') filter (where ${isProposed}) as tool, max(seq) filter (where ${isProposed}) as seq,
        max(at) filter (where ${isProposed}) as at, bool_or(metadata->>'code' = 'SHADOW') filter (where ${isProposed}) as shadowed,
        bool_or(kind = 'approval_decided' and metadata->>'status' = 'approved') as approved,
        bool_or(kind = 'approval_decided' and metadata->>'status' = 'denied') as denied,
        bool_or(kind = 'tool_started') as ran,
        bool_or(kind = 'tool_finished' and metadata->>'outcome' = 'done') as done,
        (array_agg(metadata->>'outcome' order by seq desc) filter (where kind = 'verification'))[1] as verified,
        (array_agg(metadata->>'verdict' order by seq desc) filter (where kind = 'graded'))[1] as grade,
        bool_or(kind = 'resolved' and metadata->>'outcome' = 'repaired' and actor like 'agent:%') as repaired,
        bool_or(kind = 'noted' and metadata->>'code' = 'reopened' and detail in (${reopenText.came_back}, ${reopenText.did_not_last})
          or kind = 'escalated' and metadata->>'code' in ('ALERT_GOES_ON', 'DOES_NOT_LAST')) as returned
      from incident_event
      where kind in ('call_judged', 'approval_decided', 'tool_started', 'tool_finished', 'verification', 'graded', 'resolved', 'noted', 'escalated')
        and incident_id in (
          select judged.incident_id from incident_event as judged join incident on incident.id = judged.incident_id
          where judged.kind = 'call_judged' and judged.metadata->>'effect' = 'write' and incident.type <> ${manualChangeType} ${isOfType})
      group by 1, 2, 3),
    spread as (
      select *, max(grade) filter (where call_id is null) over round as cause_grade, bool_or(repaired) over round as was_repaired,
        bool_or(repaired) over round and bool_or(returned) over round as came_back_itself
      from facts window round as (partition by incident_id, attempt)),
    became as (
      select incident.type, spread.*, coalesce(came_back_itself, false) or exists (
        select 1 from incident as next where next.previous_id = spread.incident_id and was_repaired
          and next.created_at < incident.closed_at + interval '1 day') as came_back
      from spread join incident on incident.id = spread.incident_id where call_id is not null and tool is not null ${isOfTool})`
}

/** Whether the kernel would have allowed the call, or would have asked people about it. */
const isProposed = sql.raw(`kind = 'call_judged' and metadata->>'effect' = 'write'
  and (metadata->>'verdict' in ('run', 'ask') or metadata->>'code' = 'SHADOW')`)

/** The id of the call that a row belongs to. A row about the whole attempt belongs to no call. */
const callOf = sql.raw(`case when kind not in ('resolved', 'noted', 'escalated') then metadata->>'callId' end`)

/**
 * The attempt that a row is about. A grade names its attempt, because a later attempt may be
 * current.
 */
const attemptOf = sql.raw(`case kind when 'graded' then (metadata->>'attempt')::int else attempt end`)

const isHeld = sql.raw(`verified = 'held'`)
const isLost = sql.raw(
  `(ran and (done and verified = 'not_held' or verified is distinct from 'not_held' and came_back))`,
)
const isRight = sql.raw(`(grade = 'right' or ran and cause_grade = 'right')`)
const isWrong = sql.raw(`(grade in ('wrong', 'harmful') or ran and cause_grade = 'wrong')`)

async function countedOf(db: Db | Trx, pair: Question): Promise<(TrustPair & TrustRecord)[]> {
  const { rows } = await sql<TrustPair & TrustRecord>`
    with ${calls(pair)}
    select type, tool, count(*)::int as proposed,
      (count(*) filter (where shadowed))::int as shadowed,
      (count(*) filter (where shadowed and grade is null))::int as ungraded,
      (count(*) filter (where approved))::int as approved,
      (count(*) filter (where denied))::int as denied,
      (count(*) filter (where ran))::int as ran,
      (count(*) filter (where ${isHeld}))::int as held,
      (count(*) filter (where ${isHeld} and not came_back))::int as lasted,
      (count(*) filter (where ${isLost}))::int as lost,
      (count(*) filter (where ${isRight}))::int as right,
      (count(*) filter (where ${isWrong}))::int as wrong
    from became group by type, tool order by type, tool`.execute(db)
  return rows
}

/** Reads the record of one pair, including calls under older spellings of its incident type. */
export async function recordOf(db: Db | Trx, pair: TrustPair): Promise<TrustRecord> {
  const total = { ...emptyRecord }
  for (const row of await countedOf(db, pair))
    for (const name of Object.keys(total) as (keyof TrustRecord)[]) total[name] += row[name]
  return total
}

/** Maximum number of pairs in the list. */
const maxPairs = 500

/** Lists every pair that was proposed or whose level was set. */
export async function standings(scope: Scope, settings: SettingsReader): Promise<PairStanding[]> {
  const [counted, set] = await Promise.all([countedOf(scope.db, null), setPairs(scope)])
  const names = new Map([...set, ...counted].map(({ type, tool }) => [`${type} ${tool}`, { type, tool }]))
  const found = [...names.values()].map(({ type, tool }): PairStanding => {
    const isThis = (each: TrustPair) => each.type === type && each.tool === tool
    const own = set.find(isThis)
    const { type: _, tool: __, ...record } = counted.find(isThis) ?? { type, tool, ...emptyRecord }
    const level = own?.level ?? settings.value<PairStanding['level']>('agent.trust')
    return { type, tool, level, cause: own?.cause ?? null, since: own?.at ?? null, record }
  })
  return found.sort((a, b) => (`${a.type} ${a.tool}` < `${b.type} ${b.tool}` ? -1 : 1)).slice(0, maxPairs)
}

/** Lists the newest calls of a pair, with their outcomes. */
export async function callsOf({ db }: Scope, pair: TrustPair, limit: number): Promise<TrustCall[]> {
  const { rows } = await sql<TrustCall>`
    with ${calls(pair)}
    select incident_id as "incidentId", attempt, call_id as "callId", seq, at, shadowed, approved, denied, ran, verified,
      ${isLost} as lost, coalesce(grade, case when ran then cause_grade end) as grade
    from became order by at desc limit ${limit}`.execute(db)
  return rows
}

/** Counts people's grades for a pair by week (named by its Monday, UTC), newest first. */
export async function gradedWeeksOf({ db }: Scope, pair: TrustPair, limit: number): Promise<GradedWeek[]> {
  const { rows } = await sql<GradedWeek>`
    with ${calls(pair)}
    select to_char(date_trunc('week', at at time zone 'UTC'), 'YYYY-MM-DD') as week,
      (count(*) filter (where ${isRight}))::int as right, (count(*) filter (where ${isWrong}))::int as wrong
    from became where ${isRight} or ${isWrong} group by 1 order by 1 desc limit ${limit}`.execute(db)
  return rows
}
