import { alerted, exec, node, read, readCut, readFailed, refused, scene, shard } from './build.ts'

/**
 * A database shard whose primary has no room to write and whose replica is far behind. Nothing is
 * written in this attempt.
 */

const a = node('node-db-osl-1a')
const b = node('node-db-osl-1b')
const primary = {
  id: 'node-db-osl-1a',
  shard: 'db-osl-1',
  region: 'osl',
  role: 'primary',
  hostname: 'node-db-osl-1a.osl.example.net',
  ip: '10.40.1.11',
  status: 'critical',
  reason: 'disk full',
  replicas: 0,
  replicationLagSeconds: 0,
  diskUsedBytes: 268_435_456,
  diskQuotaBytes: 268_435_456,
  diskByDirectory: { wal: 201_326_592, data: 67_108_864 },
}
const replica = {
  id: 'node-db-osl-1b',
  shard: 'db-osl-1',
  region: 'osl',
  role: 'replica',
  hostname: 'node-db-osl-1b.osl.example.net',
  ip: '10.40.1.12',
  status: 'degraded',
  reason: 'replica is 4210 s behind',
  replicas: 0,
  replicationLagSeconds: 4210,
  diskUsedBytes: 71_303_168,
  diskQuotaBytes: 268_435_456,
}

export const shardScene = scene(
  {
    incident: {
      id: 'inc_00000000000000000000000001',
      type: 'shard_degraded',
      severity: 'critical',
      title: 'Shard db-osl-1 is degraded',
      resource: { kind: 'shard', id: 'db-osl-1' },
    },
    alerts: [
      {
        name: 'shard_degraded',
        status: 'firing',
        labels: { shard: 'db-osl-1', region: 'osl', severity: 'critical', alertname: 'shard_degraded' },
        annotations: { summary: 'Shard db-osl-1 is degraded', description: 'A replica lags by more than 60 s.' },
        startsAt: '2026-11-21T00:51:00Z',
        count: 2,
      },
    ],
    neighbours: [a, b],
  },
  alerted(1, { alertname: 'shard_degraded', shard: 'db-osl-1', region: 'osl', severity: 'critical' }),
  read(
    4,
    'get_shard',
    {
      id: 'db-osl-1',
      region: 'osl',
      role: 'database',
      status: 'degraded',
      config: { maxConnections: 200, walKeepMb: 512 },
    },
    { on: [shard('db-osl-1')], args: { id: 'db-osl-1' }, seen: { 'db-osl-1': 'degraded' } },
  ),
  read(
    7,
    'list_nodes_by_shard',
    { items: [primary, replica] },
    {
      on: [shard('db-osl-1')],
      args: { shard_id: 'db-osl-1' },
      seen: { 'node-db-osl-1a': 'critical', 'node-db-osl-1b': 'degraded' },
    },
  ),
  read(10, 'get_node', replica, { on: [b], args: { id: 'node-db-osl-1b' }, seen: { 'node-db-osl-1b': 'degraded' } }),
  read(
    13,
    'search_logs',
    {
      source: 'node-db-osl-1a',
      isEmpty: false,
      summary: {
        asked: { labels: { path: '/var/log/postgresql/main.log' } },
        window: '2h',
        until: '2026-11-21T02:00:00Z',
        lines: 416,
        templatesFound: 3,
        templates: [
          {
            template: 'ERROR could not write to file "pg_wal/xlogtemp.<n>": No space left on device',
            count: 412,
            isNew: true,
            first: '2026-11-21T00:49:50Z',
            last: '2026-11-21T01:59:58Z',
          },
          {
            template: 'WARNING outage of replication to node-db-osl-1b: connection closed',
            count: 3,
            first: '2026-11-21T00:50:10Z',
            last: '2026-11-21T00:50:41Z',
          },
          {
            template: 'LOG checkpoint complete',
            count: 1,
            first: '2026-11-21T00:31:02Z',
            last: '2026-11-21T00:31:02Z',
          },
        ],
      },
      isPartial: false,
    },
    { on: [a], args: { on: 'node-db-osl-1a', path: '/var/log/postgresql/main.log', window: '2h' } },
  ),
  read(
    16,
    'query_metrics',
    {
      source: 'prometheus',
      isEmpty: false,
      summary: {
        promql: 'max by (instance) (pg_replication_lag_seconds{shard="db-osl-1"}) > 60',
        window: '2h',
        until: '2026-11-21T02:00:00Z',
        stepSeconds: 30,
        seriesFound: 1,
        series: [
          {
            labels: { instance: 'node-db-osl-1b:9187' },
            last: 4210,
            min: 61,
            max: 4210,
            mean: 2098,
            perHour: 3596,
            dayBefore: 0.4,
            weekBefore: 12,
          },
        ],
      },
      isPartial: false,
    },
    { args: { promql: 'max by (instance) (pg_replication_lag_seconds{shard="db-osl-1"}) > 60', window: '2h' } },
  ),
  read(
    19,
    'query_metrics',
    {
      source: 'prometheus',
      isEmpty: true,
      summary: {
        promql: 'sum by (tenant) (rate(checkout_failures_total{shard="db-osl-1"}[5m]))',
        window: '2h',
        until: '2026-11-21T02:00:05Z',
        stepSeconds: 30,
        seriesFound: 0,
        series: [],
      },
      isPartial: false,
    },
    { args: { promql: 'sum by (tenant) (rate(checkout_failures_total{shard="db-osl-1"}[5m]))', window: '2h' } },
  ),
  exec(
    22,
    a,
    ['psql', '-c', 'select slot_name, active, restart_lsn, wal_status from pg_replication_slots'],
    ' slot_name      | active | restart_lsn | wal_status\n----------------+--------+-------------+------------\n node_db_osl_1b | f      | 3/4A000028  | extended\n(1 row)\n',
  ),
  exec(
    25,
    a,
    ['psql', '-c', 'select pid, usename, state, wait_event, now() - xact_start as age, query from pg_stat_activity'],
    ' pid  | usename | state               | wait_event | age      | query\n------+---------+---------------------+------------+----------+-------\n 4411 | shop    | idle in transaction | ClientRead | 01:12:09 | UPDATE orders SET paid = true WHERE id = $1\n 4502 | shop    | active              | transactionid | 00:41:30 | UPDATE orders SET paid = false WHERE id = $1\n 4518 | report  | idle                |            |          | SELECT count(*) FROM orders\n(3 rows)\n',
  ),
  read(
    28,
    'active_alerts',
    {
      items: [
        {
          name: 'shard_degraded',
          status: 'firing',
          labels: { shard: 'db-osl-1', severity: 'critical' },
          startsAt: '2026-11-21T00:51:00Z',
          endsAt: null,
          count: 2,
        },
        {
          name: 'disk_pressure',
          status: 'firing',
          labels: { node: 'node-db-osl-1a', severity: 'critical' },
          startsAt: '2026-11-21T00:49:55Z',
          endsAt: null,
          count: 1,
        },
        {
          name: 'backup_running',
          status: 'resolved',
          labels: { node: 'node-db-osl-1b', severity: 'info' },
          startsAt: '2026-11-20T23:00:00Z',
          endsAt: '2026-11-20T23:20:00Z',
          count: 1,
        },
      ],
    },
    { on: [shard('db-osl-1')], args: { resource: 'db-osl-1' } },
  ),
  read(
    31,
    'http_read',
    {
      source: 'status-page',
      isEmpty: false,
      summary: {
        path: '/api/v2/components/database',
        status: 200,
        value: {
          component: 'database',
          state: 'major_outage',
          message: 'Writes to db-osl-1 fail since 00:50',
          customersAffected: 37,
          maintenance: false,
        },
      },
      isPartial: false,
    },
    { args: { source: 'status-page', path: '/api/v2/components/database' } },
  ),
  read(
    34,
    'get_tenant',
    { id: 'tenant-3', name: 'Nordlys', shard: 'db-osl-1', status: 'degraded' },
    { args: { id: 'tenant-3' } },
  ),
  refused(
    37,
    'converge_shard',
    { on: [shard('db-osl-1')], args: { id: 'db-osl-1', reason: 'to take the replica up again' } },
    {
      code: 'TARGET_BUSY',
      reason: 'db-osl-1 is being written to by inc_00000000000000000000000002',
      hint: 'Wait for its end, or escalate.',
    },
  ),
  exec(
    40,
    a,
    ['df', '-B1', '/var/lib/postgresql'],
    'Filesystem 1B-blocks Used Available Use% Mounted on\n/dev/vdb1 268435456 268435456 0 100% /var/lib/postgresql\n',
  ),
  readFailed(43, 'query_metrics', 'prometheus: 503 Service Unavailable', {
    args: { promql: 'pg_up{instance="node-db-osl-1a:9187"}', window: 'now' },
  }),
  read(
    46,
    'search_logs',
    {
      source: 'loki',
      isEmpty: false,
      summary: {
        partial: ['only the newest 5,000 of 182,340 lines were read'],
        asked: { labels: { app: 'checkout' }, contains: ['timeout'] },
        window: '2h',
        until: '2026-11-21T02:00:20Z',
        lines: 182_340,
        read: 5000,
        templatesFound: 1,
        templates: [
          {
            template: 'timeout after <n> ms waiting for db-osl-1',
            count: 5000,
            first: '2026-11-21T01:58:31Z',
            last: '2026-11-21T02:00:19Z',
            sample: 'timeout after 3000 ms waiting for db-osl-1',
          },
        ],
      },
      isPartial: true,
    },
    { args: { labels: { app: 'checkout' }, contains: ['timeout'], window: '2h' } },
  ),
  readCut(
    49,
    'exec',
    '2026-11-21 00:31:02 UTC LOG checkpoint complete\n2026-11-21 00:49:50 UTC ERROR could not write to file\n',
    '2026-11-21 01:59:58 UTC ERROR could not write to file\n',
    { on: [a], args: { on: 'node-db-osl-1a', argv: ['cat', '/var/log/postgresql/main.log'] } },
  ),
  exec(
    52,
    b,
    ['psql', '-c', 'select pg_is_in_recovery(), pg_is_wal_replay_paused()'],
    ' pg_is_in_recovery | pg_is_wal_replay_paused\n-------------------+-------------------------\n t                 | f\n(1 row)\n',
  ),
)
