import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { maxSaidCharacters, sayResult } from '../../domain/say.ts'
import type { Envelope } from '../../domain/tool.ts'
import { tools } from '../../tools/registry.ts'

type Told = { tool: string; input: Record<string, unknown>; envelope: Envelope }

/**
 * Results of the lab, as eight played investigations had them: what `test/data/played` holds of
 * each call.
 */
function playedResults(): Told[] {
  const folder = join(import.meta.dirname, '../data/played')
  type Message = { role: string; content: string }
  type Request = { new: Message[]; answer: { tool_calls?: { name: string; arguments: Record<string, unknown> }[] } }
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => {
      const requests = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Request[]
      return requests.flatMap(({ new: messages }, at) => {
        const calls = requests[at - 1]?.answer.tool_calls ?? []
        const results = messages.filter(({ role }) => role === 'tool')
        return results.flatMap(({ content }, index): Told[] => {
          const call = calls[index]
          // Long results were cut for the model, and are no JSON any more.
          if (!call || !tools.has(call.name) || /"truncated":true,"bytes"/.test(content)) return []
          return [{ tool: call.name, input: call.arguments, envelope: JSON.parse(content) }]
        })
      })
    })
}

const on = { id: 'web-7', kind: 'node' }
const reading = (summary: object) => ({ source: 'prom', isEmpty: false, summary, digest: null, about: [] })
const item = { kind: 'node', id: 'web-7', name: 'web-7', aliases: [] }
const written = (detail: string) => ({ detail, key: 'k' })

