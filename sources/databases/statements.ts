import { formatCount } from '../../domain/format.ts'
import { fitSummary } from '../kind.ts'
import type { Question } from './question.ts'
import type { SqlRow } from './sessions.ts'
import { hideLiterals } from './statement.ts'

/** Statements that cost most since the server's counters began (pg_stat_statements). */

/** Names of the columns since version 13; before it was \`total_time\`, \`mean_time\`. */
const statementsSql = (major: number): string => {
  const time = major >= 13 ? 'exec_time' : 'time'
  return `
  select s.queryid::text as id, coalesce(r.rolname, '?') as user, d.datname as database, s.calls, s.rows,
    round(s.total_${time}::numeric) as total_ms, round(s.mean_${time}::numeric, 1) as mean_ms, round(s.max_${time}::numeric) as max_ms,
    s.shared_blks_read as blocks_read, s.temp_blks_written as temp_blocks_written, left(s.query, 4000) as query
  from pg_stat_statements s left join pg_roles r on r.oid = s.userid left join pg_database d on d.oid = s.dbid
  order by s.total_${time} desc limit 20`
}

const extensionSql = `
  select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`

const sinceSql = `select to_char(stats_reset, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since from pg_stat_statements_info`

export const statements: Question = {
  name: 'statements',
  asks: 'what costs most',
  async read(ask) {
    const { rows, server } = await ask({ sql: extensionSql })
    if (rows.length === 0) {
      const remedy =
        'pg_stat_statements is not in this database: shared_preload_libraries, then CREATE EXTENSION pg_stat_statements'
      return { summary: { unavailable: remedy }, whole: '', isEmpty: false, isPartial: true }
    }
    const schema = String(rows[0]?.schema).replaceAll('"', '""')
    const named = (sql: string) => sql.replaceAll(/\bpg_stat_statements(?:_info)?\b/g, `"${schema}".$&`)
    const items = (await ask({ sql: named(statementsSql(server.major)) })).rows.map(({ query, ...row }) => ({
      ...row,
      statement: hideLiterals(String(query ?? ''), 'postgres'),
    }))
    const [info] = server.major >= 14 ? (await ask({ sql: named(sinceSql) })).rows : []
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        countedSince: info?.since ?? 'not known',
        statements: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: items.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: items.length === 0,
    }
  },
  say: ({ statements: shown, unavailable }) => {
    if (unavailable) return String(unavailable)
    const [first] = (shown ?? []) as SqlRow[]
    const most = first ? `; most time: ${first.statement} (${first.calls} calls, ${first.mean_ms} ms each)` : ''
    return `${formatCount((shown as unknown[]).length, 'statement')} by total time${most}`
  },
}
