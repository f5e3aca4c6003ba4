import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../../domain/event.ts'
import { markPart, readPart } from '../../../domain/source.ts'
import { checkClaim } from '../../../safety/claims/check.ts'
import { evidenceOf } from '../../../safety/claims/rows.ts'
import { fold } from '../../../safety/fold.ts'
import type { AskSource, ReadContext } from '../../../sources/kind.ts'
import { sourceKinds } from '../../../sources/kinds.ts'
import { keep } from '../../../sources/kubernetes/objects.ts'
import { newView, putObject } from '../../../sources/kubernetes/view.ts'
import { summarizeDeviceLog } from '../../../sources/logs/summary.ts'
import { tools } from '../../../tools/registry.ts'
import { partOfRow } from '../../support/events.ts'

/**
 * One walk over every tool and every way in which its answer can be short of the whole: cut,
 * sampled, unreadable, stale, partial, without a permission. None of them shows that something is
 * absent.
 */

type Answer = Record<string, unknown>
type Short = { data: Answer | (() => Promise<Answer>); args?: Answer }
/**
 * For a read tool: an answer that is the whole, which shows an absence, and each way in which it is
 * not.
 */
type Shown = { whole: Short; short: Record<string, Short> }

const missing = 'zzz-7'
const device = { on: { kind: 'node', id: 'web-1' }, device: 'web-1', truncated: false, duration_ms: 3 }
const cut = (data: Answer): Short => ({ data: { ...data, truncated: true } })
const page = (items: Answer[]): Answer => ({ items, nextCursor: null })
const listed = (item: Answer, more: Record<string, Short> = {}): Shown => ({
  whole: { data: page([item]) },
  short: {
    'a page of several': { data: { items: [item], nextCursor: 'abc' } },
    'an item that could not be asked': { data: page([{ ...item, stale: true }]) },
    ...more,
  },
})
const single = (data: Answer): Shown => ({
  whole: { data },
  short: { 'it could not be asked': { data: { ...data, stale: true } } },
})
const command: Shown = {
  whole: { data: { ...device, stdout: 'one\n', stderr: '', exit_code: 0 }, args: { argv: ['ls', '/srv'] } },
  short: {
    'more output than is kept': cut({ ...device, stdout: 'one\n', stderr: '', exit_code: 0 }),
    'a place that may not be read, and a good end': {
      data: { ...device, stdout: '', stderr: "find: '/root': Permission denied", exit_code: 0 },
    },
    'a journal of other users': {
      data: {
        ...device,
        stdout: '',
        stderr: 'Hint: You are currently not seeing messages from other users and the system.',
        exit_code: 0,
      },
    },
    'a failure': { data: { ...device, stdout: '', stderr: 'broken', exit_code: 2 } },
    'an end of a file': {
      data: { ...device, stdout: 'one\n', stderr: '', exit_code: 0 },
      args: { argv: ['tail', '/x'] },
    },
  },
}

const askedOf =
  (kind: string, tool: string, args: Answer, ask: AskSource, options: Answer = {}) =>
  async (): Promise<Answer> => {
    const found = sourceKinds.get(kind)?.tools.find(({ name }) => name === tool)
    if (!found) throw new Error(`${kind} has no ${tool}`)
    const context: ReadContext = { nowMs, options, incidentBeganMs: null }
    const { summary, isEmpty, isPartial = false } = await found.read(ask, found.input.parse(args), context)
    return { source: 'main', isEmpty, isPartial, summary, digest: 'd', about: [] }
  }
const nowMs = Date.parse('2026-11-21T12:00:00Z')
const series = (resultType: string, result: unknown[], more: Answer = {}) => ({
  status: 'success',
  data: { resultType, result },
  ...more,
})
const sampleOf = (n: number) => ({ metric: { instance: `web-${n}` }, value: [nowMs / 1_000, '1'] })

/** Answers each path as it says, and nothing where it says nothing. */
const answers =
  (of: (path: string, form: URLSearchParams) => unknown): AskSource =>
  async ({ path, form }) =>
    of(path, new URLSearchParams(form)) ?? series('vector', [])

const metrics = (of: Parameters<typeof answers>[0], window = 'now', promql = 'up{job="a"}'): Short => ({
  data: askedOf('prometheus', 'query_metrics', { promql, window }, answers(of)),
  args: { promql, window },
})

