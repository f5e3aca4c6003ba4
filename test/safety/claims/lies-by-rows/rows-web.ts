import { alerted, exec, read, scene } from './build.ts'
import { afterFirstWrite } from './rows-web-after.ts'
import { a, both, metrics, nodeOf, ratio } from './web-nodes.ts'

/**
 * A web shard: errors since a deploy, a converge that held on one node, a restart that failed on
 * the other, and calls that were refused.
 */

export const webScene = scene(
  {
    incident: {
      id: 'inc_00000000000000000000000001',
      type: 'high_error_rate',
      severity: 'critical',
      title: 'A web service answers with errors (node-web-ams-1a)',
      resource: { kind: 'node', id: 'node-web-ams-1a' },
    },
    alerts: [
      {
        name: 'HighErrorRate',
        status: 'firing',
        labels: { instance: 'node-web-ams-1a:8080', severity: 'critical' },
        annotations: { summary: 'A web service answers with errors', description: '31% of its answers are 5xx.' },
        startsAt: '2026-11-21T02:12:00Z',
        count: 1,
      },
    ],
    rule: { rule: 'HighErrorRate', expression: `${ratio} > 0.05`, threshold: '> 0.05', forSeconds: 60, value: 0.3125 },
    paths: { writable: ['/srv/web'], readable: [] },
  },
  alerted(1, { alertname: 'HighErrorRate', instance: 'node-web-ams-1a:8080', severity: 'critical' }),
  read(
    4,
    'get_node',
    nodeOf('node-web-ams-1a', { status: 'critical', reason: 'process is not running', diskUsedBytes: 3_145_728 }),
    {
      on: [a],
      args: { id: 'node-web-ams-1a' },
      seen: { 'node-web-ams-1a': 'critical' },
    },
  ),
  read(
    7,
    'list_nodes_by_shard',
    {
      items: [
        nodeOf('node-web-ams-1a', { status: 'critical', reason: 'process is not running', diskUsedBytes: 3_145_728 }),
        nodeOf('node-web-ams-1b', { status: 'nominal', reason: null, diskUsedBytes: 1_048_576 }),
      ],
    },
    {
      on: [both],
      args: { shard_id: 'web-ams-1' },
      seen: { 'node-web-ams-1a': 'critical', 'node-web-ams-1b': 'nominal' },
    },
  ),
  metrics(10, {
    promql: ratio,
    window: '30m',
    until: '2026-11-21T02:20:00Z',
    stepSeconds: 15,
    seriesFound: 2,
    series: [
      {
        labels: { instance: 'node-web-ams-1a:8080' },
        last: 0.3125,
        min: 0.002,
        max: 0.44,
        mean: 0.118,
        perHour: 0.61,
        changedAt: '2026-11-21T02:11:00Z',
        before: 0.002,
        after: 0.31,
        dayBefore: 0.003,
        weekBefore: 0.21,
      },
      {
        labels: { instance: 'node-web-ams-1b:8080' },
        last: 0.001,
        min: 0,
        max: 0.004,
        mean: 0.001,
        perHour: 0,
        dayBefore: 0.002,
      },
    ],
  }),
  metrics(13, {
    promql: 'process_resident_memory_bytes{job="web"}',
    window: '30m',
    until: '2026-11-21T02:20:02Z',
    stepSeconds: 15,
    seriesFound: 2,
    series: [
      {
        labels: { instance: 'node-web-ams-1a:8080' },
        unit: 'bytes',
        last: 536_870_912,
        min: 94_371_840,
        max: 943_718_400,
        mean: 401_000_000,
      },
      {
        labels: { instance: 'node-web-ams-1b:8080' },
        unit: 'bytes',
        last: 115_343_360,
        min: 104_857_600,
        max: 125_829_120,
        mean: 115_000_000,
      },
    ],
  }),
  read(
    16,
    'search_logs',
    {
      source: 'node-web-ams-1a',
      isEmpty: false,
      summary: {
        asked: { labels: { path: '/srv/web/logs/web.log' } },
        window: '30m',
        until: '2026-11-21T02:20:05Z',
        lines: 90,
        templatesFound: 3,
        templates: [
          {
            template: 'error upstream payments timed out after <n> s',
            count: 87,
            isNew: true,
            first: '2026-11-21T02:10:52Z',
            last: '2026-11-21T02:19:58Z',
            sample: 'error upstream payments timed out after 3 s',
          },
          {
            template: 'warn pool has <n> free connections',
            count: 2,
            first: '2026-11-21T02:09:00Z',
            last: '2026-11-21T02:14:00Z',
            sample: 'warn pool has 3 free connections',
          },
          {
            template: 'info reload of routes.json skipped',
            count: 1,
            first: '2026-11-21T02:10:41Z',
            last: '2026-11-21T02:10:41Z',
          },
        ],
      },
      isPartial: false,
    },
    { on: [a], args: { on: 'node-web-ams-1a', path: '/srv/web/logs/web.log', window: '30m' } },
  ),
  read(
    19,
    'git_log',
    {
      path: '/srv/web/site',
      branch: 'main',
      commits: [
        {
          at: '2026-11-21T02:10:40+00:00',
          author: 'Deploy',
          commit: '5f0c2a9be1d34c1f8f0e6f0a8f7d2f7a1c9b0d11',
          subject: 'Deploy 51: shorter timeouts',
        },
        {
          at: '2026-11-20T09:02:10+00:00',
          author: 'Deploy',
          commit: '77aa10c5d2e64b5c9d1a0b3f4e5c6d7e8f901234',
          subject: 'Deploy 50: new footer',
        },
        {
          at: '2026-11-19T15:40:00+00:00',
          author: 'mira',
          commit: '0b1c2d3e4f5061728394a5b6c7d8e9f001122334',
          subject: 'Revert "Deploy 49: search v2"',
        },
      ],
      uncommitted: [],
      uncommitted_total: 0,
    },
    { on: [a], args: { on: 'node-web-ams-1a', path: '/srv/web/site', limit: 3 } },
  ),
  read(
    22,
    'git_show',
    {
      at: '2026-11-21T02:10:40+00:00',
      path: '/srv/web/site',
      files: ['routes.json'],
      author: 'Deploy',
      commit: '5f0c2a9be1d34c1f8f0e6f0a8f7d2f7a1c9b0d11',
      subject: 'Deploy 51: shorter timeouts',
      diff: '--- a/routes.json\n+++ b/routes.json\n@@ -1,3 +1,3 @@\n-  "upstreamTimeoutSeconds": 30\n+  "upstreamTimeoutSeconds": 3\n',
      files_total: 1,
    },
    { on: [a], args: { on: 'node-web-ams-1a', path: '/srv/web/site', revision: 'HEAD' } },
  ),
  exec(
    25,
    a,
    ['journalctl', '-u', 'web', '-n', '6', '--no-pager'],
    'Nov 21 02:10:42 node-web-ams-1a web[2101]: reload of routes.json skipped\nNov 21 02:17:09 node-web-ams-1a systemd[1]: web.service: Main process exited, code=killed, status=9/KILL\nNov 21 02:17:09 node-web-ams-1a systemd[1]: web.service: Failed with result signal.\nNov 20 03:00:01 node-web-ams-1a systemd[1]: Started web.service.\n',
  ),
  exec(28, a, ['systemctl', 'is-active', 'web'], 'failed\n', { exit_code: 3 }),
  read(
    31,
    'proc_list',
    {
      total: 2,
      processes: [
        {
          pid: 2211,
          name: 'nginx',
          state: 'S',
          user: 'www-data',
          cpu_percent: 1,
          rss_bytes: 12_582_912,
          started: '2026-11-20T03:00:00Z',
          cmdline: 'nginx: master process',
        },
        {
          pid: 2290,
          name: 'report.py',
          state: 'R',
          user: 'report',
          cpu_percent: 97,
          rss_bytes: 209_715_200,
          started: '2026-11-21T02:05:00Z',
          cmdline: 'python3 report.py --all',
        },
      ],
    },
    { on: [a], args: { on: 'node-web-ams-1a', limit: 10 } },
  ),
  read(
    34,
    'fs_stat',
    {
      path: '/srv/web/var/search.lock',
      type: 'file',
      size: 6,
      mode: '0600',
      uid: 0,
      gid: 0,
      links: 1,
      mtime: '2026-11-18T22:14:09.000Z',
    },
    { on: [a], args: { on: 'node-web-ams-1a', path: '/srv/web/var/search.lock' } },
  ),
  read(
    37,
    'http_read',
    {
      source: 'healthz',
      isEmpty: false,
      summary: {
        path: '/healthz',
        status: 503,
        value: { ok: false, checks: { db: 'ok', cache: 'timeout', disk: 'ok' }, maintenance: false, queued: 4 },
      },
      isPartial: false,
    },
    { args: { source: 'healthz', path: '/healthz' } },
  ),
  ...afterFirstWrite,
)
