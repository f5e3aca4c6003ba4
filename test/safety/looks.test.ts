import { describe, expect, test } from '@jest/globals'
import type { EventMetadata, IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { fold } from '../../safety/fold.ts'
import { tools } from '../../tools/registry.ts'
import { logOf, looked, row, wrote } from '../support/events.ts'

const node = { kind: 'node', id: 'node-osl-1' } as const
const other = { kind: 'node', id: 'node-osl-2' } as const
const shard = { kind: 'shard', id: 'db-osl-1' } as const
const host = { kind: 'host', id: 'host-osl-4' } as const

/** A read that answered, as the tool's own declaration reads the answer. */
function answered(tool: string, targets: ResourceRef[], args: Record<string, unknown>, data: unknown): IncidentEvent {
  const { effect, discovers } = tools.get(tool) ?? {}
  return row('tool_finished', {
    callId: 'c1_0',
    tool,
    arguments: args,
    effect,
    targets,
    outcome: 'done',
    result: { ok: true, data, meta: {} },
    body: null,
    discovered: discovers?.(data, args) ?? [],
  } as EventMetadata['tool_finished'])
}

const nodeRow = (id: string, status: string) => ({ id, hostname: id, ip: '127.0.0.1', shard: 'db-osl-1', status })
const listed = (...statuses: [string, string]) =>
  answered(
    'list_nodes_by_shard',
    [shard],
    { shard_id: 'db-osl-1' },
    {
      items: [nodeRow('node-osl-1', statuses[0]), nodeRow('node-osl-2', statuses[1])],
    },
  )
const read = (status: string) => answered('get_node', [node], { id: 'node-osl-1' }, nodeRow('node-osl-1', status))
const hostRead = (more: Record<string, unknown>) =>
  answered('node_health', [host], { node: host.id }, { node: host.id, kind: 'host', status: 'degraded', ...more })

const looksOf = (...rows: IncidentEvent[]) => {
  const { looks } = fold(logOf(...rows), 1)
  return Object.fromEntries([...looks].map(([key, { seq, health }]) => [key, `${seq} ${health}`]))
}

describe('a read', () => {
  test('covers each node of a list that shows their health, and their shard', () => {
    expect(looksOf(listed('nominal', 'degraded'))).toEqual({
      'shard:db-osl-1': '1 degraded',
      'node:node-osl-1': '1 nominal',
      'node:node-osl-2': '1 degraded',
    })
    expect(fold(logOf(listed('nominal', 'nominal')), 1).lookedAt).toContain('node:node-osl-2')
  })

  test('does not cover what an answer only mentions', () => {
    const found = answered('find_resource', [], { text: 'osl' }, { items: [{ ...node, name: 'node-osl-1' }] })
    expect(looksOf(found)).toEqual({})
    expect(Object.keys(looksOf(read('nominal')))).toEqual(['node:node-osl-1'])
    const vm = { id: 'vm-osl-1', host: 'host-osl-4', running: false }
    expect(looksOf(answered('current_vm_host', [{ kind: 'vm', id: 'vm-osl-1' }], { vm: 'vm-osl-1' }, vm))).toEqual({
      'vm:vm-osl-1': '1 down',
    })
  })

  test('is the newest of its resource, with the time of its row', () => {
    const rows = logOf({ ...read('degraded') }, { ...read('nominal'), at: '2026-11-21T02:07:00.000Z' })
    expect(fold(rows, 1).looks.get('node:node-osl-1')).toEqual({
      seq: 2,
      atMs: Date.parse('2026-11-21T02:07:00.000Z'),
      health: 'nominal',
    })
  })

  test('without a health leaves the earlier health, unless a write came since', () => {
    const file = looked('c2_0', [node])
    expect(looksOf(read('degraded'), file)).toEqual({ 'node:node-osl-1': '2 degraded' })
    expect(looksOf(read('nominal'), wrote('c3_0', [shard]), file)).toEqual({ 'node:node-osl-1': '3 null' })
    expect(looksOf(wrote('c3_0', [shard]), read('critical'), file, file)).toEqual({
      'node:node-osl-1': '4 critical',
    })
  })

  test('of a draining host finds it degraded while VMs are on it, and nominal when it is empty', () => {
    expect(looksOf(hostRead({ state: 'draining', vmCount: 2 }))).toEqual({ 'host:host-osl-4': '1 degraded' })
    expect(looksOf(hostRead({ state: 'draining', vmCount: 0 }))).toEqual({ 'host:host-osl-4': '1 nominal' })
    const unread = { state: 'draining', vmCount: 0, status: 'unknown', stale: true }
    expect(looksOf(hostRead(unread))).toEqual({ 'host:host-osl-4': '1 unknown' })
    expect(looksOf(hostRead({ status: 'critical', state: 'dead', vmCount: 0 }))).toEqual({
      'host:host-osl-4': '1 critical',
    })
  })

  test('of an earlier version, or a failed one, has no health', () => {
    expect(looksOf(looked('c1_0', [node, other]))).toEqual({
      'node:node-osl-1': '1 null',
      'node:node-osl-2': '1 null',
    })
    const failed = { ...read('nominal') } as IncidentEvent<'tool_finished'>
    failed.metadata = { ...failed.metadata, result: { ok: false, meta: {} } }
    expect(looksOf(failed)).toEqual({})
  })
})
