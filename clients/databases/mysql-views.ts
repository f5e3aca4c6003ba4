import type { ServerFacts } from './server.ts'

/**
 * Reads tables of sessions in MySQL and MariaDB. Neither stores the start of a session, so a
 * session number is unique only between two server starts.
 */

/** Formats a time in the server's zone as RFC 3339. */
export const toTimeSql = (column: string): string =>
  `date_format(timestampadd(second, timestampdiff(second, now(), utc_timestamp()), ${column}), '%Y-%m-%dT%H:%i:%sZ')`

/**
 * Returns the list of sessions. Prefers the list that needs no lock of the server
 * (https://dev.mysql.com/doc/refman/8.0/en/performance-schema-processlist-table.html).
 */
export const processlistOf = ({ product, number }: ServerFacts): string =>
  product === 'MySQL' && number >= 80_022 ? 'performance_schema.processlist' : 'information_schema.processlist'

export const statusOf = ({ product }: ServerFacts): string =>
  product === 'MySQL' ? 'performance_schema.global_status' : 'information_schema.global_status'

/** Returns SQL for the server's start, which identifies a session together with its number. */
export const beganSql = (server: ServerFacts): string =>
  `(select concat('after ', date_format(timestampadd(second, -variable_value, utc_timestamp()), '%Y-%m-%dT%H:%i:%sZ')) from ${statusOf(server)} where variable_name = 'Uptime')`

/** The most pairs of a waiting and a blocking session. */
const maxPairs = 300

/** Selects waits for rows. `blocker` is 0 for a prepared transaction, whose session has ended. */
export const rowWaitsSql = ({ product }: ServerFacts): string =>
  product === 'MySQL'
    ? `select r.trx_mysql_thread_id as waiting, b.trx_mysql_thread_id as blocker, ${toTimeSql('r.trx_wait_started')} as waits_since,
        concat(l.lock_mode, ' on ', coalesce(l.object_schema, '?'), '.', coalesce(l.object_name, '?')) as wants
      from performance_schema.data_lock_waits w
      join information_schema.innodb_trx r on r.trx_id = w.requesting_engine_transaction_id
      join information_schema.innodb_trx b on b.trx_id = w.blocking_engine_transaction_id
      join performance_schema.data_locks l on l.engine_lock_id = w.requesting_engine_lock_id limit ${maxPairs}`
    : `select r.trx_mysql_thread_id as waiting, b.trx_mysql_thread_id as blocker, ${toTimeSql('r.trx_wait_started')} as waits_since,
        (select concat(l.lock_mode, ' on ', replace(l.lock_table, '\`', '')) from information_schema.innodb_locks l
          where l.lock_id = r.trx_requested_lock_id limit 1) as wants
      from information_schema.innodb_lock_waits w
      join information_schema.innodb_trx r on r.trx_id = w.requesting_trx_id
      join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id limit ${maxPairs}`
