import { formatCount } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import { fitSummary } from '../kind.ts'
import type { Question } from './question.ts'
import type { SqlRow } from './sessions.ts'

/** Tables of the database that the source names: size, dead rows, what vacuum and ANALYZE did, how they are read, and indexes that do not hold. */

const time = (column: string): string => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** Sizes are what the last VACUUM or ANALYZE saw: asking for the files themselves waits for locks of the site. */
const tablesSql = `
  select s.schemaname || '.' || s.relname as table, b.bytes, s.n_live_tup as live_rows, s.n_dead_tup as dead_rows,
    s.seq_scan as whole_scans, s.seq_tup_read as rows_by_whole_scans, coalesce(s.idx_scan, 0) as index_scans,
    age(c.relfrozenxid) as age, ${time('greatest(s.last_vacuum, s.last_autovacuum)')} as vacuumed,
    ${time('greatest(s.last_analyze, s.last_autoanalyze)')} as analyzed, s.autovacuum_count + s.vacuum_count as vacuums,
    array_to_string(array(select i.relname from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = s.relid order by 1 limit 8), ', ') as indexes,
    array_to_string(array(select i.relname from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = s.relid and not x.indisvalid), ', ') as invalid_indexes
  from pg_stat_user_tables s join pg_class c on c.oid = s.relid
    cross join lateral (select sum(k.relpages::bigint) * current_setting('block_size')::int as bytes from pg_class k
      where k.oid = c.oid or k.oid = c.reltoastrelid or k.oid in (select indexrelid from pg_index where indrelid = c.oid)) b
  order by greatest(s.n_dead_tup, s.seq_tup_read / greatest(1, s.seq_scan)) desc, b.bytes desc limit 20`

/** Holders of the oldest snapshots, for which rows that were deleted are kept. */
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

const withoutEmpty = (row: SqlRow): SqlRow =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== ''))

export const tables: Question = {
  name: 'tables',
  asks: 'dead rows, vacuum, ANALYZE, scans, indexes',
  async read(ask) {
    const items = (await ask({ sql: tablesSql })).rows.map(withoutEmpty)
    const holders = (await ask({ sql: holdersSql })).rows
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        holdsVacuumBack: holders.map(({ holder, transactions }) => `${holder}: ${transactions} transactions`),
        tables: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: items.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: items.length === 0,
    }
  },
  say: ({ tables: shown, holdsVacuumBack }) => {
    const [first] = (shown ?? []) as SqlRow[]
    if (!first) return 'no table of a user in this database'
    const held = ((holdsVacuumBack ?? []) as string[])[0]
    return `${formatCount((shown as unknown[]).length, 'table')}; ${first.table} has ${first.dead_rows} dead rows in ${formatSize(Number(first.bytes))}${held ? `; vacuum is held back by ${held}` : ''}`
  },
}
