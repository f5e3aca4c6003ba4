import { describe, expect, test } from '@jest/globals'
import { type InventoryKind, inventoryKinds } from '../../domain/kinds.ts'
import { describeTools } from '../../model/describe-tools.ts'
import { keepTopics, noFacts, readPrompts, renderSystemPrompt, topicsOf } from '../../prompts/render.ts'
import { sourceKinds } from '../../sources/kinds.ts'
import { describedTools, splitTools, tools, unfoldNames } from '../../tools/registry.ts'

const everyDevice = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }

const device = everyDevice
const everything = describedTools(null, [device], [...sourceKinds.keys()], {
  changes: true,
  jobs: true,
  shards: true,
  hosts: true,
  databases: true,
})
const prompts = readPrompts()
const names = (list: { name: string }[]) => list.map(({ name }) => name)

describe('the first turn', () => {
  test.each([...inventoryKinds, null])('every tool is offered or named by more_tools, for %s', (kind) => {
    const { first, more } = splitTools(everything, kind)
    expect([...names(first), ...names(more)].sort()).toEqual([...names(everything), 'more_tools'].sort())
    const listed = first.find(({ name }) => name === 'more_tools')?.description ?? ''
    const told = /later turns: (.*)\.$/.exec(listed)?.[1]?.split(', ') ?? []
    expect(unfoldNames(told).sort()).toEqual(names(more).sort())
  })

  test.each([...inventoryKinds, null])('an incident about %s can be ended, and its resource found', (kind) => {
    const first = names(splitTools(everything, kind).first)
    for (const name of ['resolve_incident', 'escalate_incident', 'find_resource', 'query_metrics', 'search_logs'])
      expect(first).toContain(name)
    const own: Partial<Record<string, string>> = { node: 'get_node', host: 'get_host', vm: 'current_vm_host' }
    const read = kind === 'shard' || kind === 'tenant' ? 'get_shard' : (own[kind ?? ''] ?? 'get_resource')
    expect(first).toContain(read)
  })

  test.each([...inventoryKinds, null])(
    'prompt and tools are at most 12 kB with everything connected, for %s',
    (kind) => {
      const { first } = splitTools(everything, kind)
      const topics = topicsOf(kind)
      const system = renderSystemPrompt(prompts, { override: null, protocol: 'native', toolsText: '', topics })
      const bytes = Buffer.byteLength(system) + Buffer.byteLength(JSON.stringify(describeTools(first)))
      expect(bytes).toBeLessThanOrEqual(12_288)
    },
  )

  test('a job is offered first if one is declared for the resource', () => {
    expect(names(splitTools(everything, 'node').first)).toContain('run_job')
    const { first, more } = splitTools(everything, 'node', { lacks: ['jobs'] })
    expect([names(first).includes('run_job'), names(more).includes('run_job')]).toEqual([false, true])
  })

  test('logs are one tool: of sources, of devices, or of both, with the fields that apply there', () => {
    const fieldsOf = (devices: (typeof device)[], sources: string[]) =>
      Object.keys(
        describedTools(null, devices, sources).find(({ name }) => name === 'search_logs')?.inputSchema.properties ?? {},
      )
    expect(fieldsOf([device], [])).toEqual(['on', 'unit', 'path', 'contains', 'window'])
    expect(fieldsOf([], ['loki'])).toEqual(['labels', 'contains', 'excludes', 'pattern', 'window', 'until', 'count'])
    expect(fieldsOf([device], ['loki', 'victorialogs'])).toEqual(
      expect.arrayContaining(['source', 'labels', 'on', 'unit']),
    )
    expect(fieldsOf([], ['prometheus'])).toEqual([])
    expect(names(everything)).not.toContain('device_logs')
    expect(tools.get('device_logs')?.effect).toBe('read')
  })

  test('plans are offered for hosts and VMs, shards for their parts', () => {
    const plans = inventoryKinds.filter((kind) =>
      names(splitTools(everything, kind).first).includes('execute_migration'),
    )
    expect(plans).toEqual(['region', 'host', 'vm'])
    const shards = inventoryKinds.filter((kind) => names(splitTools(everything, kind).first).includes('converge_shard'))
    expect(shards).toEqual(['shard', 'node', 'tenant'])
  })

  test('frequent tools are offered first where they matter, and rare ones on request', () => {
    const offering = (name: string) =>
      inventoryKinds.filter((kind) => names(splitTools(everything, kind).first).includes(name))
    expect(offering('get_host')).toEqual(['region', 'host', 'vm'])
    for (const name of ['vm_start', 'vm_restart']) expect(offering(name)).toEqual(['vm'])
    expect(offering('disk_usage')).toEqual(expect.arrayContaining(['node', 'service_unit', 'database']))
    for (const name of ['vm_stop', 'git_log', 'git_show', 'git_revert', 'http_read', 'recent_changes'])
      expect(offering(name)).toEqual([])
  })

  test('if a runbook matches, situational tools that it does not name are left for more_tools, and nothing is lost', () => {
    const { first, more } = splitTools(everything, 'node', { runbook: 'Look: `proc_list`, then `proc_kill`.' })
    expect(names(first)).toEqual(expect.arrayContaining(['proc_list', 'exec', 'search_logs', 'get_node', 'more_tools']))
    for (const name of ['disk_usage', 'fs_read', 'service_status', 'active_alerts', 'describe_metrics'])
      expect([names(first).includes(name), names(more).includes(name)]).toEqual([false, true])
    expect([...names(first), ...names(more)].filter((name) => name !== 'more_tools').sort()).toEqual(
      names(everything).sort(),
    )
  })

  test('a site with few tools has no more_tools', () => {
    const few = everything.filter(({ name }) => tools.get(name)?.firstFor === undefined)
    expect(names(splitTools(few, 'node').first)).toEqual(names(few))
  })

  test('more than half of the text of all tools is left out', () => {
    const size = (list: typeof everything) => JSON.stringify(describeTools(list)).length
    expect(size(splitTools(everything, 'node').first)).toBeLessThan(size(everything) / 2)
  })
})

describe('the prompt', () => {
  const { system } = prompts

  const platform = { shards: true, hosts: false }
  const facts = { ...noFacts, counts: { shard: 2, node: 4, tenant: 3 }, platform, databaseShards: 1 }
  const readAbout = (kind: InventoryKind | null, site = facts) =>
    renderSystemPrompt(prompts, { override: null, protocol: 'native', toolsText: '', topics: topicsOf(kind), site })

  test('an incident of a shard reads the lines of shards, one of a host does not, and no line shows its mark', () => {
    expect(readAbout('shard')).toContain('- Replication broken or lagging: check the shard')
    expect(readAbout('shard')).toContain('A database shard is a MySQL replication pair')
    expect(readAbout('host')).not.toMatch(/MySQL|converge/i)
    for (const kind of [...inventoryKinds, null]) expect(readAbout(kind)).not.toMatch(/[{]\w+[ }]|[{][{]/)
  })

  test('general lines stay, and without a topic all lines', () => {
    const plain = keepTopics(system, new Set())
    for (const line of ['## Responsibilities', '- Unknown: gather context', '- Unknown: gather context', '## Endings'])
      expect(plain).toContain(line)
    expect(keepTopics(system, null)).toMatch(/Replication broken[\s\S]*Shard degraded/)
  })
})