/** One answer of each tool, and the sentence that a person reads. */
const samples: Record<string, [input: object, data: object, said: string]> = {
  get_incident: [{ id: 'inc_1' }, { id: 'inc_1', status: 'open' }, 'inc_1 is open'],
  list_incident_events: [{ incident_id: 'inc_1' }, { items: [1, 2] }, '2 rows of inc_1'],
  add_incident_event: [
    { detail: 'The disk fills', hypothesis: 'supported' },
    {},
    'Recorded (cause supported): The disk fills',
  ],
  get_shard: [{ id: 's-1' }, { id: 's-1', status: 'critical', role: 'web' }, 's-1 is critical (web)'],
  list_nodes_by_shard: [
    { shard_id: 's-1' },
    {
      items: [
        { id: 'a', status: 'nominal' },
        { id: 'b', status: 'critical', reason: 'disk 131 % of quota' },
      ],
    },
    's-1: 1 of 2 nodes is not nominal: b is critical (disk 131 % of quota)',
  ],
  get_node: [
    { id: 'a' },
    { id: 'a', role: 'replica', status: 'degraded', reason: '42 s behind' },
    'a (replica) is degraded: 42 s behind',
  ],
  get_tenant: [
    { id: 't' },
    { id: 't', name: 'Ember', shard: 's-1', status: 'degraded' },
    'Ember (t) is degraded, on shard s-1',
  ],
  converge_shard: [{ id: 's-1' }, written('a: restarted'), 's-1 converged: a: restarted'],
  resolve_incident: [{ id: 'inc_1', outcome: 'self_resolved' }, {}, 'inc_1 is resolved: self resolved'],
  escalate_incident: [{ id: 'inc_1' }, {}, 'inc_1 is escalated'],
  report_capability_gap: [{ description: 'resize a disk' }, {}, 'A missing tool is reported: resize a disk'],
  find_resource: [{ text: 'web' }, { items: [item] }, '"web" is in the name of 1 resource: node web-7'],
  get_resource: [
    { kind: 'node', id: 'web-7' },
    { ...item, state: { health: 'degraded', observed: 'no answer' }, alerts: [{ status: 'firing' }] },
    'Node web-7 is degraded (no answer), 1 alert firing',
  ],
  get_host: [
    { id: 'h' },
    { id: 'h', state: 'dead', status: 'critical', vms: [{ running: false }] },
    'h is down (critical): 0 of 1 VM run',
  ],
  list_hosts: [
    { rack: 'r1' },
    {
      items: [
        { id: 'h', state: 'live' },
        { id: 'i', state: 'dead' },
      ],
    },
    'Rack r1: 1 of 2 hosts live; 1 other: i is down',
  ],
  node_health: [
    { node: 'h' },
    { node: 'h', status: 'critical', reason: 'the host is dead' },
    'h is critical (the host is dead)',
  ],
  live_link: [{ a: 'h', b: 'i' }, { status: 'live', cost: 3 }, 'The link between h and i is live, cost 3'],
  can_reach: [{ from: 'h', to: 'i' }, { status: 'unreachable', cost: null }, 'i is unreachable from h'],
  active_alerts: [
    { resource: 'h' },
    { items: [{ name: 'host_down', status: 'firing' }] },
    'h: 1 alert: host_down firing',
  ],
  current_vm_host: [{ vm: 'vm-1' }, { id: 'vm-1', host: 'h', running: false }, 'vm-1 is stopped on h'],
  recent_changes: [
    { resource: 'node:web-7', window: '6h' },
    { resource: 'node:web-7', found: 1, changes: [{ title: 'Deploy 42', when: '4 min before' }] },
    'node:web-7, 6h before: 1 change: Deploy 42 (4 min before)',
  ],
  schedule_ha_proposal: [
    { intent: 'recover', host_ids: ['h'] },
    { steps: [{ action: 'start' }, { action: 'migrate' }], unplaced: [{}] },
    'Plan to recover h: start 1 VM and migrate 1 VM; 1 VM stays down',
  ],
  execute_migration: [
    { proposal_id: 'prp_1' },
    written('all 3 steps were done'),
    'Plan prp_1 is carried out: all 3 steps were done',
  ],
  vm_start: [{ id: 'vm-1' }, written('started on h'), 'vm-1: start: started on h'],
  vm_stop: [{ id: 'vm-1' }, written('stopped'), 'vm-1: stop: stopped'],
  vm_restart: [{ id: 'vm-1' }, written('restarted'), 'vm-1: restart: restarted'],
  ask_database: [
    { question: 'connections' },
    reading({ used: 97, max: 100, holders: [{ application: 'billing', count: 80, state: 'idle' }] }),
    'prom: 97 of 100 connections in use; most by billing (80, idle)',
  ],
  kubernetes_node_loss: [
    { nodes: ['node-1'] },
    reading({
      moves: 3,
      stayPending: 1,
      pending: [{ workload: 'Deployment shop/web', pods: 1, certain: true, why: 'cordoned on node-2' }],
    }),
    'prom: 3 pods would leave node-1, and 1 would stay pending: Deployment shop/web (cordoned on node-2)',
  ],
  pod_diagnosis: [
    { namespace: 'shop', name: 'web' },
    reading({
      workload: 'Deployment shop/web',
      pods: 3,
      ready: 1,
      pod: 'web-1',
      state: 'CrashLoopBackOff',
      conditions: [{ type: 'Ready', is: 'False', reason: 'ContainersNotReady' }],
      events: [{ reason: 'BackOff', message: 'back-off 5m0s' }],
    }),
    'prom: Deployment shop/web: 1 of 3 ready; web-1 CrashLoopBackOff, Ready is False (ContainersNotReady); BackOff: back-off 5m0s',
  ],
  get_kubernetes: [
    { kind: 'Pod', namespace: 'shop' },
    reading({ found: 12, ill: 2, items: ['shop/web-1: CrashLoopBackOff'] }),
    'prom: 12 Pods, 2 not well',
  ],
  kubernetes_events: [
    { namespace: 'shop' },
    reading({
      window: '1h',
      found: 3,
      events: [{ reason: 'BackOff', about: 'Deployment shop/web', count: 40, message: 'back-off 5m0s' }],
    }),
    'prom: 3 kinds of events in 1h; BackOff Deployment shop/web 40 times: back-off 5m0s',
  ],
  kubernetes_logs: [
    { namespace: 'shop', name: 'web-1', window: '1h' },
    reading({ lines: 40, templatesFound: 2, templates: [{ template: 'ERROR no such mode <*>', count: 39 }] }),
    'prom: shop, web-1: 40 lines of 2 kinds; 39 times: ERROR no such mode <*>',
  ],
  rollout_history: [
    { namespace: 'shop', name: 'web' },
    reading({
      workload: 'Deployment shop/web',
      revisions: [{ revision: 2, at: 'T', changed: ['container app image: web:1 → web:2'] }],
    }),
    'prom: Deployment shop/web: revision 2 at T changed container app image: web:1 → web:2',
  ],
  cancel_query: [{ database: 'pg-1', pid: 7 }, written('done'), 'Query of session 7 on pg-1: done'],
  terminate_session: [{ database: 'pg-1', pid: 7 }, written('ended'), 'Session 7 on pg-1: ended'],
  drop_replication_slot: [{ database: 'pg-1', slot: 's' }, written('dropped'), 'Slot s on pg-1: dropped'],
  start_replica: [{ database: 'pg-2' }, written('replays'), 'Replica pg-2: replays'],
  run_job: [{ job: 'restart-web', id: 'web-7' }, written('changed 1'), 'restart-web on web-7: changed 1'],
  query_metrics: [
    { promql: 'node_load1' },
    reading({
      seriesFound: 2,
      sharedLabels: { instance: 'web-7' },
      series: [{ labels: {}, last: 9, min: 1, max: 9, changedAt: 'T', before: 1, after: 9 }],
    }),
    'prom: node_load1: web-7 is 9, was 1 to 9; it changed at T from 1 to 9 (2 series)',
  ],
  describe_metrics: [
    { labels: { job: 'web' } },
    reading({ metricsFound: 2, metrics: ['up (gauge)', 'x'] }),
    'prom: 2 metrics: up (gauge) and x of web',
  ],
  list_alerts: [
    { labels: { node: 'web-7' } },
    reading({ alertsFound: 1, alerts: [{ name: 'Down', state: 'active' }] }),
    'prom: web-7: 1 alert: Down (active)',
  ],
  list_silences: [
    { labels: {} },
    reading({ silencesFound: 1, silences: [{ by: 'anna', until: 'T', why: 'backup' }] }),
    'prom: 1 silence: by anna until T (backup)',
  ],
  search_logs: [
    { labels: { app: 'web' }, window: '1h' },
    {
      ...reading({
        lines: 40,
        templatesFound: 2,
        templates: [{ template: 'refused by <*>', count: 9, isNew: true }],
      }),
      isPartial: true,
    },
    'prom: web: 40 lines of 2 kinds; new, 9 times: refused by <*> (partial)',
  ],
  http_read: [
    { path: '/health', select: 'state' },
    reading({ status: 200, value: 'ill' }),
    'prom: state of /health is answered with 200: ill',
  ],
  read_result: [{ digest: 'a'.repeat(64) }, { lines: ['one'] }, `1 line of the answer ${'a'.repeat(12)}: one`],
  exec: [{ argv: ['df', '-h'] }, { on, exit_code: 0, stdout: '/ 97 %\n' }, 'web-7: df -h: / 97 %'],
  shell_eval: [
    { command: 'ls | wc' },
    { on, exit_code: 2, stderr: 'no such file' },
    'web-7: ls | wc: it ended with 2: no such file',
  ],
  fs_read: [{ path: '/etc/app.json' }, { on, content: '{\n  "a": 1\n}' }, 'web-7: /etc/app.json: a: 1'],
  fs_write: [{ path: '/x', content: 'abc', reason: 'r' }, { on }, 'web-7: Write 3 characters as /x: done'],
  fs_list: [{ path: '/x' }, { on, entries: [{ name: 'a' }], total: 9 }, 'web-7: /x: 9 entries: a and 8 more'],
  fs_stat: [
    { path: '/x' },
    { on, type: 'file', size: 4, mtime: 'T', uid: 0, owner: 'root' },
    'web-7: /x: file of root, 4 bytes, changed T',
  ],
  disk_usage: [
    {},
    { on, file_systems: [{ mount: '/', used_percent: 97, inodes_used_percent: 3 }] },
    'web-7: / is 97 % full',
  ],
  git_clone: [{ url: 'https://x/y', path: '/y' }, { on }, 'web-7: Clone https://x/y into /y: done'],
  git_commit: [{ path: '/y', message: 'Fix' }, { on }, 'web-7: Commit in /y: Fix: done'],
  git_push: [{ path: '/y' }, { on }, 'web-7: Push the branch of /y to its remote: done'],
  git_log: [
    { path: '/y' },
    { on, commits: [{ subject: 'Deploy 42' }], uncommitted_total: 2 },
    'web-7: /y: 1 commit: Deploy 42; 2 uncommitted files',
  ],
  git_show: [
    { path: '/y', revision: 'HEAD' },
    { on, commit: 'abcdef1234567', author: 'Anna', subject: 'Fix' },
    'web-7: HEAD is abcdef123456 by Anna: Fix',
  ],
  git_revert: [{ path: '/y', revision: 'abcdef1' }, { on }, 'web-7: Revert abcdef1 in /y: done'],
  pkg_install: [{ packages: ['nginx'] }, { on }, 'web-7: Install nginx: done'],
  pkg_search: [{ text: 'nginx' }, { on, packages: [{ name: 'nginx' }], total: 1 }, 'web-7: nginx: 1 package: nginx'],
  proc_list: [
    { port: 80 },
    { on, processes: [{ name: 'httpd', pid: 7, cpu_percent: 99 }], total: 1 },
    'web-7: on port 80: 1 process: httpd (pid 7, 99 % CPU)',
  ],
  proc_kill: [{ pid: 7, start_time: '9', signal: 'TERM' }, { on }, 'web-7: Stop process 7: done'],
  docker_list: [
    {},
    { on, containers: [{ name: 'web', status: 'Up 2 hours' }], total: 1 },
    'web-7: 1 container: web Up 2 hours',
  ],
  docker_exec: [{ container: 'web', argv: ['id'] }, { on, exit_code: 0, output: 'uid=0' }, 'web-7: id in web: uid=0'],
  docker_logs: [{ container: 'web' }, { on, output: 'a\nb\nc\nd' }, 'web-7: log of web: 4 lines, the first: a'],
  container_restart: [{ container: 'web' }, { on }, 'web-7: Restart the container web: done'],
  service_status: [
    { unit: 'nginx' },
    { on, active: 'failed', sub: 'failed', result: 'exit-code', restarts: 5 },
    'web-7: nginx is failed (failed), ended with exit-code, 5 restarts',
  ],
  service_restart: [{ unit: 'nginx' }, { on }, 'web-7: Restart nginx.service: done'],
  service_start: [{ unit: 'nginx' }, { on }, 'web-7: Start nginx.service: done'],
  service_stop: [{ unit: 'nginx' }, { on }, 'web-7: Stop nginx.service: done'],
  device_logs: [{ unit: 'nginx' }, { on, lines: [[1, 'a']] }, 'web-7: log of nginx: 1 line'],
  read_runbook: [{ name: 'disk-full' }, { name: 'disk-full' }, 'Read the runbook disk-full'],
  query_database: [
    { sql: 'select state, count(*)\nfrom pg_stat_activity group by state' },
    { source: 'pg-1', isEmpty: false, summary: { columns: ['state'], rows: [['idle'], ['active']], notShown: 1 } },
    'pg-1: 3 rows of select state, count(*) from pg_stat_activity group by state',
  ],
  more_tools: [{ names: ['exec'] }, { added: ['exec'] }, '1 more tool: exec'],
}

