import { statusOf, toTimeSql } from '../../../clients/databases/mysql-views.ts'
import type { ServerFacts } from '../../../clients/databases/server.ts'
import { formatCount } from '../../../domain/format.ts'
import { formatSize } from '../../../domain/format-approval.ts'
import { fitSummary } from '../../kind.ts'
import type { Question } from '../question.ts'
import type { SqlRow } from '../sessions.ts'
import { perSecond, readTwice } from '../twice.ts'

/**
 * Databases of MySQL and MariaDB by size, and the server's counters: deadlocks, temporary tables,
 * full scans, history length.
 */

/** Sizes of databases. MySQL lists its files without opening a table, which may be locked. */
const sizesSql = ({ product }: ServerFacts): string =>
  product === 'MySQL'
    ? `select substring_index(name, '/', 1) as \`database\`, count(*) as tables, cast(sum(file_size) as unsigned) as bytes
      from information_schema.innodb_tablespaces where name like '%/%' group by substring_index(name, '/', 1) order by bytes desc limit 30`
    : `select substring_index(name, '/', 1) as \`database\`, count(*) as tables,
        cast(sum(clust_index_size + other_index_size) * @@innodb_page_size as unsigned) as bytes
      from information_schema.innodb_sys_tablestats where name like '%/%' group by substring_index(name, '/', 1) order by bytes desc limit 30`

const counted: Record<string, string> = {
  Created_tmp_disk_tables: 'temp_tables_on_disk',
  Select_scan: 'whole_scans',
  Slow_queries: 'slow_statements',
  Aborted_connects: 'refused_connects',
  Connection_errors_max_connections: 'refused_at_the_limit',
  Innodb_row_lock_waits: 'lock_waits',
}

/** Selects counters: deadlocks and history length are variables of MariaDB, metrics of MySQL. */
const countersSql = (server: ServerFacts): string => `
  select variable_name as name, variable_value as value from ${statusOf(server)}
  where variable_name in (${[...Object.keys(counted), 'Innodb_deadlocks', 'Innodb_history_list_length'].map((each) => `'${each}'`).join(', ')})
  union all select name, count from information_schema.innodb_metrics where name in ('lock_deadlocks', 'trx_rseg_history_len')`

const serverSql = (server: ServerFacts): string => `
  select @@global.read_only as read_only, @@innodb_buffer_pool_size as buffer_pool_bytes, @@max_connections as max_connections,
    (select ${toTimeSql('timestampadd(second, -variable_value, now())')} from ${statusOf(server)} where variable_name = 'Uptime') as started`

const nameOf = (name: string): string | undefined =>
  Object.entries(counted).find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1]

const latestOf = (rows: readonly SqlRow[], ...names: string[]): number | null => {
  const found = rows.filter(({ name }) => names.includes(String(name).toLowerCase()))
  return found.length === 0 ? null : Math.max(...found.map(({ value }) => Number(value)))
}

export const findDeadlocks = (rows: readonly SqlRow[]) => latestOf(rows, 'innodb_deadlocks', 'lock_deadlocks')
export const findHistory = (rows: readonly SqlRow[]) =>
  latestOf(rows, 'innodb_history_list_length', 'trx_rseg_history_len')
export { countersSql }

export const databases: Question = {
  name: 'databases',
  asks: '',
  async read(ask) {
    const { server } = await ask({ sql: 'select 1' })
    const { rows, seconds } = await readTwice(ask, countersSql(server), { key: 'name', counters: ['value'] })
    const sizes = (await ask({ sql: sizesSql(server) })).rows
    const [facts = {}] = (await ask({ sql: serverSql(server) })).rows
    const now = rows.flatMap(({ row, now: { value = 0 } }) => {
      const name = nameOf(String(row.name))
      return name && value > 0 ? [[`${name}_a_second`, perSecond(value, seconds)] as const] : []
    })
    const all = rows.map(({ row }) => row)
    return {
      summary: fitSummary(sizes, (kept, omitted) => ({
        product: server.product,
        version: server.version,
        ...facts,
        deadlocks: findDeadlocks(all),
        history_list_length: findHistory(all),
        ...Object.fromEntries(now),
        databases: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: [...sizes, ...all].map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: false,
    }
  },
  say: ({ product, version, databases: shown, deadlocks }) => {
    const [first] = (shown ?? []) as SqlRow[]
    const most = first ? `; the largest is ${first.database} (${formatSize(Number(first.bytes))})` : ''
    return `${product} ${version} with ${formatCount((shown as unknown[]).length, 'database')}${most}; ${formatCount(Number(deadlocks ?? 0), 'deadlock')} since the start`
  },
}
