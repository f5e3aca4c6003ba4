import type { Claim } from '../../../domain/claim.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { partOfRow, row } from '../../support/events.ts'

/**
 * The rows of an attempt at an ordinary site: metrics, logs, tables of commands, a write that held,
 * one that failed, a cut log.
 */
export const siteIncident = 'inc_00000000000000000000000001'

type More = { effect?: 'read' | 'write' | 'record'; args?: Record<string, unknown>; ok?: boolean; body?: boolean }

function finished(seq: number, tool: string, targets: ResourceRef[], data: unknown, more: More = {}): IncidentEvent {
  const { effect = 'read', args = {}, ok = true, body = false } = more
  const result = ok
    ? { ok, ...(body ? {} : { data }), meta: {} }
    : {
        ok,
        error: {
          code: 'EFFECT_FAILED',
          message: String(data),
          blocked: false,
          failed: true,
          retryable: false,
          details: {},
        },
        meta: {},
      }
  const kept = body ? { digest: 'gone', bytes: 90_000, head: String(data), tail: '' } : null
  const metadata = {
    callId: `c${seq}`,
    tool,
    arguments: args,
    effect,
    targets,
    outcome: ok ? 'done' : 'failed',
    result,
    body: kept,
    discovered: [],
  }
  return { ...partOfRow('tool_finished', metadata), seq }
}

const started = (seq: number, of: number, tool: string, targets: ResourceRef[]) => ({
  ...row('tool_started', {
    callId: `c${of}`,
    tool,
    arguments: {},
    effect: 'write',
    risk: 'low',
    targets,
    actionDigest: 'd',
    approvalId: null,
  }),
  seq,
})
const verified = (
  seq: number,
  of: number,
  tool: string,
  targets: ResourceRef[],
  outcome: 'held' | 'not_held',
  observed: string,
) => ({
  ...row('verification', {
    callId: `c${of}`,
    tool,
    targets,
    writeSeq: of - 1,
    outcome,
    postcondition: 'the service is nominal',
    observed,
  }),
  seq,
})

const host = (id: string): ResourceRef => ({ kind: 'host', id })
const a = host('app-osl-1')
const b = host('app-osl-2')
const db = host('db-osl-3')
const shell = (stdout: string, argv: string[], exit_code = 0) => ({
  stdout,
  stderr: '',
  exit_code,
  truncated: false,
  cmd_executed: argv.join(' '),
})
const exec = (seq: number, on: ResourceRef, argv: string[], stdout: string, exit = 0) =>
  finished(seq, 'exec', [on], shell(stdout, argv, exit), { args: { on: on.id, argv } })