/** What a cluster with these pods answers, and to what is asked besides. */
function inCluster(tool: string, args: Answer, pods: Answer[], asked: unknown = {}): Short {
  const view = newView()
  for (const pod of pods) {
    const kept = keep('Pod', pod)
    if (kept) putObject(view, kept)
  }
  view.states.push({ kind: 'Pod', namespace: null, listedMs: nowMs, heardMs: nowMs, trouble: null, unread: 0 })
  const cluster = { name: 'main', view, namespaces: null, names: [] }
  const ask = async (question: Answer) =>
    'view' in question
      ? cluster
      : question.read === 'Pod'
        ? pods.find(({ metadata }) => (metadata as Answer).name === question.name)
        : asked
  return { data: askedOf('kubernetes', tool, args, ask as never), args }
}
const podOf = (at: number): Answer => ({
  metadata: { name: `web-${at}`, namespace: 'shop', uid: `u${at}` },
  spec: { containers: [{ name: 'app', image: 'web:1' }] },
  status: { phase: 'Running', containerStatuses: [{ name: 'app', ready: true, state: { running: {} } }] },
})
const eventOf = (at: number): Answer => ({
  involvedObject: { kind: 'Pod', namespace: 'shop', name: `web-${at}`, uid: `u${at}` },
  reason: `Reason${at}`,
  message: `it was ${at} ${'x'.repeat(60)}`,
  lastTimestamp: '2026-11-21T11:59:00Z',
  firstTimestamp: '2026-11-21T11:59:00Z',
})
const logText = (lines: number) =>
  Array.from({ length: lines }, (_, at) => `2026-11-21T11:59:00Z line ${at}`).join('\n')

/** What a statement that names it answers. */
const statement = (rows: string[][], more: object = {}, isPartial = false): Short => ({
  data: {
    source: 'pg-1',
    isEmpty: rows.length === 0,
    isPartial,
    summary: { columns: ['name'], rows, ...more },
  },
  args: { source: 'pg-1', sql: `select name from jobs where name = '${missing}'` },
})

const lines = (count: number, text = 'GET /page 200') =>
  Array.from({ length: count }, (_, at) =>
    JSON.stringify({ _time: new Date(nowMs - at * 100).toISOString(), _msg: text }),
  ).join('\n')
const victoria =
  (of: (query: string) => string): AskSource =>
  async ({ form, path }) =>
    path.includes('field_names')
      ? { values: ['app', ...Array.from({ length: 60 }, (_, n) => `label_${n}`)].map((value) => ({ value })) }
      : of(form?.query ?? '')
const logs = (of: (query: string) => string): Short => ({
  data: askedOf('victorialogs', 'search_logs', { labels: { app: 'web' } }, victoria(of)),
  args: { labels: { app: 'web' } },
})
const deviceLog = (given: Parameters<typeof summarizeDeviceLog>[0], more: Answer = {}): Short => {
  const { summary, isEmpty } = summarizeDeviceLog(
    given,
    { labels: { unit: 'a' }, contains: [], sinceSeconds: 3_600 },
    { nowMs, incidentBeganMs: null },
  )
  return { data: { ...device, source: 'web-1', isEmpty, summary, digest: 'd', ...more } }
}
const deviceLogs: Shown = {
  whole: deviceLog({ lines: [], untilMs: nowMs, isMore: false }),
  short: {
    'more lines than are read': deviceLog({ lines: [], untilMs: nowMs, isMore: true }, { truncated: true }),
    'the newest file of several': deviceLog(
      { lines: [], untilMs: nowMs, isMore: false, unread: 2 },
      { isPartial: true },
    ),
    'templates of lines': deviceLog({ lines: [[nowMs - 1_000, 'GET / 200']], untilMs: nowMs, isMore: false }),
  },
}
const http = (json: unknown, status = 200, args: Answer = {}): Short => ({
  data: askedOf('http', 'http_read', { path: '/a', ...args }, async () => ({ status, json }), { paths: ['/a'] }),
  args: { path: '/a', ...args },
})
const httpText = (text: string): Short => ({
  data: askedOf('http', 'http_read', { path: '/a' }, async () => ({ status: 200, text }), { paths: ['/a'] }),
})
const alerts = (count: number, more: Answer = {}): Short => ({
  data: askedOf('alertmanager', 'list_alerts', {}, async () =>
    Array.from({ length: count }, (_, n) => ({
      labels: { alertname: `Alert${n}`, ...more },
      startsAt: '2026-11-21T11:00:00Z',
      status: { state: 'active' },
    })),
  ),
})
const silences = (count: number, comment: string): Short => ({
  data: askedOf('alertmanager', 'list_silences', {}, async () =>
    Array.from({ length: count }, (_, n) => ({
      status: { state: 'active' },
      matchers: [{ name: 'job', value: `j${n}`, isRegex: false }],
      startsAt: '2026-11-21T11:00:00Z',
      endsAt: '2026-11-21T13:00:00Z',
      createdBy: 'anna',
      comment,
    })),
  ),
})

