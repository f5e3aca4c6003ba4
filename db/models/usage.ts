import { sql } from 'kysely'
import { onceNow } from '../clock.ts'
import type { Scope } from '../scope.ts'

type TokenUse = {
  models: {
    model: string
    answers: number
    failures: number
    promptTokens: number
    completionTokens: number
    /** Tokens of reasoning, if the server counts them. */
    reasoningTokens: number
    /** How many responses lack credible token counts of the server. */
    assumed: number
    seconds: number
  }[]
  byDay: { day: string; incidents: number; tokens: number; approvals: number }[]
  incidents: { status: string; count: number; medianSeconds: number | null }[]
  approvals: { status: string; count: number; medianWaitSeconds: number | null; longestWaitSeconds: number | null }[]
}

type ModelDay = TokenUse['models'][number] & { day: string }

const shownModels = 20

/** Counts how much models and people did in the last days, from log rows. */
export async function usageOf({ db }: Scope, days: number): Promise<TokenUse> {
  const since = sql<string>`(${onceNow} - make_interval(days => ${days}))`
  const today = sql`date_trunc('day', ${onceNow}, 'UTC')`
  const [answers, byDay, incidents, approvals] = await Promise.all([
    // Reads the rows about responses of models once for both counts, because these rows are many
    // and wide.
    sql<ModelDay>`
      select to_char(date_trunc('day', at, 'UTC'), 'YYYY-MM-DD') as day, coalesce(metadata->>'model', 'unknown') as model,
        count(*) filter (where kind = 'model_answered')::int as answers,
        count(*) filter (where kind = 'model_failed')::int as failures,
        coalesce(sum((metadata->'usage'->>'promptTokens')::float8), 0)::float8 as "promptTokens",
        coalesce(sum((metadata->'usage'->>'completionTokens')::float8), 0)::float8 as "completionTokens",
        coalesce(sum((metadata->'usage'->>'reasoningTokens')::float8), 0)::float8 as "reasoningTokens",
        count(*) filter (where metadata->'usage'->'isAssumed' = 'true')::int as assumed,
        (coalesce(sum((metadata->>'durationMs')::float8), 0) / 1000)::float8 as seconds
      from incident_event where kind in ('model_answered', 'model_failed') and at > ${since}
      group by 1, 2`.execute(db),
    sql<Omit<TokenUse['byDay'][number], 'tokens'>>`
      select to_char(day, 'YYYY-MM-DD') as day,
        coalesce(opened.count, 0)::int as incidents, coalesce(asked.count, 0)::int as approvals
      from generate_series(${today} - make_interval(days => ${days - 1}), ${today}, interval '1 day') as day
      left join (select date_trunc('day', created_at, 'UTC') as day, count(*) from incident
        where created_at > ${since} group by 1) as opened using (day)
      left join (select date_trunc('day', requested_at, 'UTC') as day, count(*) from approval
        where requested_at > ${since} group by 1) as asked using (day)
      order by day desc`.execute(db),
    sql<TokenUse['incidents'][number]>`
      select status, count(*)::int as count,
        percentile_cont(0.5) within group (order by extract(epoch from closed_at - created_at))::float8 as "medianSeconds"
      from incident where created_at > ${since} group by status order by count desc`.execute(db),
    sql<TokenUse['approvals'][number]>`
      select status, count(*)::int as count,
        percentile_cont(0.5) within group (order by extract(epoch from decided_at - requested_at))::float8 as "medianWaitSeconds",
        max(extract(epoch from decided_at - requested_at))::float8 as "longestWaitSeconds"
      from approval where requested_at > ${since} group by status order by count desc`.execute(db),
  ])
  const tokens = Map.groupBy(answers.rows, ({ day }) => day)
  return {
    models: modelsOf(answers.rows),
    byDay: byDay.rows.map(({ day, ...counts }) => ({
      day,
      ...counts,
      tokens: sumOf(tokens.get(day) ?? [], ({ promptTokens, completionTokens }) => promptTokens + completionTokens),
    })),
    incidents: incidents.rows,
    approvals: approvals.rows,
  }
}

function modelsOf(rows: ModelDay[]): TokenUse['models'] {
  return [...Map.groupBy(rows, ({ model }) => model)]
    .map(([model, days]) => ({
      model,
      answers: sumOf(days, ({ answers }) => answers),
      failures: sumOf(days, ({ failures }) => failures),
      promptTokens: sumOf(days, ({ promptTokens }) => promptTokens),
      completionTokens: sumOf(days, ({ completionTokens }) => completionTokens),
      reasoningTokens: sumOf(days, ({ reasoningTokens }) => reasoningTokens),
      assumed: sumOf(days, ({ assumed }) => assumed),
      seconds: Math.round(sumOf(days, ({ seconds }) => seconds)),
    }))
    .sort((a, b) => b.answers - a.answers)
    .slice(0, shownModels)
}

function sumOf<T>(rows: T[], of: (row: T) => number): number {
  return rows.reduce((sum, row) => sum + of(row), 0)
}