export function siteRows(): IncidentEvent[] {
  return [
    {
      ...partOfRow('alert_received', {
        labels: { host: 'app-osl-1', alertname: 'memory_high' },
        status: 'firing',
        count: 3,
        source: 'alertmanager',
      }),
      seq: 1,
    },
    finished(4, 'get_host', [a], {
      id: 'app-osl-1',
      status: 'critical',
      reason: 'memory 97 % of limit',
      memUsedMib: 7950,
      memTotalMib: 8192,
      memRatio: 0.971,
      cpuPercent: 12.4,
      connections: 97,
      uptimeSeconds: 86400,
    }),
    finished(7, 'list_hosts', [{ kind: 'region', id: 'osl' }], {
      items: [
        { id: 'app-osl-1', status: 'critical', connections: 97, running: true },
        { id: 'app-osl-2', status: 'nominal', connections: 41, running: true },
        { id: 'db-osl-3', status: 'degraded', connections: 12, running: false },
      ],
      nextCursor: null,
    }),
    exec(
      10,
      a,
      ['df', '-B1', '/var'],
      'Filesystem 1B-blocks Used Available Use% Mounted on\n/dev/sda1 10737418240 9126805504 1610612736 85% /var\n',
    ),
    exec(
      13,
      a,
      ['journalctl', '-u', 'web', '-n', '4'],
      '2026-11-20T23:14:02Z web[812]: worker started\n2026-11-21T01:02:03Z web[812]: out of memory: killed worker 4471\n2026-11-21T01:02:09Z web[812]: worker restarted by systemd\n2026-11-21T01:30:00Z web[812]: 14 requests failed\n',
    ),
    finished(16, 'query_metrics', [db], {
      lagSeconds: 42,
      p99LatencyMs: 850,
      errorRatio: 0.034,
      requestsPerSecond: 120,
      limitConnections: 200,
    }),
    finished(
      19,
      'read_config',
      [a],
      { path: '/etc/web/web.yaml', content: 'max_workers: 8\nmax_memory: 2GiB\nlog_level: info\n', truncated: false },
      { args: { on: 'app-osl-1', path: '/etc/web/web.yaml' } },
    ),
    finished(22, 'read_log', [b], 'connection reset by peer\nretrying in 5 s\n', {
      args: { on: 'app-osl-2', path: '/var/log/web.log' },
      body: true,
    }),
    exec(25, a, ['echo', 'CPU usage is 3%'], 'CPU usage is 3%\n'),
    finished(
      28,
      'add_incident_event',
      [{ kind: 'incident', id: siteIncident }],
      { detail: 'app-osl-2 is critical and uses 99 % of its memory' },
      { effect: 'record' },
    ),
    exec(31, b, ['pgrep', '-af', 'nginx'], '', 1),
    finished(34, 'read_limit', [a], { text: 'workers are 9, should be 8' }),
    started(36, 37, 'restart_service', [a]),
    finished(
      37,
      'restart_service',
      [a],
      { detail: 'app-osl-1: web restarted', changed: ['app-osl-1: web restarted'] },
      { effect: 'write', args: { host: 'app-osl-1', service: 'web' } },
    ),
    verified(38, 37, 'restart_service', [a], 'held', 'web on app-osl-1 is nominal'),
    finished(41, 'get_host', [a], {
      id: 'app-osl-1',
      status: 'nominal',
      reason: null,
      memUsedMib: 2100,
      memTotalMib: 8192,
      memRatio: 0.256,
      cpuPercent: 4,
      connections: 35,
      uptimeSeconds: 86460,
    }),
    started(43, 44, 'remove_files', [b]),
    finished(44, 'remove_files', [b], 'permission denied', {
      effect: 'write',
      args: { host: 'app-osl-2', files: ['/tmp/core.1'] },
      ok: false,
    }),
    verified(45, 44, 'remove_files', [b], 'not_held', '/tmp/core.1 is still there'),
    finished(48, 'get_host', [b], {
      id: 'app-osl-2',
      status: 'nominal',
      reason: null,
      memUsedMib: 4096,
      memTotalMib: 8192,
      connections: 44,
      uptimeSeconds: 172800,
    }),
    finished(51, 'list_alerts', [a], { items: [], nextCursor: null }, { args: { resource: 'app-osl-1' } }),
    exec(54, a, ['ps', 'aux'], 'USER PID %CPU COMMAND\nweb 5120 3.1 /usr/bin/web --port 8080\nroot 1 0.0 /sbin/init\n'),
    finished(57, 'get_host', [a], {
      id: 'app-osl-1',
      status: 'nominal',
      reason: null,
      memUsedMib: 2110,
      memTotalMib: 8192,
      memRatio: 0.258,
      cpuPercent: 4,
      connections: 36,
      uptimeSeconds: 86470,
    }),
  ]
}

export const claimOf = (kind: Claim['kind'], text: string, ...quotes: [number, ...string[]][]): Claim => ({
  kind,
  text,
  quotes: quotes.flatMap(([seq, ...texts]) => texts.map((each) => ({ seq, text: each }))),
})

