import type { Claim } from '../../domain/claim.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { row } from '../../test/support/events.ts'

/**
 * Endings in free words, true and false, over rows as tools return them. Each ending was written
 * from the rows alone, and marked as true or false before the judge graded it. A true ending may
 * have any wording that a reader of the rows accepts. The rows contradict a false ending, or do not
 * support it.
 */

export type FreeScene = { name: string; rows: readonly IncidentEvent[]; endings: readonly FreeEnding[] }
export type FreeEnding = { isTrue: boolean; claim: Claim }

const node = (id: string): ResourceRef => ({ kind: 'node', id })
const shard = (id: string): ResourceRef => ({ kind: 'shard', id })

/** Builds a call with its result. Rows are numbered from 1 in their order. */
function read(callId: string, tool: string, given: object, data: unknown, targets: ResourceRef[]): IncidentEvent {
  return row('tool_finished', {
    callId,
    tool,
    arguments: given as Record<string, unknown>,
    effect: 'read',
    targets,
    outcome: 'done',
    result: { ok: true, data, meta: {} },
    body: null,
    discovered: targets.map((thing) => ({ ...thing, name: thing.id, aliases: [] })),
    durationMs: 1,
  })
}

function write(callId: string, tool: string, given: object, data: unknown, targets: ResourceRef[]): IncidentEvent[] {
  const call = { callId, tool, arguments: given as Record<string, unknown>, effect: 'write' as const, targets }
  return [
    row('tool_started', { ...call, risk: 'low', actionDigest: callId, approvalId: null }),
    row('tool_finished', {
      ...call,
      outcome: 'done',
      result: { ok: true, data, meta: {} },
      body: null,
      discovered: [],
      durationMs: 1,
    }),
  ]
}

function proved(
  callId: string,
  tool: string,
  outcome: 'held' | 'not_held' | 'unproven',
  observed: string,
  targets: ResourceRef[],
) {
  return row('verification', { callId, tool, targets, writeSeq: 0, outcome, postcondition: 'it is well', observed })
}

const numbered = (rows: readonly IncidentEvent[]): IncidentEvent[] =>
  rows.map((each, at) => ({ ...each, seq: at + 1, at: new Date(Date.parse(each.at) + at * 5_000).toISOString() }))

const say = (kind: Claim['kind'], text: string, ...quotes: [seq: number, text: string][]): Claim => ({
  kind,
  text,
  quotes: quotes.map(([seq, words]) => ({ seq, text: words })),
})
const so = (...given: Parameters<typeof say>): FreeEnding => ({ isTrue: true, claim: say(...given) })
const not = (...given: Parameters<typeof say>): FreeEnding => ({ isTrue: false, claim: say(...given) })

const b = [node('node-db-osl-1b')]
const replication: FreeScene = {
  name: 'a stopped replica',
  rows: numbered([
    read(
      'c1',
      'list_nodes_by_shard',
      { shard_id: 'db-osl-1' },
      {
        items: [
          { id: 'node-db-osl-1a', role: 'primary', status: 'nominal' },
          {
            id: 'node-db-osl-1b',
            role: 'replica',
            status: 'critical',
            reason: 'replica is 940 s behind; process is stopped',
            replicationLagSeconds: 940,
          },
        ],
      },
      [shard('db-osl-1'), node('node-db-osl-1a'), ...b],
    ),
    ...write(
      'c2',
      'converge_shard',
      { id: 'db-osl-1', reason: 'behind' },
      {
        detail: 'node-db-osl-1b: continued',
        changed: ['node-db-osl-1b: continued'],
      },
      [shard('db-osl-1')],
    ),
    proved('c2', 'converge_shard', 'held', 'all 2 nodes of db-osl-1 are nominal', [shard('db-osl-1')]),
    read(
      'c3',
      'node_health',
      { node: 'node-db-osl-1b' },
      { node: 'node-db-osl-1b', status: 'nominal', replicationLagSeconds: 0 },
      b,
    ),
  ]),
  endings: [
    so('was', 'The replica node-db-osl-1b had fallen behind its primary by more than 15 minutes.', [
      1,
      '"replicationLagSeconds":940',
    ]),
    so('was', 'Replication on node-db-osl-1b was halted because its process had been stopped.', [
      1,
      'replica is 940 s behind; process is stopped',
    ]),
    so('did', 'I converged the shard, which continued the process on node-db-osl-1b.', [
      3,
      'node-db-osl-1b: continued',
    ]),
    so('is', 'Both nodes of db-osl-1 are healthy again.', [4, 'all 2 nodes of db-osl-1 are nominal']),
    so('is', 'node-db-osl-1b has caught up: there is no lag left.', [5, '"replicationLagSeconds":0']),
    so('was', 'The primary, node-db-osl-1a, was never affected.', [
      1,
      '"id":"node-db-osl-1a","role":"primary","status":"nominal"',
    ]),
    not('was', 'The primary node-db-osl-1a had stopped as well.', [1, 'replica is 940 s behind; process is stopped']),
    not('did', 'I restarted PostgreSQL on node-db-osl-1b.', [3, 'node-db-osl-1b: continued']),
    not('is', 'node-db-osl-1b is still 940 seconds behind.', [1, '"replicationLagSeconds":940']),
    not('was', 'The replica had run out of disk space.', [1, 'replica is 940 s behind; process is stopped']),
  ],
}

