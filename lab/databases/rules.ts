/**
 * Alert rules for the lab's databases, with the names and the form of public rule collections: an
 * alert names the series and the crossed limit. Short windows let an alert fire within half a
 * minute. The limits fit small servers.
 */

const databaseRule = (alert: string, severity: string, expr: string, summary: string, description: string) => ({
  alert,
  expr,
  for: '2s',
  keep_firing_for: '15s',
  labels: { severity },
  annotations: { summary, description },
})

/** Selects the last known value of each series, so that a late scrape does not end an alert. */
const last = (selector: string) => `last_over_time(${selector}[15s])`

const postgresql = [
  databaseRule(
    'PostgresqlDown',
    'critical',
    'pg_up{job="postgres"} == 0',
    'PostgreSQL is down',
    'The exporter cannot reach the server.',
  ),
  databaseRule(
    'PostgresqlSessionsBlocked',
    'critical',
    `${last('pg_blocked_sessions')} > 2`,
    'Sessions wait for a lock',
    '{{ $value }} sessions wait for locks of others.',
  ),
  databaseRule(
    'PostgresqlUnusedReplicationSlot',
    'warning',
    `${last('pg_slot_kept_bytes{active="false"}')} > 16e6`,
    'A replication slot is not used',
    'The slot keeps {{ $value | humanize1024 }}B of WAL.',
  ),
  databaseRule(
    'PostgresqlReplicationLag',
    'critical',
    `${last('pg_replay_lag_seconds')} > 5 and on (instance) ${last('pg_replay_lag_bytes')} > 0`,
    'A PostgreSQL replica lags',
    'Replay is {{ $value | humanizeDuration }} behind.',
  ),
  databaseRule(
    'PostgresqlTempFilesHigh',
    'warning',
    `${last('pg_temporary_bytes')} > 100e6`,
    'Temporary files fill the disk',
    'The temporary files hold {{ $value | humanize1024 }}B.',
  ),
  databaseRule(
    'PostgresqlTooManyConnections',
    'critical',
    `sum by (instance, job) (${last('pg_stat_activity_count{job="postgres",server!=""}')}) / on (instance) group_left () ${last('pg_settings_max_connections{server!=""}')} > 0.8`,
    'A PostgreSQL server is nearly out of connections',
    '{{ $value | humanizePercentage }} of the connections are in use.',
  ),
  databaseRule(
    'PostgresqlTransactionIdWraparound',
    'critical',
    `${last('pg_frozen_age{datname="shop"}')} / on (instance) group_left () ${last('pg_settings_autovacuum_freeze_max_age')} > 1.2 unless on (instance) ${last('pg_replay_is_replica')} == 1`,
    'Transaction ids of a database run out',
    'The age of the oldest transaction id is {{ $value | humanizePercentage }} of autovacuum_freeze_max_age.',
  ),
  databaseRule(
    'PostgresqlTooManyDeadTuples',
    'warning',
    `${last('pg_table_dead_rows')} / (${last('pg_table_dead_rows')} + ${last('pg_table_live_rows')}) > 0.4 and ${last('pg_table_dead_rows')} > 10000`,
    'A table has many dead rows',
    '{{ $value | humanizePercentage }} of the rows are dead.',
  ),
  databaseRule(
    'PostgresqlSlowStatement',
    'warning',
    'rate(pg_statement_seconds[12s]) / (rate(pg_statement_calls[12s]) > 0) > 0.05',
    'A statement became slow',
    'The statement takes {{ $value | humanizeDuration }} on average.',
  ),
  databaseRule(
    'PostgresqlHighSequentialReads',
    'warning',
    'rate(pg_table_sequential_rows[12s]) > 20000',
    'A table is read by sequential scans',
    'Sequential scans read {{ $value | humanize }} rows a second.',
  ),
  databaseRule(
    'PostgresqlDeadLocks',
    'warning',
    'increase(pg_stat_database_deadlocks{datname="shop"}[20s]) > 1',
    'PostgreSQL resolves deadlocks',
    '{{ $value | humanize }} deadlocks in the last 20 s.',
  ),
]

