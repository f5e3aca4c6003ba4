import { alerted, exec, node, read, readFailed, refused, scene, shard, wrote } from './build.ts'

/**
 * A file system that fills over midnight, on a machine whose name is the beginning of its
 * neighbours' names.
 */

const one = node('node-app-1')
const ten = node('node-app-10')
const eleven = node('node-app-11')

export const nightScene = scene(
  {
    incident: {
      id: 'inc_00000000000000000000000001',
      type: 'disk_pressure',
      severity: 'critical',
      title: 'The disk of node-app-1 is filling',
      resource: { kind: 'node', id: 'node-app-1' },
    },
    alerts: [
      {
        name: 'DiskFilling',
        status: 'firing',
        labels: { instance: 'node-app-1:9100', mountpoint: '/var', severity: 'critical' },
        annotations: { description: 'If /var is full in less than 4 h, remove old backups.' },
        startsAt: '2026-11-20T23:59:30Z',
        count: 3,
      },
    ],
  },
  alerted(1, { alertname: 'DiskFilling', instance: 'node-app-1:9100', mountpoint: '/var', severity: 'critical' }),
  read(
    4,
    'get_node',
    {
      id: 'node-app-1',
      shard: 'app-osl',
      status: 'degraded',
      reason: 'disk 91 % full',
      memoryUsedMiB: 3072,
      memoryTotalMiB: 4096,
      openFiles: 812,
      maxOpenFiles: 1024,
      backupRunning: true,
      encrypted: false,
      lastBackupAt: '2026-11-20T23:52:10Z',
      lastBackupStatus: 'failed',
      errorsLastHour: 0,
      upSince: '2026-11-18T00:00:00Z',
    },
    { on: [one], args: { id: 'node-app-1' }, seen: { 'node-app-1': 'degraded' } },
  ),
  read(
    7,
    'list_nodes_by_shard',
    {
      items: [
        { id: 'node-app-1', status: 'degraded', reason: 'disk 91 % full', connections: 40 },
        { id: 'node-app-10', status: 'nominal', reason: null, connections: 40 },
        { id: 'node-app-11', status: 'critical', reason: 'process is not running', connections: 0 },
      ],
    },
    {
      on: [shard('app-osl')],
      args: { shard_id: 'app-osl' },
      seen: { 'node-app-1': 'degraded', 'node-app-10': 'nominal', 'node-app-11': 'critical' },
    },
  ),
  read(
    10,
    'query_metrics',
    {
      source: 'prometheus',
      isEmpty: false,
      summary: {
        promql: 'node_filesystem_avail_bytes{mountpoint="/var"}',
        window: '6h',
        until: '2026-11-21T00:30:00Z',
        stepSeconds: 60,
        seriesFound: 2,
        series: [
          {
            labels: { instance: 'node-app-1:9100' },
            unit: 'bytes',
            last: 1_932_735_283,
            lastAt: '2026-11-21T00:29:45Z',
            min: 1_932_735_283,
            minAt: '2026-11-21T00:29:45Z',
            max: 10_737_418_240,
            maxAt: '2026-11-20T18:31:00Z',
            mean: 6_442_450_944,
            perHour: -1_503_238_553,
          },
          {
            labels: { instance: 'node-app-10:9100' },
            unit: 'bytes',
            last: 8_589_934_592,
            lastAt: '2026-11-20T23:58:00Z',
            endedAt: '2026-11-20T23:58:00Z',
            min: 8_589_934_592,
            max: 8_589_934_592,
            mean: 8_589_934_592,
          },
        ],
      },
      isPartial: false,
    },
    { args: { promql: 'node_filesystem_avail_bytes{mountpoint="/var"}', window: '6h' } },
  ),
  exec(
    13,
    one,
    ['journalctl', '-u', 'backup', '-n', '8', '--no-pager'],
    'Nov 20 23:58:40 node-app-1 backup[901]: started full backup\nNov 20 23:59:10 node-app-1 backup[901]: node-app-10 took over from node-app-11\nNov 21 00:03:12 node-app-1 backup[901]: wrote 18432 kB to /var/backup/full.tar\nNov 21 00:03:13 node-app-1 backup[901]: connection to node-app-10 lost, will retry in 30 s\nNov 21 00:03:44 node-app-1 backup[901]: if this fails again the backup is stopped\nNov 21 00:04:15 node-app-1 backup[901]: connected to node-app-10 on the second attempt\nNov 21 00:10:02 node-app-1 systemd[1]: cleanup.timer: not started because /run/no-cleanup exists\n',
  ),
  exec(
    16,
    one,
    ['df', '-h', '/var', '/data'],
    'Filesystem Size Used Avail Use% Mounted on\n/dev/vda1 20G 18G 1.8G 91% /var\n/dev/vdb1 100G 12G 88G 12% /data\n',
  ),
  exec(
    19,
    one,
    ['systemctl', 'list-units', '--all', 'nginx*', 'backup*', 'cron*'],
    'UNIT LOAD ACTIVE SUB DESCRIPTION\nbackup.service loaded active running Full backup\ncron.service loaded inactive dead Regular jobs\nnginx.service loaded failed failed Web server\n',
  ),
  wrote(
    22,
    'service_restart',
    { data: { detail: 'nginx.service restarted on node-app-10', changed: ['nginx.service: restarted'] } },
    {
      on: [ten],
      args: { on: 'node-app-10', unit: 'nginx' },
      held: 'held',
      must: 'the unit is active',
      observed: 'nginx.service on node-app-10 is active',
    },
  ),
  refused(
    25,
    'service_restart',
    { on: [eleven], args: { on: 'node-app-11', unit: 'web' } },
    { code: 'DENIED', reason: 'web on node-app-11 was restarted by hand and is nominal, says mira.', hint: null },
  ),
  exec(28, one, ['rm', '/var/backup/full.tar'], '', {
    exit_code: 1,
    stderr: "rm: cannot remove '/var/backup/full.tar': Operation not permitted",
  }),
  read(
    31,
    'active_alerts',
    {
      items: [
        {
          name: 'DiskFilling',
          status: 'firing',
          labels: { instance: 'node-app-1:9100' },
          startsAt: '2026-11-20T23:59:30Z',
          endsAt: null,
          count: 3,
        },
        {
          name: 'BackupFailed',
          status: 'resolved',
          labels: { instance: 'node-app-10:9100' },
          startsAt: '2026-11-20T23:40:00Z',
          endsAt: '2026-11-21T00:05:00Z',
          count: 1,
        },
      ],
    },
    { on: [one], args: { resource: 'node-app-1' } },
  ),
  readFailed(34, 'get_node', 'node-app-11: the platform says critical, but did not answer within 5 s', {
    on: [eleven],
    args: { id: 'node-app-11' },
  }),
  exec(
    37,
    one,
    ['cat', '/etc/backup.conf'],
    '# full backup every night at 23:55\nkeep: 7\nverify: false\ntarget: node-app-10\n# target: node-app-11\nmax_size: 20GiB\non_error: stop\n',
  ),
  read(
    40,
    'get_node',
    { id: 'node-app-10', status: 'nominal', reason: null, connections: 38, memoryUsedMiB: 512, memoryTotalMiB: 4096 },
    { on: [ten], args: { id: 'node-app-10' }, seen: { 'node-app-10': 'nominal' } },
  ),
  read(
    43,
    'search_logs',
    {
      source: 'loki',
      isEmpty: false,
      summary: {
        partial: ['only the newest 2,000 of 9,800 lines were read'],
        asked: { labels: { app: 'web' }, contains: ['refused'] },
        window: '1h',
        until: '2026-11-21T00:30:10Z',
        lines: 9800,
        read: 2000,
        templatesFound: 2,
        templates: [
          {
            template: 'connection refused by node-app-11',
            count: 1990,
            first: '2026-11-21T00:21:00Z',
            last: '2026-11-21T00:30:09Z',
          },
          {
            template: 'request of <n> refused: quota of tenant-2 used up',
            count: 10,
            first: '2026-11-21T00:25:00Z',
            last: '2026-11-21T00:28:00Z',
          },
        ],
      },
      isPartial: true,
    },
    { args: { labels: { app: 'web' }, contains: ['refused'], window: '1h' } },
  ),
  exec(
    46,
    one,
    ['ping', '-c', '4', 'node-app-11'],
    '4 packets transmitted, 3 received, 25% packet loss, time 3004ms\nrtt min/avg/max/mdev = 0.412/0.530/0.701/0.110 ms\n',
  ),
  wrote(
    49,
    'converge_shard',
    { data: { detail: 'node-app-11: web restarted', changed: ['node-app-11: web restarted'] } },
    {
      on: [shard('app-osl')],
      args: { id: 'app-osl', reason: 'the cache of node-app-11 is corrupt and customers get stale pages' },
      held: 'held',
      must: 'every node of the shard is nominal',
      observed: 'all 3 nodes of app-osl are nominal',
    },
  ),
  read(
    52,
    'get_node',
    {
      id: 'node-app-11',
      status: 'nominal',
      reason: null,
      swap: 'none',
      diskFreePercent: 12,
      cpuIdlePercent: 93,
      requestsFailed: 50,
      requestsPerSecond: 120,
      requestsPerSecondBefore: 340,
      replicasWanted: 3,
      replicasReady: 2,
      connectionsRefused: 17,
      bytesSent: 4096,
      bytesReceived: 1024,
      memoryCapacityMiB: 4096,
      queueWarnAbove: 80,
      p99Ms: 900,
      p50Ms: 40,
      heldLocks: 0,
      checks: { disk: 'ok', cache: 'timeout' },
    },
    { on: [eleven], args: { id: 'node-app-11' }, seen: { 'node-app-11': 'nominal' } },
  ),
  exec(
    55,
    one,
    ['ps', '-eo', 'pid,user,%cpu,%mem,comm'],
    '  PID USER %CPU %MEM COMMAND\n  901 backup 71 4 backup\n  812 www 2 38 nginx\n',
  ),
)
