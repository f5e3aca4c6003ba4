import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import type { ResourceRef } from '../../domain/registry.ts'
import type { DiscoveredThing, ToolFacts } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { resolveArguments } from '../../safety/resolve-arguments.ts'
import { remember, resolvedForMs } from '../../safety/resolved.ts'

const facts = (more: Partial<ToolFacts>): ToolFacts => ({
  name: 'tool',
  effect: 'write',
  risk: 'low',
  reversible: true,
  input: z.unknown(),
  names: {},
  ...more,
})
const argv = facts({ names: { target: 'host' }, command: { field: 'argv', form: 'argv' } })
const bash = facts({ names: { target: 'host' }, command: { field: 'command', form: 'bash' } })
const inside = facts({ names: { on: ['host', 'vm'] }, inside: true })
const insideHost = facts({ names: { note: 'shard', on: 'node' }, inside: true })

const osl: DiscoveredThing = { kind: 'shard', id: 'db-osl-1', name: 'oslo', aliases: ['primary'] }
const ams: DiscoveredThing = { kind: 'shard', id: 'db-ams-1', name: 'amsterdam', aliases: ['primary'] }
const vm = (id: string, host: string): DiscoveredThing => ({ kind: 'vm', id, name: `web ${id}`, aliases: [], host })
const node: DiscoveredThing = { kind: 'node', id: 'node-7', name: 'seven', aliases: [] }

function knowing(things: DiscoveredThing[], explicit = true) {
  const state = fold([], 1)
  for (const thing of things) remember(state.resolved, thing, 1, 0, explicit)
  return state
}
const settled = (of: ToolFacts, args: Record<string, unknown>, things: DiscoveredThing[] = [osl], nowMs = 0) =>
  resolveArguments(of, args, knowing(things), nowMs)

describe('names', () => {
  const list = facts({ names: { ids: 'shard' } })

  test('in a list are resolved one by one, and values that are no text stay', () => {
    const { arguments: args, targets } = settled(list, { ids: ['oslo', 7, 'db-ams-1'], reason: 'x' }, [osl, ams])
    expect(args).toEqual({ ids: ['db-osl-1', 7, 'db-ams-1'], reason: 'x' })
    expect(targets).toEqual([
      { kind: 'shard', id: 'db-osl-1' },
      { kind: 'shard', id: 'db-ams-1' },
    ])
  })

  test('that are missing are not invented, and those of another type stay', () => {
    expect(settled(list, { reason: 'x' })).toEqual({
      arguments: { reason: 'x' },
      targets: [],
      command: null,
      corrected: [],
      problem: null,
    })
    expect('ids' in settled(list, {}).arguments).toBe(false)
    expect(settled(list, { ids: 7 })).toMatchObject({ arguments: { ids: 7 }, targets: [] })
  })

  test('that were not looked up may be of each kind that the field allows', () => {
    expect(settled(facts({ names: { on: ['host', 'vm'] } }), { on: 'x' }).targets).toEqual([
      { kind: 'host', id: 'x' },
      { kind: 'vm', id: 'x' },
    ])
  })

  test('with two meanings are a problem that lists both, for the first such name', () => {
    const { problem, arguments: args } = settled(list, { ids: ['primary'] }, [osl, ams])
    expect(args).toEqual({ ids: ['primary'] })
    expect(problem).toMatchObject({
      code: 'AMBIGUOUS_NAME',
      details: { name: 'primary', candidates: ['shard:db-osl-1', 'shard:db-ams-1'] },
    })
    expect(problem?.reason).toContain('2 resources: shard:db-osl-1, shard:db-ams-1')
  })

  test('that were looked up too long ago have no meaning', () => {
    expect(settled(list, { ids: ['oslo'] }, [osl], resolvedForMs + 1).arguments).toEqual({ ids: ['oslo'] })
  })
})

describe('a host where a guest was meant', () => {
  test('is corrected to the one guest, and the record shows both', () => {
    const { arguments: args, corrected, targets, problem } = settled(inside, { on: 'delly' }, [vm('141', 'delly')])
    expect(args).toEqual({ on: '141' })
    expect(corrected).toEqual([{ code: 'ROUTING_MISMATCH', field: 'on', from: 'delly', to: '141' }])
    expect(targets).toEqual([{ kind: 'vm', id: '141' }])
    expect(problem).toBe(null)
  })

  test('is refused if two were meant, or the tool takes no guest, with the names', () => {
    const two = settled(inside, { on: 'delly' }, [vm('141', 'delly'), vm('142', 'delly')])
    const more_specific = ['vm:delly:141', 'vm:delly:142']
    expect(two).toMatchObject({ arguments: { on: 'delly' }, corrected: [] })
    expect(two.problem?.details).toEqual({ field: 'on', host: 'delly', more_specific, target: 'vm:delly:141' })
    expect(two.problem?.hint).toContain('vm:delly:141 or vm:delly:142')
    const none = settled(insideHost, { note: 'x', on: 'node-7' }, [node, vm('141', 'node-7')])
    expect(none.problem).toMatchObject({ code: 'ROUTING_MISMATCH', details: { host: 'node-7' } })
  })

  test.each<[string, ToolFacts, Record<string, unknown>, DiscoveredThing[]]>([
    ['a tool that does not run inside what it names', facts({ names: { on: ['host', 'vm'] } }), { on: 'delly' }, []],
    ['a field that names no host', facts({ names: { on: 'shard' }, inside: true }), { on: 'delly' }, []],
    ['a guest of another host', inside, { on: 'minipc' }, []],
    ['a field that is no text', inside, { on: ['delly'] }, []],
  ])('is not: %s', (_title, of, args) => {
    expect(settled(of, args, [vm('141', 'delly')])).toMatchObject({ arguments: args, corrected: [], problem: null })
  })

  test('is found in each field that names a host', () => {
    const two = facts({ names: { from: ['shard', 'vm'], on: ['host', 'vm'] }, inside: true })
    expect(settled(two, { from: 'x', on: 'delly' }, [vm('141', 'delly')]).arguments).toEqual({ from: 'x', on: '141' })
  })
})