const mysql = [
  databaseRule(
    'MysqlDown',
    'critical',
    'mysql_up{job="mysql"} == 0',
    'MySQL is down',
    'The exporter cannot reach the server.',
  ),
  databaseRule(
    'MysqlSlaveIoThreadNotRunning',
    'critical',
    // Excludes replicas on which both threads have stopped, because another alert reports them.
    `${last('mysql_slave_status_slave_io_running')} == 0 unless ${last('mysql_slave_status_slave_sql_running')} == 0`,
    'A replica reads nothing from its primary',
    'The IO thread of the replica does not run.',
  ),
  databaseRule(
    'MysqlSlaveSqlThreadNotRunning',
    'critical',
    `${last('mysql_slave_status_slave_sql_running')} == 0`,
    'A replica applies nothing',
    'The SQL thread of the replica does not run.',
  ),
  databaseRule(
    'MysqlSlaveReplicationLag',
    'warning',
    `${last('mysql_slave_status_seconds_behind_master')} > 10`,
    'A replica lags',
    'The replica is {{ $value | humanizeDuration }} behind.',
  ),
]

export const databaseRules = {
  groups: [
    { name: 'postgresql', rules: postgresql },
    { name: 'mysql', rules: mysql },
  ],
}

type ExporterMetric = Record<string, { usage: 'GAUGE' | 'COUNTER' | 'LABEL'; description: string }>
const label = { usage: 'LABEL', description: 'its name' } as const
const gauge = (description: string) => ({ usage: 'GAUGE', description }) as const
const counter = (description: string) => ({ usage: 'COUNTER', description }) as const

/** Custom queries of the PostgreSQL exporter, as real installations add them. */
export const exporterQueries: Record<string, { query: string; metrics: ExporterMetric[] }> = {
  pg_blocked: {
    query: 'select count(*) as sessions from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0',
    metrics: [{ sessions: gauge('sessions that wait for a lock of another session') }],
  },
  pg_slot: {
    query: `select slot_name, active::text as active,
      coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, restart_lsn), 0)::float8 as kept_bytes
      from pg_replication_slots`,
    metrics: [{ slot_name: label }, { active: label }, { kept_bytes: gauge('WAL that a slot keeps') }],
  },
  pg_replay: {
    query: `select coalesce(extract(epoch from now() - pg_last_xact_replay_timestamp()), 0)::float8 as lag_seconds,
      coalesce(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), 0)::float8 as lag_bytes,
      pg_is_in_recovery()::int as is_replica`,
    metrics: [
      { lag_seconds: gauge('seconds since the last replayed transaction') },
      { lag_bytes: gauge('WAL that was received and not yet replayed') },
      { is_replica: gauge('1 on a replica, 0 on a primary') },
    ],
  },
  pg_temporary: {
    query: 'select coalesce(sum(size), 0)::float8 as bytes from pg_ls_tmpdir()',
    metrics: [{ bytes: gauge('size of temporary files') }],
  },
  pg_frozen: {
    query: 'select datname, age(datfrozenxid)::float8 as age from pg_database where datallowconn',
    metrics: [{ datname: label }, { age: gauge('age of the oldest transaction id, in transactions') }],
  },
  pg_table: {
    query: `select schemaname, relname, n_dead_tup::float8 as dead_rows, n_live_tup::float8 as live_rows, seq_tup_read::float8 as sequential_rows
      from pg_stat_user_tables`,
    metrics: [
      { schemaname: label },
      { relname: label },
      { dead_rows: gauge('dead rows') },
      { live_rows: gauge('live rows') },
      { sequential_rows: counter('rows that sequential scans read') },
    ],
  },
  pg_statement: {
    query: `select s.queryid::text as queryid, r.rolname as usename, sum(s.total_exec_time) / 1000 as seconds, sum(s.calls)::float8 as calls
      from pg_stat_statements s join pg_roles r on r.oid = s.userid where r.rolname = 'shop_app' and s.query ilike 'select%'
      group by 1, 2 order by 3 desc limit 20`,
    metrics: [
      { queryid: label },
      { usename: label },
      { seconds: counter('total execution time of a statement') },
      { calls: counter('its calls') },
    ],
  },
}