const shown: Record<string, Shown | null> = {
  get_incident: single({ id: 'inc_1', status: 'investigating' }),
  list_incident_events: listed({ seq: 1, kind: 'alert_received' }),
  get_shard: single({ id: 'web', status: 'nominal' }),
  list_nodes_by_shard: listed({ id: 'web-1', status: 'nominal' }),
  get_node: single({ id: 'web-1', status: 'nominal' }),
  get_tenant: single({ id: 't-1', name: 'acme', shard: 'web' }),
  find_resource: listed({ kind: 'node', id: 'web-1', name: 'web-1' }),
  get_resource: single({ kind: 'node', id: 'web-1', name: 'web-1', aliases: [] }),
  get_host: single({ id: 'host-1', state: 'live' }),
  list_hosts: listed({ id: 'host-1', state: 'live' }),
  node_health: single({ node: 'web-1', kind: 'node', status: 'nominal' }),
  live_link: single({ status: 'live', live: true, cost: 1 }),
  can_reach: single({ status: 'reachable', reachable: true, cost: 1 }),
  active_alerts: listed(
    { name: 'Down', status: 'firing' },
    { 'more alerts than are listed': cut(page([{ name: 'Down' }])) },
  ),
  current_vm_host: single({ id: 'vm-1', host: 'host-1', running: true }),
  recent_changes: {
    whole: { data: { resource: 'node:web-1', found: 1, changes: [{ title: 'Deploy 42' }] } },
    short: {
      'more changes than are shown': { data: { resource: 'node:web-1', found: 9, changes: [{ title: 'Deploy 42' }] } },
    },
  },
  schedule_ha_proposal: null,
  query_metrics: {
    whole: metrics(() => series('vector', [])),
    short: {
      'a part of the servers': metrics(() => series('vector', [], { warnings: ['store-2 gave no answer'] })),
      'a metric that fell silent': metrics((_, form) =>
        /wide0/.test(form.get('query') ?? '')
          ? series('vector', [{ metric: { nightshift_part: 'wide0' }, value: [1, '1'] }])
          : null,
      ),
      'nothing at the points of a window': metrics(
        (path, form) =>
          /wide0/.test(form.get('query') ?? '')
            ? series('vector', [{ metric: { nightshift_part: 'wide0' }, value: [1, '1'] }])
            : path.includes('range')
              ? series('matrix', [])
              : null,
        '1h',
        'up{job="a"} == 0',
      ),
      'figures of points': metrics(
        (path) =>
          series(path.includes('range') ? 'matrix' : 'vector', [
            { metric: { instance: 'web-1' }, values: [[nowMs / 1_000, '1']], value: [nowMs / 1_000, '1'] },
          ]),
        '1h',
        'rate(up{job="a"}[5m])',
      ),
      'more series than are shown': metrics(() =>
        series(
          'vector',
          Array.from({ length: 90 }, (_, n) => sampleOf(n)),
        ),
      ),
      'a label that is longer than a summary': metrics(() =>
        series('vector', [{ metric: { instance: 'w'.repeat(3_000) }, value: [1, '1'] }]),
      ),
    },
  },
  describe_metrics: {
    whole: {
      data: askedOf(
        'prometheus',
        'describe_metrics',
        { labels: { instance: 'a' } },
        answers(() => null),
      ),
    },
    short: {
      'more metrics than fit': {
        data: askedOf(
          'prometheus',
          'describe_metrics',
          { labels: { instance: 'a' } },
          answers(() =>
            series(
              'vector',
              Array.from({ length: 900 }, (_, n) => ({ metric: { __name__: `m_${n}` }, value: [1, '1'] })),
            ),
          ),
        ),
      },
      'a target that fell silent': {
        data: askedOf(
          'prometheus',
          'describe_metrics',
          { labels: { instance: 'a' } },
          answers((_, form) =>
            /wide0/.test(form.get('query') ?? '')
              ? series('vector', [{ metric: { nightshift_part: 'wide0' }, value: [1, '1'] }])
              : null,
          ),
        ),
      },
      'a part of the servers': {
        data: askedOf(
          'prometheus',
          'describe_metrics',
          { labels: { instance: 'a' } },
          answers(() => series('vector', [], { isPartial: true })),
        ),
      },
    },
  },
  list_alerts: {
    whole: alerts(2),
    short: {
      'more alerts than fit': alerts(80),
      'a label that is longer than a summary': alerts(1, { pod: 'p'.repeat(3_000) }),
    },
  },
  list_silences: {
    whole: silences(1, 'backup'),
    short: { 'more silences than fit': silences(60, 'backup'), 'a comment that was cut': silences(1, 'w'.repeat(300)) },
  },
  // How a server is now says nothing of what was not asked.
  ask_database: null,
  pod_diagnosis: null,
  rollout_history: null,
  get_kubernetes: {
    whole: inCluster('get_kubernetes', { kind: 'Pod', namespace: 'shop' }, [podOf(1)]),
    short: {
      'more objects than fit': inCluster(
        'get_kubernetes',
        { kind: 'Pod', namespace: 'shop' },
        Array.from({ length: 200 }, (_, at) => podOf(at)),
      ),
    },
  },
  kubernetes_events: {
    whole: inCluster('kubernetes_events', { namespace: 'shop' }, [podOf(1)], { items: [] }),
    short: {
      'more kinds of events than fit': inCluster('kubernetes_events', { namespace: 'shop' }, [podOf(1)], {
        items: Array.from({ length: 80 }, (_, at) => eventOf(at)),
      }),
      'more pages than are read': inCluster('kubernetes_events', { namespace: 'shop' }, [podOf(1)], {
        items: [],
        metadata: { continue: 'more' },
      }),
      'longer than the server keeps them': inCluster(
        'kubernetes_events',
        { namespace: 'shop', window: '6h' },
        [podOf(1)],
        { items: [] },
      ),
    },
  },
  kubernetes_logs: {
    whole: inCluster('kubernetes_logs', { namespace: 'shop', name: 'web-1', contains: missing }, [podOf(1)], {
      text: '',
      isCut: false,
    }),
    short: {
      'templates of lines': inCluster('kubernetes_logs', { namespace: 'shop', name: 'web-1' }, [podOf(1)], {
        text: logText(3),
        isCut: false,
      }),
      'more lines than are read': inCluster(
        'kubernetes_logs',
        { namespace: 'shop', name: 'web-1', contains: missing },
        [podOf(1)],
        { text: logText(2_000), isCut: false },
      ),
      'more bytes than are read': inCluster(
        'kubernetes_logs',
        { namespace: 'shop', name: 'web-1', contains: missing },
        [podOf(1)],
        { text: logText(5), isCut: true },
      ),
    },
  },
  kubernetes_node_loss: null,
  query_database: {
    whole: statement([]),
    short: {
      'more rows than are shown': statement([['nightly']], { notShown: 90 }),
      'more rows than are read': statement([['nightly']], {}, true),
    },
  },
  search_logs: {
    whole: {
      ...logs((query) => (query.includes('count()') ? '{"total":"0"}' : '')),
      args: { labels: { app: 'web' }, contains: [missing] },
    },
    short: {
      'templates of lines': logs((query) => (query.includes('count()') ? '{"total":"3"}' : lines(3))),
      'more lines than are read': logs((query) =>
        query.includes('count()') ? '{"total":"9000"}' : lines(query.includes('fatal') ? 1_000 : 2_000),
      ),
      'no line by a label that no line has': {
        ...logs((query) => (query.includes('count()') ? '{"total":"0"}' : '')),
        data: askedOf(
          'victorialogs',
          'search_logs',
          { labels: { appp: 'web' } },
          victoria((query) => (query.includes('count()') ? '{"total":"0"}' : '')),
        ),
      },
      'lines that are counted and not given': logs((query) => (query.includes('count()') ? '{"total":"5"}' : '')),
      ...Object.fromEntries(Object.entries(deviceLogs.short).map(([way, each]) => [`of a device, ${way}`, each])),
    },
  },
  device_logs: deviceLogs,
  http_read: {
    whole: http({ nodes: ['web-1'] }),
    short: {
      'a list of more items than fit': http({ nodes: Array.from({ length: 900 }, (_, n) => `web-${n}`) }),
      'a value that is too deep': http({ a: { b: { c: { d: { e: 'x'.repeat(3_000) } } } } }),
      'a text that is cut': httpText(`ok\n${'x'.repeat(400)}`),
      'more lines than fit': httpText('line of text\n'.repeat(500)),
      'a page that is not there': http({ error: 'not found' }, 404),
      'an empty page of a server that is ill': http([], 503),
      'more names than are shown': http(
        Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`name_${n}`, n])),
        200,
        { select: 'gone' },
      ),
    },
  },
  read_result: {
    whole: { data: { total: 1, matching: 1, from: 1, lines: ['one'], truncated: false } },
    short: {
      'more lines than are shown': { data: { total: 90, matching: 90, from: 1, lines: ['one'], truncated: true } },
      'as answered before it said so': { data: { total: 90, matching: 90, from: 1, lines: ['one'] } },
      'a whole that is a part': {
        data: { total: 1, matching: 0, from: 1, lines: [], truncated: readPart(markPart('one')).isPart },
      },
      'its end alone': { data: { total: 90, matching: 2, from: 80, lines: [], truncated: false }, args: { from: 80 } },
    },
  },
  exec: command,
  shell_eval: command,
  docker_exec: command,
  fs_read: {
    whole: { data: { ...device, content: 'one', next_offset: null } },
    short: {
      'a file of more': { data: { ...device, content: 'one', next_offset: 3, truncated: true } },
      'its end alone': { data: { ...device, content: '', next_offset: null }, args: { offset: 900 } },
    },
  },
  fs_list: {
    whole: { data: { ...device, entries: [{ name: 'a' }], total: 1, total_is_more: false } },
    short: {
      'more entries than are shown': {
        data: { ...device, entries: [{ name: 'a' }], total: 300, total_is_more: false },
      },
      'more names than are read': { data: { ...device, entries: [{ name: 'a' }], total: 1, total_is_more: true } },
    },
  },
  fs_stat: { whole: { data: { ...device, size: 3 } }, short: { 'a text that was cut': cut({ ...device, size: 3 }) } },
  disk_usage: {
    whole: { data: { ...device, deleted_but_open: { files: [], processes_unseen: 0, partial: false }, below: null } },
    short: {
      'processes of other users': {
        data: { ...device, deleted_but_open: { files: [], processes_unseen: 12, partial: false }, below: null },
      },
      'a time that was not enough': {
        data: { ...device, deleted_but_open: { files: [], processes_unseen: 0, partial: true }, below: null },
      },
    },
  },
  git_log: {
    whole: { data: { ...device, commits: [{ subject: 'one' }], uncommitted: [], uncommitted_total: 0 } },
    short: {
      'more commits than are shown': cut({ ...device, commits: [{ subject: 'one' }] }),
      'more open files than are listed': {
        data: { ...device, commits: [{ subject: 'one' }], uncommitted: ['a'], uncommitted_total: 90 },
      },
    },
  },
  git_show: {
    whole: { data: { ...device, files: ['a'], files_total: 1, diff: '+a' } },
    short: {
      'a diff that was cut': cut({ ...device, files: ['a'], diff: '+a' }),
      'more files than are listed': { data: { ...device, files: ['a'], files_total: 90, diff: '+a' } },
    },
  },
  pkg_search: {
    whole: { data: { ...device, packages: [{ name: 'a' }], total: 1 } },
    short: { 'more packages than are shown': { data: { ...device, packages: [{ name: 'a' }], total: 90 } } },
  },
  proc_list: {
    whole: { data: { ...device, processes: [{ name: 'nginx' }], total: 1 } },
    short: {
      'more processes than are shown': { data: { ...device, processes: [{ name: 'nginx' }], total: 90 } },
      'sockets of other users': {
        data: { ...device, processes: [], total: 0, sockets_unseen: { total: 1, first: [] } },
      },
    },
  },
  docker_list: {
    whole: { data: { ...device, containers: [{ name: 'a' }], total: 1 } },
    short: { 'more containers than are shown': { data: { ...device, containers: [{ name: 'a' }], total: 90 } } },
  },
  docker_logs: {
    whole: { data: { ...device, output: 'one' } },
    short: {
      'as many lines as were asked for': cut({ ...device, output: 'one' }),
      'an end of it': { data: { ...device, output: 'one' }, args: { tail: 5 } },
    },
  },
  service_status: {
    whole: { data: { ...device, active_state: 'active' } },
    short: { 'an answer that was cut': cut({ ...device, active_state: 'active' }) },
  },
}

