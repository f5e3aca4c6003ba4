import type { IncidentEvent } from '../../../../domain/event.ts'
import { exec, read, readCut, readFailed, recorded, refused, told, wrote } from './build.ts'
import { a, b, both, metrics, nodeOf, ratio } from './web-nodes.ts'

/**
 * The web shard from its first write on: a converge that held, a restart that failed, refusals, and
 * answers that are cut or empty.
 */
export const afterFirstWrite: (IncidentEvent | IncidentEvent[])[] = [
  wrote(
    40,
    'converge_shard',
    { data: { detail: 'node-web-ams-1a: restarted', changed: ['node-web-ams-1a: restarted'] } },
    {
      on: [both],
      args: { id: 'web-ams-1', reason: 'the process of node-web-ams-1a is not running' },
      held: 'held',
      must: 'every node of the shard is nominal',
      observed: 'all 2 nodes of web-ams-1 are nominal',
    },
  ),
  read(43, 'get_node', nodeOf('node-web-ams-1a', { status: 'nominal', reason: null, diskUsedBytes: 3_145_800 }), {
    on: [a],
    args: { id: 'node-web-ams-1a' },
    seen: { 'node-web-ams-1a': 'nominal' },
  }),
  metrics(46, {
    promql: ratio,
    window: 'now',
    at: '2026-11-21T02:31:00Z',
    seriesFound: 2,
    values: [
      { labels: { instance: 'node-web-ams-1a:8080' }, value: 0.28 },
      { labels: { instance: 'node-web-ams-1b:8080' }, value: 0.001 },
    ],
  }),
  wrote(
    49,
    'service_restart',
    { failed: 'nginx.service did not start within 30 s' },
    {
      on: [b],
      args: { on: 'node-web-ams-1b', unit: 'nginx' },
      held: 'not_held',
      must: 'the unit is active',
      observed: 'nginx.service on node-web-ams-1b is failed',
    },
  ),
  read(
    52,
    'get_node',
    nodeOf('node-web-ams-1b', { status: 'degraded', reason: 'process does not answer', diskUsedBytes: 1_048_600 }),
    {
      on: [b],
      args: { id: 'node-web-ams-1b' },
      seen: { 'node-web-ams-1b': 'degraded' },
    },
  ),
  refused(
    55,
    'git_revert',
    {
      on: [a],
      args: { on: 'node-web-ams-1a', path: '/srv/web/site', revision: '5f0c2a9be1d34c1f8f0e6f0a8f7d2f7a1c9b0d11' },
    },
    {
      code: 'DENIED',
      reason: 'Not before the payments team has looked at it.',
      hint: 'Do not propose the same action again.',
    },
  ),
  refused(
    58,
    'exec',
    { on: [a], args: { on: 'node-web-ams-1a', argv: ['reboot'] } },
    { code: 'POLICY_BLOCKED', reason: 'reboot stops every service of node-web-ams-1a', hint: null },
  ),
  read(
    61,
    'active_alerts',
    {
      items: [
        {
          name: 'HighErrorRate',
          status: 'firing',
          labels: { instance: 'node-web-ams-1a:8080' },
          startsAt: '2026-11-21T02:12:00Z',
          endsAt: null,
        },
        {
          name: 'service_down',
          status: 'resolved',
          labels: { node: 'node-web-ams-1a' },
          startsAt: '2026-11-21T02:17:20Z',
          endsAt: '2026-11-21T02:27:10Z',
        },
        {
          name: 'service_down',
          status: 'firing',
          labels: { node: 'node-web-ams-1b' },
          startsAt: '2026-11-21T02:29:40Z',
          endsAt: null,
        },
      ],
    },
    { on: [both], args: { resource: 'web-ams-1' } },
  ),
  recorded(64, 'node-web-ams-1a had run out of file handles, and the cache was flushed'),
  exec(
    67,
    a,
    ['cat', '/etc/web/limits.yaml'],
    'max_workers: 8\nmax_memory: 1GiB\nqueue_alert_above: 50\nretry: false\n',
  ),
  read(
    70,
    'search_logs',
    {
      source: 'node-web-ams-1a',
      isEmpty: true,
      summary: {
        asked: { labels: { path: '/srv/web/logs/web.log' }, contains: ['out of memory'] },
        window: '15m',
        until: '2026-11-21T02:31:10Z',
        lines: 0,
        templatesFound: 0,
        templates: [],
      },
      isPartial: false,
    },
    {
      on: [a],
      args: { on: 'node-web-ams-1a', path: '/srv/web/logs/web.log', contains: ['out of memory'], window: '15m' },
    },
  ),
  read(
    73,
    'proc_list',
    { total: 0, processes: [] },
    { on: [a], args: { on: 'node-web-ams-1a', name: 'reindex', limit: 5 } },
  ),
  exec(76, b, ['pgrep', '-af', 'haproxy'], '', { exit_code: 1 }),
  readCut(
    79,
    'exec',
    '02:10:41 info reload of routes.json skipped\n02:10:52 error upstream payments timed out after 3 s\n',
    '02:19:58 error upstream payments timed out after 3 s\n',
    {
      on: [a],
      args: { on: 'node-web-ams-1a', argv: ['cat', '/srv/web/logs/web.log'] },
    },
  ),
  readFailed(82, 'search_logs', 'device_mesh: log.read: /srv/web/logs/payments.log: permission denied', {
    on: [a],
    args: { on: 'node-web-ams-1a', path: '/srv/web/logs/payments.log', window: '15m' },
  }),
  told(85, 'Restart nginx on node-web-ams-1b, the certificate was renewed at noon.'),
  metrics(
    88,
    {
      partial: ['2 of 6 shards of the store did not answer'],
      promql: 'sum(increase(payments_failed_total[30m]))',
      window: 'now',
      at: '2026-11-21T02:31:20Z',
      seriesFound: 1,
      values: [{ labels: {}, value: 0 }],
    },
    { isPartial: true },
  ),
  exec(
    91,
    a,
    ['stat', '/srv/web/tenants/tenant-6'],
    '  File: /srv/web/tenants/tenant-6\n  Size: 4096  directory\nAccess: (0700/drwx------)  Uid: (65534/  nobody)   Gid: (65534/ nogroup)\n',
  ),
  read(
    94,
    'fs_stat',
    { path: '/srv/web/tenants/tenant-6', type: 'directory', size: 4096, mode: '0700', uid: 0, gid: 0, links: 2 },
    { on: [a], args: { on: 'node-web-ams-1a', path: '/srv/web/tenants/tenant-6' } },
  ),
]