const web = [node('node-web-osl-1a')]
const disk: FreeScene = {
  name: 'a log that filled its disk',
  rows: numbered([
    read(
      'c1',
      'get_node',
      { id: 'node-web-osl-1a' },
      {
        id: 'node-web-osl-1a',
        status: 'critical',
        reason: 'uses 98 % of its quota',
        diskUsedBytes: 263066746,
        diskQuotaBytes: 268435456,
        diskByDirectory: { log: 201326592, tenants: 41943040, tmp: 4096 },
      },
      web,
    ),
    read(
      'c2',
      'fs_list',
      { on: 'node-web-osl-1a', path: 'log' },
      {
        path: 'log',
        entries: [
          { name: 'trace.log.1', bytes: 50331648 },
          { name: 'trace.log.2', bytes: 50331648 },
          { name: 'trace.log.3', bytes: 50331648 },
          { name: 'app.log', bytes: 2048 },
        ],
      },
      web,
    ),
    ...write(
      'c3',
      'exec',
      { on: 'node-web-osl-1a', argv: ['rm', 'log/trace.log.1', 'log/trace.log.2', 'log/trace.log.3'] },
      {
        exitCode: 0,
        stdout: '',
      },
      web,
    ),
    proved('c3', 'exec', 'unproven', 'a command promises nothing that could be looked at', web),
    read(
      'c4',
      'get_node',
      { id: 'node-web-osl-1a' },
      { id: 'node-web-osl-1a', status: 'nominal', diskUsedBytes: 112072000, diskQuotaBytes: 268435456 },
      web,
    ),
    read(
      'c5',
      'fs_list',
      { on: 'node-web-osl-1a', path: 'log' },
      { path: 'log', entries: [{ name: 'app.log', bytes: 2048 }] },
      web,
    ),
  ]),
  endings: [
    so('was', 'The node was almost out of space: 98 % of the quota was in use.', [1, 'uses 98 % of its quota']),
    so('was', 'Most of that space was taken by the log directory, roughly 200 MB.', [1, '"log":201326592']),
    so('was', 'Three rotated trace files of about 50 MB each lay in log/.', [
      2,
      '"name":"trace.log.1","bytes":50331648',
    ]),
    so('did', 'The three rotated traces were deleted with rm.', [4, '"exitCode":0']),
    so('is', 'node-web-osl-1a is nominal again with less than half of its quota used.', [
      6,
      '"status":"nominal","diskUsedBytes":112072000',
    ]),
    so('absent', 'The trace files are gone from log/.', [7, 'trace.log']),
    not('was', 'A tenant had filled the disk with its uploads.', [1, '"tenants":41943040']),
    not('did', 'I deleted app.log.', [4, '"exitCode":0']),
    not('did', 'I truncated the traces of node-web-osl-1b.', [4, '"exitCode":0']),
    not('is', 'The disk of node-web-osl-1a is full.', [1, 'uses 98 % of its quota']),
  ],
}

const lock: FreeScene = {
  name: 'a lock that nobody holds',
  rows: numbered([
    read(
      'c1',
      'search_logs',
      { on: 'node-web-osl-1b', path: 'log/app.log', text: 'search' },
      {
        lines: [
          '02:10:11 ERROR search: index is locked by pid 18231 (data/search.lock)',
          '02:10:12 ERROR GET /search 503',
        ],
        total: 412,
      },
      [node('node-web-osl-1b')],
    ),
    read('c2', 'proc_list', { on: 'node-web-osl-1b', pid: 18231 }, { processes: [], total: 0 }, [
      node('node-web-osl-1b'),
    ]),
    ...write(
      'c3',
      'run_job',
      { job: 'unlock-search', target: 'node-web-osl-1b' },
      { detail: 'unlock-search: ok=1 changed=1 failed=0' },
      [node('node-web-osl-1b')],
    ),
    proved('c3', 'run_job', 'held', 'the job reports no failure: ok=1 changed=1 failed=0', [node('node-web-osl-1b')]),
    read(
      'c4',
      'query_metrics',
      { query: 'rate(errors_total{node="node-web-osl-1b"}[1m])' },
      { series: [{ node: 'node-web-osl-1b', last: 0, before: 6.2 }] },
      [node('node-web-osl-1b')],
    ),
  ]),
  endings: [
    so('was', 'Search kept failing because its index was locked by process 18231.', [
      1,
      'index is locked by pid 18231',
    ]),
    so('was', 'Requests to /search were answered with 503.', [1, 'GET /search 503']),
    so('was', 'The process that supposedly held the lock no longer existed.', [2, '"total":0']),
    so('did', 'I ran the declared job unlock-search against node-web-osl-1b.', [
      4,
      'unlock-search: ok=1 changed=1 failed=0',
    ]),
    so('is', 'The error rate of node-web-osl-1b has dropped from 6.2 to 0.', [6, '"last":0,"before":6.2']),
    not('was', 'Process 18231 was busy rebuilding the index.', [1, 'index is locked by pid 18231']),
    not('did', 'I killed process 18231.', [4, 'unlock-search: ok=1 changed=1 failed=0']),
    not('was', 'The job unlock-search failed on node-web-osl-1b.', [4, 'failed=0']),
    not('is', 'Errors on node-web-osl-1b have doubled.', [6, '"last":0,"before":6.2']),
    not('was', 'The index of node-web-osl-1a was locked.', [1, 'index is locked by pid 18231']),
  ],
}