/** Honest claims about these rows, as different people would say them. */
export const honestSite: Claim[] = [
  claimOf('was', 'app-osl-1 was critical: memory 97 % of limit.', [4, '"status":"critical"', 'memory 97 % of limit']),
  claimOf('was', 'Memory of app-osl-1 was at 97 %.', [4, '"memRatio":0.971']),
  claimOf('was', 'app-osl-1 used 97.1 percent of its memory.', [4, '"memRatio":0.971']),
  claimOf('was', 'app-osl-1 used 7950 MiB of 8192 MiB.', [4, '"memUsedMib":7950', '"memTotalMib":8192']),
  claimOf('was', 'app-osl-1 has 8 GiB of memory, of which 7.76 GiB were used.', [
    4,
    '"memUsedMib":7950',
    '"memTotalMib":8192',
  ]),
  claimOf('was', 'app-osl-1 had about 240 MiB of memory left.', [4, '"memUsedMib":7950', '"memTotalMib":8192']),
  claimOf('was', 'app-osl-1 had 242 MiB of memory left.', [4, '"memUsedMib":7950', '"memTotalMib":8192']),
  claimOf('was', 'app-osl-1 had 97 connections and 12.4 % CPU.', [4, '"connections":97', '"cpuPercent":12.4']),
  claimOf('was', 'app-osl-1 had about 100 connections.', [4, '"connections":97']),
  claimOf('was', 'app-osl-1 had been up for 24 hours.', [4, '"uptimeSeconds":86400']),
  claimOf('was', 'The uptime of app-osl-1 was 1 day.', [4, '"uptimeSeconds":86400']),
  claimOf('was', 'app-osl-2 was nominal while db-osl-3 was degraded.', [
    7,
    '"status":"nominal"',
    '"status":"degraded"',
  ]),
  claimOf('was', 'db-osl-3 was not running.', [7, '"running":false']),
  claimOf('was', 'app-osl-1 and app-osl-2 were running.', [7, '"running":true']),
  claimOf('was', 'Together app-osl-1 and app-osl-2 had 138 connections.', [7, '"connections":97', '"connections":41']),
  claimOf('was', 'app-osl-1 had 56 more connections than app-osl-2.', [7, '"connections":97', '"connections":41']),
  claimOf('was', '/var was 85 % full on app-osl-1.', [10, '/dev/sda1 10737418240 9126805504 1610612736 85% /var']),
  claimOf('was', '/var on app-osl-1 had 1.5 GiB available of 10 GiB.', [10, '10737418240 9126805504 1610612736']),
  claimOf('was', 'A worker of web was killed for lack of memory at 01:02:03.', [
    13,
    'out of memory: killed worker 4471',
  ]),
  claimOf('was', 'The journal of app-osl-1 says that web was restarted by systemd.', [
    13,
    'worker restarted by systemd',
  ]),
  claimOf('was', 'The worker was back after 6 s.', [13, '2026-11-21T01:02:03Z', '2026-11-21T01:02:09Z']),
  claimOf('was', '14 requests failed.', [13, '14 requests failed']),
  claimOf('was', 'db-osl-3 was 42 s behind.', [16, '"lagSeconds":42']),
  claimOf('was', 'The p99 latency of db-osl-3 was 0.85 s.', [16, '"p99LatencyMs":850']),
  claimOf('was', 'db-osl-3 had a p99 latency of 850 ms and 3.4 % errors.', [
    16,
    '"p99LatencyMs":850',
    '"errorRatio":0.034',
  ]),
  claimOf('was', 'db-osl-3 served 120 requests per second.', [16, '"requestsPerSecond":120']),
  claimOf('was', 'db-osl-3 may take 200 connections, its limit.', [16, '"limitConnections":200']),
  claimOf('was', 'web.yaml of app-osl-1 sets max_workers to 8.', [19, 'max_workers: 8']),
  claimOf('was', 'The configuration of app-osl-1 allows 2 GiB.', [19, 'max_memory: 2GiB']),
  claimOf('was', 'app-osl-2 logged "connection reset by peer".', [22, 'connection reset by peer']),
  claimOf('was', 'There were 9 workers on app-osl-1 instead of 8.', [34, 'workers are 9, should be 8']),
  claimOf('did', 'I restarted web on app-osl-1.', [37, '"detail":"app-osl-1: web restarted"']),
  claimOf('did', 'web on app-osl-1 was restarted with approval.', [37, 'web restarted']),
  claimOf(
    'did',
    'The service was restarted and its verification held.',
    [37, 'web restarted'],
    [38, '"outcome":"held"'],
  ),
  claimOf('did', 'Restarted app-osl-1; it is nominal.', [37, 'web restarted'], [57, '"status":"nominal"']),
  claimOf('did', 'Removing /tmp/core.1 on app-osl-2 failed: permission denied.', [44, 'permission denied']),
  claimOf('did', 'The attempt to remove files did not help.', [45, '/tmp/core.1 is still there']),
  claimOf('is', 'app-osl-1 is nominal.', [57, '"status":"nominal"']),
  claimOf('is', 'app-osl-1 is healthy again.', [57, '"status":"nominal"']),
  claimOf('is', 'app-osl-1 now uses 2110 MiB of memory, 26 %.', [57, '"memUsedMib":2110', '"memRatio":0.258']),
  claimOf('is', 'app-osl-1 has 36 connections.', [57, '"connections":36']),
  claimOf('is', 'CPU of app-osl-1 is at 4 %.', [57, '"cpuPercent":4']),
  claimOf('is', 'web runs as pid 5120 on app-osl-1.', [54, 'web 5120 3.1 /usr/bin/web --port 8080']),
  claimOf('is', 'app-osl-2 is nominal with 44 connections.', [48, '"status":"nominal"', '"connections":44']),
  claimOf('was', 'Memory of app-osl-1 went from 97.1 % to 25.6 %.', [4, '"memRatio":0.971'], [41, '"memRatio":0.256']),
  claimOf('was', 'The restart freed 5850 MiB on app-osl-1.', [4, '"memUsedMib":7950'], [41, '"memUsedMib":2100']),
  claimOf('absent', 'No alerts are left on app-osl-1.', [51, '']),
  claimOf('absent', 'nginx does not run on app-osl-2.', [31, 'nginx']),
  claimOf('absent', 'No nginx process is among those of app-osl-1.', [54, 'nginx']),
  claimOf('absent', 'web.yaml does not set log_format.', [19, 'log_format']),
  claimOf('was', 'Memory on app-osl-1 peaked near its limit (97 %).', [4, 'memory 97 % of limit']),
  claimOf('was', 'The host app-osl-1 reported critical because of memory.', [
    4,
    '"status":"critical"',
    'memory 97 % of limit',
  ]),
  claimOf('was', 'db-osl-3: degraded, not running, 12 connections.', [
    7,
    '"id":"db-osl-3","status":"degraded","connections":12,"running":false',
  ]),
  claimOf('was', 'Of the three hosts in osl one was nominal.', [7, '"status":"nominal"']),
  claimOf('was', 'osl has 3 hosts.', [7, '"id":"app-osl-1"']),
  claimOf('was', 'The OOM killer hit worker 4471 on app-osl-1 at 01:02:03 UTC.', [
    13,
    '2026-11-21T01:02:03Z web[812]: out of memory: killed worker 4471',
  ]),
  claimOf('was', '6 seconds after the kill systemd restarted the worker.', [
    13,
    '2026-11-21T01:02:03Z',
    '2026-11-21T01:02:09Z web[812]: worker restarted by systemd',
  ]),
  claimOf('was', 'Replication on db-osl-3 lagged 42 seconds.', [16, '"lagSeconds":42']),
  claimOf('was', 'db-osl-3 answered 3.4 % of its requests with errors.', [16, '"errorRatio":0.034']),
  claimOf('was', 'p99 of db-osl-3 was 850 ms.', [16, '"p99LatencyMs":850']),
  claimOf('did', 'web on app-osl-1 has been restarted.', [37, 'web restarted']),
  claimOf(
    'did',
    'After approval I restarted the web service of app-osl-1, and it came back nominal.',
    [37, 'web restarted'],
    [38, 'web on app-osl-1 is nominal'],
  ),
  claimOf('did', 'The removal of /tmp/core.1 from app-osl-2 failed.', [44, 'permission denied']),
  claimOf('did', 'I could not remove /tmp/core.1 on app-osl-2.', [44, 'permission denied']),
  claimOf('is', 'app-osl-1 is up and nominal.', [57, '"status":"nominal"']),
  claimOf('is', 'app-osl-1 and app-osl-2 are nominal.', [57, '"status":"nominal"'], [48, '"status":"nominal"']),
  claimOf('is', 'Both app-osl-1 and app-osl-2 are nominal.', [57, '"status":"nominal"'], [48, '"status":"nominal"']),
  claimOf(
    'was',
    'Memory of app-osl-1 fell from 97 % to 26 % after the restart.',
    [4, '"memRatio":0.971'],
    [57, '"memRatio":0.258'],
  ),
  claimOf('is', 'It uses 2.1 GiB of 8 GiB.', [57, '"memUsedMib":2110', '"memTotalMib":8192']),
  claimOf('is', 'The web process (pid 5120) uses 3.1 % CPU on app-osl-1.', [
    54,
    'web 5120 3.1 /usr/bin/web --port 8080',
  ]),
  claimOf('is', 'The web process of app-osl-1 listens on port 8080.', [54, '/usr/bin/web --port 8080']),
  claimOf('absent', 'app-osl-1 has no firing alerts.', [51, '']),
  claimOf('absent', 'There are no open alerts on app-osl-1.', [51, '']),
  claimOf('absent', 'No nginx runs on app-osl-2.', [31, '']),
  claimOf('was', '/var of app-osl-1 was 85% used, 1.5 GiB free.', [10, '1610612736 85% /var']),
  claimOf('was', '/dev/sda1 holds 10 GiB, 8.5 GiB of it used.', [10, '/dev/sda1 10737418240 9126805504']),
  claimOf('was', 'app-osl-1 had 97 connections, more than twice those of app-osl-2 (41).', [
    7,
    '"connections":97',
    '"connections":41',
  ]),
  claimOf('was', 'The alert memory_high fired 3 times for app-osl-1.', [1, '"count":3']),
  claimOf('was', 'app-osl-2 kept retrying every 5 s.', [22, 'retrying in 5 s']),
  claimOf('was', 'In all 150 connections were open.', [7, '"connections":97', '"connections":41', '"connections":12']),
  claimOf('was', 'The hosts had 50 connections on average.', [
    7,
    '"connections":97',
    '"connections":41',
    '"connections":12',
  ]),
  claimOf('is', 'app-osl-1 has been up for just over a day (86,470 s).', [57, '"uptimeSeconds":86470']),
]
