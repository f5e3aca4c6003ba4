import { sql } from 'kysely'
import type { Db } from './connect.ts'

export type Usage = {
  models: {
    model: string
    answers: number
    failures: number
    promptTokens: number
    completionTokens: number
    seconds: number
  }[]
  byDay: { day: string; incidents: number; tokens: number; approvals: number }[]
  incidents: { status: string; count: number; medianSeconds: number | null }[]
  approvals: { status: string; count: number; medianWaitSeconds: number | null; longestWaitSeconds: number | null }[]
}

/** What the last days took of models and of people, counted from the rows themselves. */
export async function usageOf(db: Db, days: number): Promise<Usage> {
  const since = sql<string>`nightshift_now() - make_interval(days => ${days})`
  const [models, byDay, incidents, approvals] = await Promise.all([
    sql<Usage['models'][number]>`
      select coalesce(metadata->>'model', 'unknown') as model,
        count(*) filter (where kind = 'model_answered')::int as answers,
        count(*) filter (where kind = 'model_failed')::int as failures,
        coalesce(sum((metadata->'usage'->>'promptTokens')::float8), 0)::float8 as "promptTokens",
        coalesce(sum((metadata->'usage'->>'completionTokens')::float8), 0)::float8 as "completionTokens",
        round(coalesce(sum((metadata->>'durationMs')::float8), 0) / 1000)::float8 as seconds
      from incident_event where kind in ('model_answered', 'model_failed') and at > ${since}
      group by 1 order by answers desc limit 20`.execute(db),
    sql<Usage['byDay'][number]>`
      select to_char(day, 'YYYY-MM-DD') as day,
        (select count(*) from incident where created_at >= day and created_at < day + interval '1 day')::int as incidents,
        (select coalesce(sum((metadata->'usage'->>'promptTokens')::float8 + (metadata->'usage'->>'completionTokens')::float8), 0)
          from incident_event where kind = 'model_answered' and at >= day and at < day + interval '1 day')::float8 as tokens,
        (select count(*) from approval where requested_at >= day and requested_at < day + interval '1 day')::int as approvals
      from generate_series(date_trunc('day', ${since}, 'UTC') + interval '1 day', nightshift_now(), interval '1 day') as day
      order by day desc`.execute(db),
    sql<Usage['incidents'][number]>`
      select status, count(*)::int as count,
        percentile_cont(0.5) within group (order by extract(epoch from closed_at - created_at))::float8 as "medianSeconds"
      from incident where created_at > ${since} group by status order by count desc`.execute(db),
    sql<Usage['approvals'][number]>`
      select status, count(*)::int as count,
        percentile_cont(0.5) within group (order by extract(epoch from decided_at - requested_at))::float8 as "medianWaitSeconds",
        max(extract(epoch from decided_at - requested_at))::float8 as "longestWaitSeconds"
      from approval where requested_at > ${since} group by status order by count desc`.execute(db),
  ])
  return { models: models.rows, byDay: byDay.rows, incidents: incidents.rows, approvals: approvals.rows }
}
