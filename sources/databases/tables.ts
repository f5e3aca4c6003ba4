import { toTimeSql } from '../../clients/databases/postgres.ts'
import { fitSummary } from '../kind.ts'
import type { Question } from './question.ts'
import type { SqlRow } from './sessions.ts'
import { type Counted, perSecond, readTwice } from './twice.ts'

/**
 * Tables of the source's database with full scans now, dead rows or old rows, and the holders of
 * snapshots that delay vacuum.
 */

const tablesSql = `
  select s.schemaname || '.' || s.relname as table, s.n_live_tup as live_rows, s.n_dead_tup as dead_rows,
    s.seq_scan as whole_scans, s.seq_tup_read as rows_by_whole_scans, coalesce(s.idx_scan, 0) as index_scans,
    age(c.relfrozenxid) as age, array_to_string(c.reloptions, ', ') as options,
    ${toTimeSql('greatest(s.last_vacuum, s.last_autovacuum)')} as vacuumed,
    ${toTimeSql('greatest(s.last_analyze, s.last_autoanalyze)')} as analyzed,
    array_to_string(array(select i.relname || case when x.indisvalid then '' else ' (invalid)' end
      from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = s.relid order by 1 limit 8), ', ') as indexes
  from pg_stat_user_tables s join pg_class c on c.oid = s.relid limit 2000`

/** Selects the holders of the oldest snapshots, for which the server keeps deleted rows. */
const holdersSql = `
  select * from (
    select 'session ' || pid || ' of ' || coalesce(usename, '?') || ', ' || coalesce(state, backend_type) as holder, age(backend_xmin) as transactions
      from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid()
    union all select 'prepared transaction ' || gid, age(transaction) from pg_prepared_xacts
    union all select 'slot ' || slot_name || case when active then '' else ', inactive' end, age(coalesce(xmin, catalog_xmin))
      from pg_replication_slots where coalesce(xmin, catalog_xmin) is not null
    union all select 'replica ' || coalesce(application_name, '?') || ' by hot_standby_feedback', age(backend_xmin)
      from pg_stat_replication where backend_xmin is not null) held
  order by transactions desc limit 3`

const maxEach = 3

type Part = { part: 'readInWhole' | 'deadRows' | 'oldest' } & Record<string, unknown>

/** Returns the tables with the highest figures, without zeros. */
function topBy(rows: readonly Counted[], figure: (each: Counted) => number, toItem: (each: Counted) => Part): Part[] {
  return rows
    .filter((each) => figure(each) > 0)
    .toSorted((a, b) => figure(b) - figure(a))
    .slice(0, maxEach)
    .map(
      (each) =>
        Object.fromEntries(Object.entries(toItem(each)).filter(([, value]) => value !== null && value !== '')) as Part,
    )
}

function listParts(rows: readonly Counted[], seconds: number): Part[] {
  const read = (each: Counted) => each.now.rows_by_whole_scans ?? 0
  return [
    ...topBy(rows, read, (each) => ({
      part: 'readInWhole',
      table: each.row.table,
      rows_a_second: perSecond(read(each), seconds),
      whole_scans_a_second: perSecond(each.now.whole_scans ?? 0, seconds),
      index_scans_a_second: perSecond(each.now.index_scans ?? 0, seconds),
      rows: each.row.live_rows,
      indexes: each.row.indexes,
      analyzed: each.row.analyzed,
    })),
    ...topBy(
      rows,
      ({ row }) => Number(row.dead_rows),
      ({ row }) => ({
        part: 'deadRows',
        table: row.table,
        dead_rows: row.dead_rows,
        rows: row.live_rows,
        vacuumed: row.vacuumed,
      }),
    ),
    ...topBy(
      rows,
      ({ row }) => Number(row.age),
      ({ row }) => ({ part: 'oldest', table: row.table, age: row.age, options: row.options }),
    ),
  ]
}

export const tables: Question = {
  name: 'tables',
  asks: 'dead rows, vacuum, ANALYZE, scans, indexes',
  async read(ask) {
    const counters = ['rows_by_whole_scans', 'whole_scans', 'index_scans']
    const { rows, seconds } = await readTwice(ask, tablesSql, { key: 'table', counters })
    const holders = (await ask({ sql: holdersSql })).rows
    const parts = listParts(rows, seconds)
    return {
      summary: fitSummary(parts, (kept, omitted) => {
        const of = (name: Part['part']) => kept.flatMap(({ part, ...each }) => (part === name ? [each] : []))
        return {
          tables: rows.length,
          readInWhole: of('readInWhole'),
          holdsVacuumBack: holders.map(({ holder, transactions }) => `${holder}: ${transactions} transactions`),
          deadRows: of('deadRows'),
          oldest: of('oldest'),
          ...(omitted > 0 && { notShown: omitted }),
        }
      }),
      whole: rows.map(({ row }) => JSON.stringify(row)).join('\n'),
      isEmpty: rows.length === 0,
    }
  },
  say: ({ readInWhole, deadRows, holdsVacuumBack }) => {
    const [read] = (readInWhole ?? []) as SqlRow[]
    const [dead] = (deadRows ?? []) as SqlRow[]
    const [held] = (holdsVacuumBack ?? []) as string[]
    const facts = [
      read ? `${read.table} is read in whole, ${read.rows_a_second} rows a second` : 'no table is read in whole',
      dead && `${dead.table} has ${dead.dead_rows} dead rows`,
      held && `vacuum is held back by ${held}`,
    ]
    return facts.filter(Boolean).join('; ')
  },
}