/** A tool whose answer is a read, also where its call is judged anew each time. */
const isRead = (name: string, effect: string) => ['read', 'resolve'].includes(effect) || name in shown

const seq = 7
function rowOf(tool: string, data: unknown, args: Answer = {}, failed = false): IncidentEvent {
  const error = {
    code: 'capability_unavailable',
    message: String(data),
    blocked: false,
    failed: true,
    retryable: false,
    details: {},
  }
  const result = failed ? { ok: false, error, meta: {} } : { ok: true, data, meta: {} }
  const metadata = {
    callId: 'c7',
    tool,
    arguments: args,
    effect: 'read' as const,
    targets: [{ kind: 'node' as const, id: 'web-1' }],
    outcome: failed ? ('failed' as const) : ('done' as const),
    result,
    body: null,
    discovered: [],
  }
  return { ...partOfRow('tool_finished', metadata), seq } as IncidentEvent
}

/** What a claim of absence that cites the row fails by; null: the row shows it. */
function refusals(row: IncidentEvent): (string | null)[] {
  const evidence = evidenceOf(
    fold([row], 1, { kind: 'node', id: 'web-1' }),
    'inc_00000000000000000000000001',
    new Map(),
  )
  return ['', missing].map((text) => {
    const claim = { kind: 'absent' as const, text: `There is no ${missing} on web-1.`, quotes: [{ seq, text }] }
    return checkClaim(claim, evidence)?.code ?? null
  })
}