describe('a command', () => {
  test('in words is judged as words, and in a text as a shell reads it', () => {
    expect(settled(argv, { argv: ['ls', '$(reboot)'] }).command).toMatchObject({ verdict: 'run' })
    expect(settled(bash, { command: 'ls $(reboot)' }).command).toMatchObject({ verdict: 'refuse' })
    expect(settled(argv, { argv: ['df', '-h'] })).toMatchObject({ arguments: { argv: ['df', '-h'] }, corrected: [] })
  })

  test('that is no list of words is not run', () => {
    expect(settled(argv, { argv: 'df -h' }).command).toMatchObject({ verdict: 'ask', code: 'EMPTY' })
  })

  test('in words without an end becomes one for bash that ends', () => {
    const { arguments: args, corrected, command, problem } = settled(argv, { argv: ['journalctl', '-f'], target: 'x' })
    expect(args).toMatchObject({ argv: ['bash', '-c', expect.stringMatching(/^journalctl/)], target: 'x' })
    expect(corrected).toEqual([{ code: 'UNBOUNDED_COMMAND', field: 'argv', from: ['journalctl', '-f'], to: args.argv }])
    expect(command).toMatchObject({ verdict: 'run', effect: 'read' })
    expect(problem).toBe(null)
  })

  test('in a text without an end becomes a text that ends', () => {
    const { arguments: args, corrected, command } = settled(bash, { command: 'journalctl -f' })
    expect(args.command).toMatch(/^journalctl /)
    expect(corrected).toHaveLength(1)
    expect(command).toMatchObject({ verdict: 'run', effect: 'read' })
  })

  test('is judged for the directory in which it will run, if the tool knows it', () => {
    const onDevice = facts({
      command: { field: 'argv', form: 'argv', directory: { field: 'cwd', otherwise: '/' } },
    })
    const removeAll = ['rm', '-rf', '.']
    expect(settled(onDevice, { argv: removeAll }).command).toMatchObject({ verdict: 'refuse', code: 'FORBIDDEN' })
    expect(settled(onDevice, { argv: removeAll, cwd: '/srv/app/cache' }).command).toMatchObject({ verdict: 'ask' })
    expect(settled(argv, { argv: removeAll }).command).toMatchObject({ verdict: 'ask' })
  })

  test('without a bounded form that may run stays as it was', () => {
    for (const command of ['vim', 'less /etc/shadow', 'frobnicate; journalctl -f']) {
      expect([command, settled(bash, { command })]).toMatchObject([command, { arguments: { command }, corrected: [] }])
      expect(settled(bash, { command }).command?.verdict).not.toBe('run')
    }
  })

  test('may connect to a host that was read, and to no other', () => {
    const ping = { command: 'ping -c 1 node-7' }
    expect(settled(bash, ping, [node]).command).toMatchObject({ verdict: 'run' })
    expect(settled(bash, ping, []).command).toMatchObject({ code: 'EXFILTRATION' })
    expect(settled(argv, { argv: ['ping', '-c', '1', 'node-7'] }, [node]).command).toMatchObject({ verdict: 'run' })
    const follow = { command: 'ping node-7' }
    expect(settled(bash, follow, [node])).toMatchObject({ command: { verdict: 'run' }, corrected: [{}] })
  })
})

test('a refused query without a valid form names the alternative, in its own words', () => {
  const judge = (instead?: string) =>
    facts({ judgeQuery: () => ({ ok: false, reason: 'DeleteStmt', bounded: null, ...(instead && { instead }) }) })
  expect(settled(judge('Write one SELECT.'), { sql: 'delete from t' }).problem).toMatchObject({
    hint: 'Write one SELECT.',
  })
  expect(settled(judge(), {}).problem).toMatchObject({ hint: expect.stringContaining('a metric or a resource') })
})

test('a name and a host are both corrected in one call', () => {
  const both = facts({ names: { id: 'shard', on: ['host', 'vm'] }, inside: true })
  const targets: ResourceRef[] = [
    { kind: 'shard', id: 'db-osl-1' },
    { kind: 'vm', id: '141' },
  ]
  expect(settled(both, { id: 'oslo', on: 'delly' }, [osl, vm('141', 'delly')])).toMatchObject({
    arguments: { id: 'db-osl-1', on: '141' },
    targets,
  })
})
