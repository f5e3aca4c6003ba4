import { toTimeSql } from '../../clients/databases/postgres.ts'
import { formatCount } from '../../domain/format.ts'
import { fitSummary } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import type { Question } from './question.ts'
import type { SqlRow } from './sessions.ts'
import { hideLiterals } from './statement.ts'
import { type Counted, perSecond, readTwice } from './twice.ts'

/** Statements that cost most, by pg_stat_statements: what they take now, and what they took since the counters began. */

const maxCounted = 1_000
const maxShown = 12

/** Names of the columns since version 13; before it was `total_time`. */
const countersSql = (major: number): string => `
  select s.userid::text || ' ' || s.dbid::text || ' ' || s.queryid::text as key, s.userid, s.dbid, s.queryid::text as id,
    s.calls, s.rows, s.${major >= 13 ? 'total_exec_time' : 'total_time'} as total_ms, s.temp_blks_written as temp_blocks
  from pg_stat_statements s order by total_ms desc limit ${maxCounted}`

/** Texts of those that are shown: the counters are read without them. */
const textsSql = (ids: readonly string[]): string => `
  select s.queryid::text as id, r.rolname as user, d.datname as database, left(min(s.query), 4000) as query
  from pg_stat_statements s left join pg_roles r on r.oid = s.userid left join pg_database d on d.oid = s.dbid
  where s.queryid::text in (${ids.map((id) => `'${id.replace(/[^\d-]/g, '')}'`).join(', ')}) group by 1, 2, 3`

const extensionSql = `
  select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`

const sinceSql = `select ${toTimeSql('stats_reset')} as since from pg_stat_statements_info`

const remedy =
  'pg_stat_statements is not in this database: shared_preload_libraries, then CREATE EXTENSION pg_stat_statements'

const round = (value: number): number => Math.round(value * 10) / 10

function toItem({ row, now }: Counted, seconds: number, text: SqlRow | undefined): Record<string, unknown> {
  const { calls = 0, total_ms = 0, temp_blocks = 0 } = now
  const before = { calls: Number(row.calls) - calls, total: Number(row.total_ms) - total_ms }
  return {
    statement: hideLiterals(String(text?.query ?? ''), 'postgres'),
    user: text?.user ?? null,
    database: text?.database ?? null,
    now: calls > 0 ? { calls_a_second: perSecond(calls, seconds), mean_ms: round(total_ms / calls) } : 'not called',
    before: before.calls > 0 ? { calls: before.calls, mean_ms: round(before.total / before.calls) } : 'not called',
    ...(temp_blocks > 0 && { temp_blocks_now: temp_blocks }),
  }
}

async function readStatements(ask: AskDatabase, named: (sql: string) => string, major: number) {
  const of = { key: 'key', counters: ['calls', 'total_ms', 'temp_blocks'] }
  const { rows, seconds } = await readTwice(ask, named(countersSql(major)), of)
  const top = rows
    .toSorted(
      (a, b) => (b.now.total_ms ?? 0) - (a.now.total_ms ?? 0) || Number(b.row.total_ms) - Number(a.row.total_ms),
    )
    .slice(0, maxShown)
  if (top.length === 0) return []
  const texts = (await ask({ sql: named(textsSql(top.map(({ row }) => String(row.id)))) })).rows
  return top.map((each) =>
    toItem(
      each,
      seconds,
      texts.find(({ id }) => id === each.row.id),
    ),
  )
}

export const statements: Question = {
  name: 'statements',
  asks: 'what costs most',
  async read(ask) {
    const { rows, server } = await ask({ sql: extensionSql })
    if (rows.length === 0) return { summary: { unavailable: remedy }, whole: '', isEmpty: false, isPartial: true }
    const schema = String(rows[0]?.schema).replaceAll('"', '""')
    const named = (sql: string) => sql.replaceAll(/\bpg_stat_statements(?:_info)?\b/g, `"${schema}".$&`)
    const items = await readStatements(ask, named, server.major)
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
    const [first] = (shown ?? []) as { statement: string; now: { mean_ms: number } | string }[]
    const now = typeof first?.now === 'object' ? `, ${first.now.mean_ms} ms each now` : ''
    return `${formatCount((shown as unknown[]).length, 'statement')} by their time now${first ? `; most: ${first.statement}${now}` : ''}`
  },
}
