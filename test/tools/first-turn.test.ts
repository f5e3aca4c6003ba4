import { describe, expect, test } from '@jest/globals'
import { inventoryKinds } from '../../domain/kinds.ts'
import { describeTools } from '../../model/describe-tools.ts'
import { keepTopics, readPrompts } from '../../prompts/render.ts'
import { sourceKinds } from '../../sources/kinds.ts'
import { describedTools, splitTools, tools } from '../../tools/registry.ts'

const device = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }
const everything = describedTools(null, [device], [...sourceKinds.keys()])
const names = (list: { name: string }[]) => list.map(({ name }) => name)

describe('the first turn', () => {
  test.each([...inventoryKinds, null])('every tool is offered or named by more_tools, for %s', (kind) => {
    const { first, more } = splitTools(everything, kind)
    expect([...names(first), ...names(more)].sort()).toEqual([...names(everything), 'more_tools'].sort())
    const listed = first.find(({ name }) => name === 'more_tools')?.description ?? ''
    for (const name of names(more)) expect(listed).toContain(name)
  })

  test.each([...inventoryKinds, null])('an incident about %s can be ended, and its resource found', (kind) => {
    const first = names(splitTools(everything, kind).first)
    for (const name of ['resolve_incident', 'escalate_incident', 'find_resource', 'get_resource', 'query_metrics'])
      expect(first).toContain(name)
  })

  test('plans are offered for hosts and VMs, shards for what belongs to one', () => {
    const plans = inventoryKinds.filter((kind) =>
      names(splitTools(everything, kind).first).includes('execute_migration'),
    )
    expect(plans).toEqual(['region', 'host', 'vm'])
    const shards = inventoryKinds.filter((kind) => names(splitTools(everything, kind).first).includes('converge_shard'))
    expect(shards).toEqual(['shard', 'node', 'tenant'])
  })

  test('what is looked at first is offered where it matters, and what is rare on request', () => {
    const offering = (name: string) =>
      inventoryKinds.filter((kind) => names(splitTools(everything, kind).first).includes(name))
    for (const name of ['get_host', 'list_hosts']) expect(offering(name)).toEqual(['region', 'host', 'vm'])
    for (const name of ['vm_start', 'vm_restart']) expect(offering(name)).toEqual(['vm'])
    expect(offering('disk_usage')).toEqual(expect.arrayContaining(['node', 'service_unit', 'database']))
    for (const name of ['vm_stop', 'git_log', 'git_show', 'git_revert']) expect(offering(name)).toEqual([])
  })

  test('a site with few tools has no more_tools', () => {
    const few = everything.filter(({ name }) => tools.get(name)?.firstFor === undefined)
    expect(names(splitTools(few, 'node').first)).toEqual(names(few))
  })

  test('half of what a model would read of all tools is left out, and no sentence of them is lost', () => {
    const size = (list: typeof everything) => JSON.stringify(describeTools(list)).length
    expect(size(splitTools(everything, 'node').first)).toBeLessThan(size(everything) / 2)
  })
})

describe('the prompt', () => {
  const { system } = readPrompts()

  test('a site with database shards reads the lines of shards, a host those of plans, each without its mark', () => {
    const shard = keepTopics(system, new Set(['shard', 'node', 'tenant']))
    expect(shard).toContain('- Replication broken or lagging: check the shard')
    expect(shard).toContain('A database shard is a MySQL replication pair')
    expect(shard).not.toMatch(/Host down|ha_group|Runaway process|[{}]/)
    const host = keepTopics(system, new Set(['host', 'vm', 'device']))
    expect(host).toMatch(/- Host down: plan with[\s\S]*- Runaway process/)
    expect(host).not.toMatch(/MySQL|converge/i)
  })

  test('what is about everything stays, and without a topic all of it', () => {
    const plain = keepTopics(system, new Set())
    for (const line of [
      '## Responsibilities',
      '- Unknown: gather context',
      '- A person denied an action',
      '## Endings',
    ])
      expect(plain).toContain(line)
    expect(keepTopics(system, null)).toMatch(/Replication broken[\s\S]*Host down[\s\S]*Full log/)
  })
})