const dataOf = async ({ data }: Short) => (typeof data === 'function' ? await data() : data)

describe('a partial answer proves no absence', () => {
  test('each tool that reads has a row here', () => {
    const read = [...tools].filter(([name, { effect }]) => isRead(name, effect)).map(([name]) => name)
    expect(Object.keys(shown).sort()).toEqual(read.sort())
    expect(read.length).toBeGreaterThan(35)
  })

  const rows = Object.entries(shown).flatMap(([tool, of]) => (of ? [[tool, of] as const] : []))
  test.each(rows)('%s: the whole answer proves it', async (tool, { whole }) => {
    expect(refusals(rowOf(tool, await dataOf(whole), whole.args))).toContain(null)
  })

  test.each(rows)('%s: a failed or cut answer does not', async (tool, { whole }) => {
    const data = await dataOf(whole)
    expect(refusals(rowOf(tool, 'may not be read', whole.args, true))).not.toContain(null)
    expect(refusals(rowOf(tool, { ...data, truncated: true }, whole.args))).not.toContain(null)
    expect(refusals(rowOf(tool, { ...data, isPartial: true }, whole.args))).not.toContain(null)
    const row = rowOf(tool, undefined, whole.args) as IncidentEvent<'tool_finished'>
    const body = { digest: 'gone', bytes: 90_000, head: JSON.stringify(data).slice(0, 40), tail: '' }
    expect(refusals({ ...row, metadata: { ...row.metadata, body } })).not.toContain(null)
  })

  const ways = rows.flatMap(([tool, { short }]) =>
    Object.entries(short).map(([way, each]) => [tool, way, each] as const),
  )
  test.each(ways)('%s: %s', async (tool, _, each) => {
    expect(refusals(rowOf(tool, await dataOf(each), each.args))).not.toContain(null)
  })
})
