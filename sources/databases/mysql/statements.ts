import { toTimeSql } from '../../../clients/databases/mysql-views.ts'
import type { ServerFacts } from '../../../clients/databases/server.ts'
import { formatCount } from '../../../domain/format.ts'
import { fitSummary } from '../../kind.ts'
import type { Question } from '../question.ts'
import { hideLiterals } from '../statement.ts'
import { type Counted, perSecond, readTwice } from '../twice.ts'

/** The most expensive statements by performance_schema: now, and since its counters began. */

const maxShown = 12

/** Selects the counters of statements. performance_schema has its times in picoseconds. */
const countersSql = `
  select concat(coalesce(schema_name, ''), ' ', digest) as \`key\`, schema_name as db, left(digest_text, 4000) as query, count_star as calls,
    round(sum_timer_wait / 1e9) as total_ms, sum_rows_examined as rows_read, sum_no_index_used as without_index,
    sum_created_tmp_disk_tables as temp_tables, ${toTimeSql('first_seen')} as first_seen
  from performance_schema.events_statements_summary_by_digest where digest is not null and digest_text not regexp 'events_statements_summary_by_digest|innodb_trx|innodb_lock_waits'
  order by sum_timer_wait desc limit 1000`

const round = (value: number): number => Math.round(value * 10) / 10

function toItem({ row, now }: Counted, seconds: number): Record<string, unknown> {
  const { calls = 0, total_ms = 0, rows_read = 0, without_index = 0, temp_tables = 0 } = now
  const before = { calls: Number(row.calls) - calls, total: Number(row.total_ms) - total_ms }
  return {
    statement: hideLiterals(String(row.query ?? ''), 'mysql'),
    database: row.db,
    now:
      calls > 0
        ? {
            calls_a_second: perSecond(calls, seconds),
            mean_ms: round(total_ms / calls),
            rows_read_a_call: Math.round(rows_read / calls),
          }
        : 'not called',
    before:
      before.calls > 0
        ? { calls: before.calls, mean_ms: round(before.total / before.calls), since: row.first_seen }
        : 'not called',
    ...(without_index > 0 && { without_index_now: without_index }),
    ...(temp_tables > 0 && { temp_tables_on_disk_now: temp_tables }),
  }
}

export const remedyFor = ({ product }: Pick<ServerFacts, 'product'>): string =>
  `performance_schema is off: set performance_schema = ON in the configuration of ${product}, and restart it`

export const statements: Question = {
  name: 'statements',
  asks: '',
  async read(ask) {
    const { rows, server } = await ask({ sql: 'select @@performance_schema as isOn' })
    const { product } = server
    if (Number(rows[0]?.isOn) !== 1)
      return { summary: { product, unavailable: remedyFor(server) }, whole: '', isEmpty: false, isPartial: true }
    const counters = ['calls', 'total_ms', 'rows_read', 'without_index', 'temp_tables']
    const { rows: counted, seconds } = await readTwice(ask, countersSql, { key: 'key', counters })
    const items = counted
      .toSorted(
        (a, b) => (b.now.total_ms ?? 0) - (a.now.total_ms ?? 0) || Number(b.row.total_ms) - Number(a.row.total_ms),
      )
      .slice(0, maxShown)
      .map((each) => toItem(each, seconds))
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        product,
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
