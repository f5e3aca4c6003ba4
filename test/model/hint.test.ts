import { expect, test } from '@jest/globals'
import { renderLeaderHint } from '../../model/hint.ts'
import { logOf, row } from '../support/events.ts'

const leader = {
  type: 'replication_lag',
  title: 'MySQL replication lag exceeded 30s',
  attempt: 1,
  resolution: 'Converged shard',
}
const called = (tool: string, args: Record<string, unknown>) => row('tool_started', { tool, arguments: args })

test("a hint has the type, the title, the resolution, and the leader's calls in order", () => {
  const events = logOf(called('get_shard', { id: 'db-osl-1' }), called('converge_shard', { id: 'db-osl-1' }))
  expect(renderLeaderHint(leader, events)).toBe(
    [
      'Incident type: replication_lag',
      'Title: MySQL replication lag exceeded 30s',
      'Resolution: Converged shard',
      '',
      'Investigation steps taken:',
      '  1. get_shard({"id":"db-osl-1"})',
      '  2. converge_shard({"id":"db-osl-1"})',
    ].join('\n'),
  )
})

test('ten steps are shown and the rest is counted, and long arguments end after 120 characters', () => {
  const events = logOf(
    ...Array.from({ length: 13 }, (_, index) => called('get_node', { id: `n${index}`, x: 'y'.repeat(300) })),
  )
  const lines = renderLeaderHint(leader, events)?.split('\n') ?? []
  expect(lines.filter((line) => /^ {2}\d+\. /.test(line))).toHaveLength(10)
  expect(lines.at(-1)).toBe('  … and 3 more')
  expect(lines.find((line) => line.startsWith('  1. '))).toHaveLength('  1. get_node()'.length + 120)
})

test('a leader that did not resolve gives no hint, and its earlier attempt gives none of its steps', () => {
  expect(renderLeaderHint({ ...leader, resolution: null }, [])).toBeNull()
  const old = row('tool_started', { tool: 'get_shard', arguments: {} }, { attempt: 1 })
  expect(renderLeaderHint({ ...leader, attempt: 2 }, logOf(old))).not.toContain('get_shard')
})

test("with the deciding reads a hint has the leader's text, and these reads with the names of its reader", () => {
  const events = logOf(
    called('get_shard', { id: 'db-osl-1' }),
    row('tool_started', { tool: 'converge_shard', arguments: { id: 'db-osl-1' }, effect: 'write' }),
  )
  const looks = {
    before: [{ tool: 'get_shard', arguments: { id: 'db-ams-1' } }],
    write: 'converge_shard',
    after: [{ tool: 'node_health', arguments: { node: 'node-db-ams-1b' } }],
  }
  expect(renderLeaderHint(leader, events, looks)).toBe(
    [
      'Incident type: replication_lag',
      'Title: MySQL replication lag exceeded 30s',
      'Resolution: Converged shard',
      '',
      'Repair there:',
      '  1. converge_shard({"id":"db-osl-1"})',
      '',
      'Looks that decided it, at your resource:',
      '  1. get_shard({"id":"db-ams-1"})',
      '  2. node_health({"node":"node-db-ams-1b"})',
    ].join('\n'),
  )
})
