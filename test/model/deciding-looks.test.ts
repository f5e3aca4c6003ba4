import { expect, test } from '@jest/globals'
import type { ResourceRef } from '../../domain/registry.ts'
import { decidingLooks } from '../../model/deciding-looks.ts'
import { logOf, partOfRow, row } from '../support/events.ts'

const node: ResourceRef = { kind: 'node', id: 'node-web-osl-1a' }
const shard: ResourceRef = { kind: 'shard', id: 'web-osl-1' }

const look = (tool: string, target: ResourceRef, more: object = {}) =>
  partOfRow('tool_finished', {
    callId: 'c1_0',
    tool,
    arguments: { id: target.id },
    effect: 'read',
    targets: [target],
    result: { ok: true, meta: {} },
    ...more,
  })
const write = [
  partOfRow('tool_started', {
    callId: 'c2_0',
    tool: 'converge_shard',
    arguments: { id: shard.id },
    effect: 'write',
    targets: [shard],
  }),
  partOfRow('verification', { callId: 'c2_0', tool: 'converge_shard', outcome: 'held' }),
]
const ending = (...seqs: number[]) =>
  row('resolved', {
    outcome: 'repaired',
    claims: [{ kind: 'was', text: 'full', quotes: seqs.map((seq) => ({ seq, text: 'x' })) }],
  })
const names = (looks: { tool: string }[]) => looks.map(({ tool }) => tool)

test('the deciding reads are those that the ending quoted and those of the repaired resource, before and after the repair', () => {
  const events = logOf(
    look('get_node', node),
    look('get_tenant', { kind: 'tenant', id: 'tenant-1' }),
    look('get_shard', shard),
    ...write,
    look('node_health', node),
    look('list_incidents', node),
    ending(1, 6),
  )
  const { before, write: repair, after } = decidingLooks(events, 1)
  expect(names(before)).toEqual(['get_node', 'get_shard'])
  expect(repair).toBe('converge_shard')
  expect(after).toEqual([{ tool: 'node_health', arguments: { id: node.id } }])
})

test('a failed read and one of another attempt do not count, and a repeated read counts once', () => {
  const events = logOf(
    look('get_node', node),
    look('get_node', node),
    look('fs_list', node, { result: { ok: false, meta: {} } }),
    { ...look('get_vm', node), attempt: 2 },
    ...write,
    ending(1, 2, 3, 4),
  )
  expect(names(decidingLooks(events, 1).before)).toEqual(['get_node'])
})

test('an ending that quotes no read, and a claim that no row shows, decide nothing', () => {
  const none = { before: [], write: null, after: [] }
  expect(decidingLooks(logOf(look('get_shard', shard), ...write, ending(3)), 1)).toEqual(none)
  const unshown = row('resolved', {
    claims: [{ kind: 'was', text: 'full', quotes: [{ seq: 1, text: 'x' }], shown: false }],
  })
  expect(decidingLooks(logOf(look('get_shard', shard), ...write, unshown), 1)).toEqual(none)
})
