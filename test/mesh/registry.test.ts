import { describe, expect, test } from '@jest/globals'
import { capability } from '../../domain/mesh.ts'
import { describeError } from '../../effects/devices/ask-device.ts'
import { allCapabilities } from '../../mesh/agent/agent-state.ts'
import {
  descriptionOf,
  inMode,
  meshSpecs,
  missingPrerequisite,
  specNamed,
  toolsOf,
  unknownTools,
} from '../../mesh/registry.ts'
import { procListArgs } from '../../mesh/specs/host.ts'
import { describeTools } from '../../model/describe-tools.ts'
import { describedTools, tools } from '../../tools/registry.ts'

const device = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }
const names = (more: object) => toolsOf({ ...device, ...more }).map((spec) => spec.name)

test('there is one tool for each capability', () => {
  const carriedOut = allCapabilities.map((one) => one.capability)
  expect(meshSpecs.map((spec) => spec.capability).sort()).toEqual([...carriedOut].sort())
  expect(carriedOut.filter((name) => !capability.safeParse(name).success)).toEqual([])
  expect(new Set(meshSpecs.map((spec) => spec.name)).size).toBe(carriedOut.length)
})

test('servers with the OpenAI protocol accept every name', () => {
  for (const { name } of meshSpecs) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
})

test("the end of a tool's description shows a model that the tool is remote, and which calls always ask", () => {
  for (const spec of meshSpecs)
    expect(descriptionOf(spec)).toMatch(/ \[device_mesh: [a-z.]+\](?: \(approval required\))?$/)
  expect(tools.get('exec')?.description).toMatch(/\[device_mesh: shell\.exec\]$/)
  expect(tools.get('pkg_install')?.description).toMatch(/\[device_mesh: pkg\.install\] \(approval required\)$/)
  for (const spec of meshSpecs) expect(descriptionOf(spec, 'sudo')).toContain('(approval required)')
})

test('shell_eval exists in every mode, and sudo requires its approval', () => {
  const spec = specNamed('shell.eval')
  if (!spec) throw new Error('no shell_eval')
  for (const mode of ['user', 'sudo', 'all'] as const) expect(inMode(spec, mode)).toBe(true)
  expect(descriptionOf(spec, 'user')).not.toContain('approval required')
  expect(descriptionOf(spec, 'sudo')).toContain('(approval required)')
})

test('a tool that needs an admin is not in mode user', () => {
  const missing = names({}).filter((name) => !names({ mode: 'user' }).includes(name))
  expect(missing).toEqual(['git_push', 'pkg_install', 'proc_kill', 'docker_exec', 'container_restart'])
  expect(names({ mode: 'sudo' })).toEqual(names({}))
})

test('a list of tools accepts both spellings, and an unknown name is reported and ignored', () => {
  const toolsAllowed = ['exec', 'fs.read', 'fs_list', 'docker.container.logs', 'memory.recall']
  expect(names({ toolsAllowed })).toEqual(['exec', 'fs_read', 'fs_list', 'docker_logs'])
  expect(unknownTools(toolsAllowed)).toEqual(['memory.recall'])
  expect(names({ toolsAllowed: ['memory.recall'] })).toEqual([])
})

test('a capability that the device lacks is not offered, with the reason', () => {
  const health = { unavailable: { 'docker.container.list': 'no engine socket' } }
  expect(names({ health })).not.toContain('docker_list')
  const spec = specNamed('docker_list')
  expect(spec && missingPrerequisite(spec, { ...device, health })).toBe('no engine socket')
  expect(names({ terms: { capabilities: ['fs.read'] } })).toEqual(['fs_read'])
})

describe('the model', () => {
  test('is offered no device tool without a device', () => {
    expect(describedTools(null).map((tool) => tool.name)).not.toContain('exec')
    expect(describedTools(null, [device]).map((tool) => tool.name)).toContain('exec')
  })

  test('is offered a device tool only for types of incidents that have it', () => {
    const offered = describedTools(['fs_read'], [device]).map((tool) => tool.name)
    expect(offered).toContain('fs_read')
    expect(offered).not.toContain('exec')
  })

  test('has room for all of them beside the prompt', () => {
    expect(
      JSON.stringify(describeTools(describedTools(null, [device], [], { shards: true, hosts: true }))).length,
    ).toBeLessThan(22_500)
  })
})

test('every write names its resource and its reason', () => {
  for (const { name } of meshSpecs) {
    const tool = tools.get(name)
    expect([name, tool?.names, tool?.input.safeParse({}).success]).toEqual([
      name,
      { on: ['node', 'host', 'vm'] },
      false,
    ])
    if (tool?.effect === 'write') expect([name, tool.prepare, tool.postcondition]).not.toContain(undefined)
  }
  const parsed = tools.get('fs_write')?.input.safeParse({ on: 'n1', path: '/srv/x', content: '' })
  expect(parsed?.error?.issues[0]?.path).toEqual(['reason'])
})

test('an agent that is older than an argument refuses it, and the model reads the remedy', () => {
  const refused = procListArgs.omit({ port: true }).safeParse({ port: 80 }).error?.issues[0]?.message ?? ''
  const error = (message: string) => describeError('proc.list', { error: { code: 'invalid_arguments', message } })
  // An agent of 0.2.0 has the words of the library.
  for (const words of [refused, 'Unrecognized key: "port"'])
    expect(error(`The arguments: ${words}`)).toMatch(
      /"port".*older than this argument: leave it out, or update the agent$/,
    )
  expect(error('limit: Too big')).toBe('device_mesh: proc.list: invalid_arguments: limit: Too big')
})

test('arguments that no device should see are refused by the schema', () => {
  const refused: [string, object][] = [
    ['fs_read', { path: 'etc/passwd' }],
    ['fs_read', { path: '/srv/a\nb' }],
    ['git_clone', { url: 'ext::sh -c id', path: '/srv/x' }],
    ['git_push', { path: '/srv/x', remote: '--receive-pack=id' }],
    ['pkg_install', { packages: ['-o', 'Dpkg::Pre-Invoke=id'] }],
    ['proc_kill', { pid: 1, start_time: '1' }],
    ['proc_kill', { pid: 4711 }],
    ['proc_list', { port: 0 }],
    ['disk_usage', { path: 'srv' }],
    ['git_show', { path: '/srv/x', revision: '--all' }],
    ['git_revert', { path: '/srv/x', revision: 'HEAD' }],
    ['docker_logs', { container: '../containers/json' }],
    ['exec', { argv: [] }],
    ['exec', { argv: ['id'], shell: true }],
  ]
  for (const [name, args] of refused) {
    const parsed = tools.get(name)?.input.safeParse({ on: 'n1', reason: 'because', ...args })
    expect([name, args, parsed?.success]).toEqual([name, args, false])
  }
})