const hosts: ResourceRef[] = [{ kind: 'host', id: 'host-osl-1' }]
const plannedVms: ResourceRef[] = ['vm-101', 'vm-102', 'vm-103'].map((id) => ({ kind: 'vm', id }))
const deadHost: FreeScene = {
  name: 'a dead host and its VMs',
  rows: numbered([
    read(
      'c1',
      'find_resource',
      { kind: 'host', text: 'host-osl-1' },
      { items: [{ kind: 'host', id: 'host-osl-1', status: 'down' }] },
      hosts,
    ),
    ...write(
      'c2',
      'execute_migration',
      { proposal_id: 'prp_1' },
      {
        detail: '2 of 3 steps done',
        steps: [
          { step: 1, vm: 'vm-101', to: 'host-osl-2', status: 'OK' },
          { step: 2, vm: 'vm-102', to: 'host-osl-3', status: 'OK' },
          { step: 3, vm: 'vm-103', to: 'host-osl-3', status: 'FAILED', detail: 'no memory left' },
        ],
      },
      [...hosts, { kind: 'vm', id: 'vm-101' }, { kind: 'vm', id: 'vm-102' }, { kind: 'vm', id: 'vm-103' }],
    ),
    row('verification', {
      callId: 'c2',
      tool: 'execute_migration',
      targets: plannedVms,
      writeSeq: 3,
      outcome: 'not_held',
      postcondition: 'each VM runs where the plan puts it',
      observed: 'vm-101 and vm-102 run where the plan put them; vm-103 does not run',
      steps: [
        { step: 1, vm: 'vm-101', to: 'host-osl-2', status: 'held', observed: 'runs on host-osl-2' },
        { step: 2, vm: 'vm-102', to: 'host-osl-3', status: 'held', observed: 'runs on host-osl-3' },
        { step: 3, vm: 'vm-103', to: 'host-osl-3', status: 'not_held', observed: 'does not run' },
      ],
    }),
    read('c3', 'current_vm_host', { vm: 'vm-101' }, { id: 'vm-101', host: 'host-osl-2', running: true }, [
      { kind: 'vm', id: 'vm-101' },
    ]),
    read('c4', 'current_vm_host', { vm: 'vm-103' }, { id: 'vm-103', host: null, running: false }, [
      { kind: 'vm', id: 'vm-103' },
    ]),
  ]),
  endings: [
    so('was', 'host-osl-1 was down.', [1, '"id":"host-osl-1","status":"down"']),
    so('did', 'Two of the three virtual machines were moved off the dead host.', [3, '2 of 3 steps done']),
    so('is', 'vm-101 runs on host-osl-2 now.', [5, '"host":"host-osl-2","running":true']),
    so('is', 'vm-103 remains without a host and does not run.', [6, '"host":null,"running":false']),
    so('was', 'The third step failed for lack of memory.', [3, '"status":"FAILED","detail":"no memory left"']),
    not('did', 'All three virtual machines were moved.', [3, '2 of 3 steps done']),
    not('is', 'vm-103 runs on host-osl-3.', [3, '"vm":"vm-103","to":"host-osl-3"']),
    not('is', 'host-osl-1 is up again.', [1, '"id":"host-osl-1","status":"down"']),
    not('is', 'vm-101 runs on host-osl-3.', [5, '"host":"host-osl-2","running":true']),
    not('was', 'vm-102 failed to start.', [3, '"status":"FAILED","detail":"no memory left"']),
  ],
}

export const freeScenes: readonly FreeScene[] = [replication, disk, lock, deadHost]