const say = (tool: string, envelope: Envelope, input: object) => {
  const found = tools.get(tool)
  if (!found) throw new Error(`there is no tool ${tool}`)
  return sayResult(found, envelope, input as Record<string, unknown>)
}

describe('a result in one sentence', () => {
  test('exists for each tool', () => {
    expect(Object.keys(samples).sort()).toEqual([...tools.keys()].sort())
  })

  test.each(Object.entries(samples))('%s', (tool, [input, data, said]) => {
    expect(say(tool, { ok: true, data, meta: {} }, input)).toBe(said)
  })

  test.each<[tool: string, input: object, data: object, said: string]>([
    [
      'proc_list',
      { on: 'web-1', port: 443 },
      { on, processes: [], total: 0, sockets_unseen: { total: 12, first: [] } },
      'web-7: on port 443: no process (not all was read)',
    ],
    [
      'search_logs',
      { labels: { app: 'web' }, window: '1h' },
      {
        source: 'loki',
        summary: { partial: ['2 of 6 shards did not answer'], lines: 0, templates: [] },
        isPartial: true,
      },
      'loki: web: nothing seen in 1h (partial)',
    ],
    [
      'query_metrics',
      { promql: 'lag', window: '1h', until: '2026-11-20T10:00:00Z' },
      {
        source: 'prometheus',
        summary: {
          until: '2026-11-20T10:00:00Z',
          seriesFound: 1,
          series: [{ labels: {}, last: 180, min: 7, max: 180 }],
        },
        isPartial: false,
      },
      'prometheus: lag: it was 180 at 2026-11-20T10:00:00Z, was 7 to 180',
    ],
    [
      'list_hosts',
      {},
      { items: [{ id: 'host-1', state: 'live' }], nextCursor: 'host-1' },
      '1 of 1 host live (not all was read)',
    ],
  ])('of %s for a part, or for a past time, says so', (tool, input, data, said) => {
    expect(say(tool, { ok: true, data, meta: {} } as unknown as Envelope, input)).toBe(said)
  })

  test('is for all results of the lab one bounded line without data that names its subject', () => {
    const wrong: string[] = []
    const told = playedResults()
    for (const { tool, input, envelope } of told) {
      const said = say(tool, envelope, input)
      const names = Object.values(input)
        .flat()
        .filter((value): value is string => typeof value === 'string' && value.length > 2)
      const isNamed =
        said !== null && names.some((name) => said.toLowerCase().includes(name.toLowerCase().slice(0, 40)))
      if (said === null || /[\n{}]|\[\s*"/.test(said) || said.length > maxSaidCharacters || !isNamed)
        wrong.push(`${tool}: ${said}`)
    }
    expect(wrong).toEqual([])
    expect(told.length).toBeGreaterThan(100)
  })

  test.each([null, {}, [], 'x', { items: 7 }, { on: null, stdout: { a: 1 } }])(
    'does not stop a call with an odd answer (%j)',
    (data) => {
      for (const tool of tools.keys()) {
        const said = say(tool, { ok: true, data, meta: {} }, {})
        expect(said === null || !said.includes('\n')).toBe(true)
      }
    },
  )

  test.each([
    ['query_metrics', { promql: 'up{job="x"} == 0' }, { seriesFound: 0, series: [] }, 'up{job="x"} == 0'],
    [
      'query_metrics',
      { promql: 'sum by (job) (rate(http_requests_total{job=~"web|api", code!~"2.."}[5m]))' },
      { seriesFound: 0, series: [] },
      'http_requests_total{job=~"web|api", code!~"2.."}[5m]',
    ],
    [
      'search_logs',
      { labels: { app: 'web' } },
      { lines: 4, templatesFound: 1, templates: [{ template: 'ran {app="web"} |= "err"', count: 4 }] },
      '{app="web"} |= "err"',
    ],
  ])('about a query of %s has the query as it was asked: %j', (tool, input, summary, query) => {
    expect(say(tool, { ok: true, data: reading(summary), meta: {} }, input)).toContain(query)
  })

  test('about a command keeps its braces', () => {
    const argv = ['docker', 'inspect', '--format', '{{.State.Status}}', 'web']
    const said = say('exec', { ok: true, data: { on, exit_code: 0, stdout: 'running' }, meta: {} }, { argv })
    expect(said).toBe('web-7: docker inspect --format {{.State.Status}} web: running')
  })

  test.each([
    ['web', 'web is degraded'],
    ['vm-101', 'vm-101 is degraded'],
    ['db.example', 'db.example is degraded'],
  ])('that begins with the name %s leaves the name in its spelling', (id, said) => {
    expect(say('get_node', { ok: true, data: { id, status: 'degraded' }, meta: {} }, { id })).toBe(said)
  })

  test('of a failure names the call, its target, and the reason', () => {
    const error = {
      code: 'X',
      message: 'no answer in {"ms":5}',
      blocked: false,
      failed: true,
      retryable: false,
      details: {},
    }
    expect(say('get_node', { ok: false, error, meta: {} }, { id: 'web-7' })).toBe(
      'get_node of web-7 failed: no answer in',
    )
  })

  test('cuts foreign text, and adds no second line and no data', () => {
    const data = { on, exit_code: 0, stdout: `${'x'.repeat(5_000)}\n{"a":{"b":1}}\n\u2028more` }
    const said = say('exec', { ok: true, data, meta: {} }, { argv: ['cat', 'f'] })
    expect(said?.length).toBeLessThanOrEqual(maxSaidCharacters)
    expect(said).not.toMatch(/[\n{}]/)
  })
})
