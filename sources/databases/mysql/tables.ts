import type { ServerFacts } from '../../../clients/databases/server.ts'
import { formatSize } from '../../../domain/format-approval.ts'
import { fitSummary } from '../../kind.ts'
import type { Question } from '../question.ts'
import type { SqlRow } from '../sessions.ts'
import { perSecond, readTwice } from '../twice.ts'
import { remedyFor } from './statements.ts'

/**
 * InnoDB's tables: size, rows, indexes, and full scans now. Reads only lists for which a login
 * needs no right to a table.
 */

const ours = `not regexp '^(mysql|sys|performance_schema|information_schema)/'`

/**
 * Selects the largest tables. MySQL lists its files without opening a table, which may be locked.
 * MariaDB lists statistics of tables and indexes.
 */
const largestSql = ({ product }: ServerFacts): string =>
  product === 'MySQL'
    ? `select replace(name, '/', '.') as \`table\`, file_size as bytes from information_schema.innodb_tablespaces
      where name like '%/%' and name ${ours} order by bytes desc limit 200`
    : `select replace(s.name, '/', '.') as \`table\`, s.num_rows as \`rows\`,
        cast((s.clust_index_size + s.other_index_size) * @@innodb_page_size as unsigned) as bytes,
        s.modified_counter as changed_since_statistics,
        (select group_concat(i.name order by i.name separator ', ') from information_schema.innodb_sys_indexes i where i.table_id = s.table_id) as indexes
      from information_schema.innodb_sys_tablestats s where s.name like '%/%' and s.name ${ours} order by bytes desc limit 200`

/**
 * Selects the rows read of each table. Reads without an index are full scans
 * (https://dev.mysql.com/doc/refman/8.0/en/performance-schema-table-wait-summary-tables.html).
 */
const readsSql = `
  select concat(object_schema, '.', object_name) as \`table\`, sum(case when index_name is null then count_read else 0 end) as rows_by_whole_scans,
    sum(case when index_name is not null then count_read else 0 end) as rows_by_index,
    group_concat(index_name order by index_name separator ', ') as indexes
  from performance_schema.table_io_waits_summary_by_index_usage
  where object_schema not in ('mysql', 'sys', 'performance_schema') group by object_schema, object_name having sum(case when index_name is null then count_read else 0 end) > 0 limit 2000`

const maxEach = 3

type Part = { part: 'readInWhole' | 'largest' } & Record<string, unknown>

export const tables: Question = {
  name: 'tables',
  asks: '',
  async read(ask) {
    const { rows, server } = await ask({ sql: 'select @@performance_schema as isOn' })
    const isOn = Number(rows[0]?.isOn) === 1
    const largest = (await ask({ sql: largestSql(server) })).rows
    const counters = ['rows_by_whole_scans', 'rows_by_index']
    const read = isOn ? await readTwice(ask, readsSql, { key: 'table', counters }) : { rows: [], seconds: 1 }
    const known = (table: unknown) => largest.find((each) => each.table === table)
    const parts: Part[] = [
      ...read.rows
        .filter(({ now }) => (now.rows_by_whole_scans ?? 0) > 0)
        .toSorted((a, b) => (b.now.rows_by_whole_scans ?? 0) - (a.now.rows_by_whole_scans ?? 0))
        .slice(0, maxEach)
        .map(({ row, now }) => ({
          part: 'readInWhole' as const,
          table: row.table,
          rows_a_second: perSecond(now.rows_by_whole_scans ?? 0, read.seconds),
          rows_by_index_a_second: perSecond(now.rows_by_index ?? 0, read.seconds),
          rows: known(row.table)?.rows,
          indexes: known(row.table)?.indexes ?? row.indexes,
        })),
      ...largest.slice(0, maxEach).map((row) => ({ part: 'largest' as const, ...row })),
    ]
    return {
      summary: fitSummary(parts, (kept, omitted) => {
        const of = (name: Part['part']) => kept.flatMap(({ part, ...each }) => (part === name ? [each] : []))
        return {
          product: server.product,
          tables: largest.length,
          readInWhole: isOn ? of('readInWhole') : remedyFor(server),
          largest: of('largest'),
          ...(omitted > 0 && { notShown: omitted }),
        }
      }),
      whole: largest.map((row) => JSON.stringify(row)).join('\n'),
      isEmpty: largest.length === 0,
      isPartial: !isOn,
    }
  },
  say: ({ readInWhole, largest }) => {
    const [read] = (Array.isArray(readInWhole) ? readInWhole : []) as SqlRow[]
    const [first] = (largest ?? []) as SqlRow[]
    const facts = [
      typeof readInWhole === 'string'
        ? readInWhole
        : read
          ? `${read.table} is read in whole, ${read.rows_a_second} rows a second`
          : 'no table is read in whole',
      first && `the largest is ${first.table} (${formatSize(Number(first.bytes))})`,
    ]
    return facts.filter(Boolean).join('; ')
  },
}
