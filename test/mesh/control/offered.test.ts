import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { syncInventory } from '../../../db/inventory.ts'
import { capabilitiesOn } from '../../../mesh/agent/agent-state.ts'
import { type MeshSpec, meshSpecs, specOf } from '../../../mesh/registry.ts'
import { tools } from '../../../tools/registry.ts'
import { announced } from '../../api/announced.ts'
import { scriptedPlatform } from '../../api/scripted-platform.ts'
import { claimedIncident } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { corePort, enrolled, realAgent, stopDevicesAtEnd, toolNamed, useMeshApi } from './mesh-api.ts'
import type { ScriptedDevice } from './scripted-device.ts'

describe('logs', () => {
  const api = useMeshApi()
  const place = temporaryDirectory()
  const on = 'node-osl-1'
  const file = join(place.path, 'log/app.log')

  beforeAll(async () => {
    mkdirSync(join(place.path, 'log'))
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
    const quiet = Array.from({ length: 300 }, (_, n) => `${at(119 - n / 3)} GET /page/${n} 200`)
    const loud = Array.from({ length: 5 }, (_, n) => `${at(4)} cannot reach 10.0.0.${n}: password=hunter2hunter2`)
    writeFileSync(file, [...quiet, ...loud].join('\n'))
    await realAgent(api, on, {
      terms: { capabilities: [], roots: [{ path: join(place.path, 'log'), writable: false }] },
    })
  }, 120_000)
  afterAll(() => place.remove())

  test('search_logs asks a device as device_logs does, announced under its own name and arguments', async () => {
    const id = await claimedIncident(api.db)
    const given = { on, path: file, window: '1h', contains: ['cannot'] }
    const announcedArgs = tools.get('search_logs')?.input.parse(given) as Record<string, unknown>
    const key = await announced(api.db, id, 'search_logs', announcedArgs, null, 'read')
    const { on: _, ...args } = given
    const sent = { capability: 'log.read', args, tool: 'search_logs' }
    const { status, body } = await api.post(`/devices/${on}/calls`, { body: sent, key, as: api.tokens.agent })
    expect([status, body.source, body.on]).toEqual([200, on, { kind: 'node', id: on }])
    expect(body.summary).toMatchObject({ window: '1h', asked: { labels: { path: file }, contains: ['cannot'] } })
    // Under another name, with other arguments, or as another tool it was never announced.
    for (const other of [
      { ...sent, tool: undefined },
      { ...sent, args: { ...args, window: '2h' } },
      { ...sent, tool: 'exec' },
    ]) {
      const again = await announced(api.db, id, 'search_logs', { ...announcedArgs, contains: ['x'] }, null, 'read')
      const refused = await api.post(`/devices/${on}/calls`, { body: other, key: again, as: api.tokens.agent })
      expect([refused.status, refused.body.code]).toEqual([403, 'UNJUDGED'])
    }
  }, 60_000)

  test('a run reads a log of a device as templates, and lines of the whole by its digest; no secret of it is kept', async () => {
    const id = await claimedIncident(api.db)
    const key = await announced(api.db, id, 'device_logs', { on, path: file }, null, 'read')
    const body = { capability: 'log.read', args: { path: file } }
    const { status, body: answer } = await api.post(`/devices/${on}/calls`, { body, key, as: api.tokens.agent })
    expect([status, answer.source, answer.isEmpty]).toEqual([200, on, false])
    expect(answer).not.toHaveProperty('lines')
    const { templates } = answer.summary as unknown as {
      templates: { template: string; count: number; isNew?: boolean }[]
    }
    expect(templates[0]).toMatchObject({ count: 5, isNew: true })
    expect(JSON.stringify(answer.summary).length).toBeLessThanOrEqual(2_000)
    const lines = await api.get(`/incidents/${id}/bodies/${answer.digest}/lines?match=cannot`)
    expect(lines.body.lines as unknown as string[]).toHaveLength(5)
    expect(JSON.stringify(lines.body)).not.toContain('hunter2')
  }, 60_000)
})

describe('offered', () => {
  const platform = scriptedPlatform()
  const api = useMeshApi({ platform })
  stopDevicesAtEnd()
  let node: ScriptedDevice
  beforeAll(async () => {
    await syncInventory(api.db, platform.inventoryState)
    node = await enrolled(api, 'node-osl-1', { mode: 'user' })
    await enrolled(api, 'host-osl-1', {
      guests: 'docker',
      terms: { capabilities: ['shell.exec', 'docker.container.exec'], roots: [] },
    })
    await api.post('/devices/node-osl-1/health')
  })

  /** What the model reads of a look-up. */
  async function looked(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const context = { core: corePort(api), incidentId: '', stepKey: 'x', ifMatch: null }
    const answer = await toolNamed(tool).run(toolNamed(tool).input.parse(args) as never, context)
    if (!answer.ok) throw new Error(JSON.stringify(answer))
    return toolNamed(tool).output.parse(answer.data) as Record<string, unknown>
  }

  test('a run that looks a node up reads what its device can be asked, and no device is asked for that', async () => {
    const heard = node.heard.length
    const { device } = await looked('get_node', { id: 'node-osl-1' })
    const { capabilities } = device as { capabilities: string[] }
    expect(device).toMatchObject({ id: 'node-osl-1' })
    expect(capabilities).toContain('fs.read')
    // Not in mode user, and what the device itself said that it lacks.
    for (const none of ['pkg.install', 'docker.container.list']) expect(capabilities).not.toContain(none)
    expect(node.heard.length).toBe(heard)
  })

  test('a list of nodes tells it for each, and null where there is no device', async () => {
    const { items } = (await looked('list_nodes_by_shard', { shard_id: 'db-osl-1' })) as {
      items: { id: string; device: { id: string } | null }[]
    }
    expect(items.map(({ id, device }) => [id, device?.id ?? null])).toEqual([
      ['node-osl-1', 'node-osl-1'],
      ['node-osl-2', null],
    ])
    expect(await looked('node_health', { node: 'host-osl-1' })).toMatchObject({
      device: { id: 'host-osl-1', mode: 'all', capabilities: ['shell.exec', 'docker.container.exec'] },
    })
  })

  test('of a VM without a device it is told what goes through that of its host', async () => {
    const inGuests = meshSpecs.filter((spec) => spec.throughHost).map((spec) => spec.name)
    expect(inGuests).toEqual(['exec', 'shell_eval'])
    const onHost = { id: 'host-osl-1', mode: 'all', capabilities: ['shell.exec'] }
    expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: onHost })
    expect(await looked('current_vm_host', { vm: 'vm-2' })).toMatchObject({ device: null })
    const { body } = await api.get('/vms')
    expect(
      (body.items as unknown as { id: string; device: unknown }[]).find(({ id }) => id === 'vm-1')?.device,
    ).toEqual(onHost)
  })

  test('a device that can be asked nothing offers nothing, and its host is not asked in its place', async () => {
    const settings = { mode: 'all', terms: { capabilities: [], roots: [] } }
    const vm = await enrolled(api, 'vm-1', settings)
    expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: { id: 'vm-1' } })
    await api.put('/devices/vm-1', { body: { ...settings, url: vm.url, enabled: false } })
    expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: null })
    await api.post('/devices/node-osl-1/revoke', { body: {} })
    expect(await looked('get_node', { id: 'node-osl-1' })).toMatchObject({ device: null })
  })
})

describe('specs', () => {
  const yes = (value: boolean | undefined): string => (value ? 'yes' : 'no')

  function askedAbout({ asked, command, capability }: MeshSpec): string {
    if (asked) return 'always'
    if (command) return 'unless its words prove it a read'
    return /^(?:fs|disk|git)\./.test(capability) ? 'for what is held for secret' : 'no'
  }

  const rowOf = (spec: MeshSpec): string =>
    `| \`${spec.name}\` | \`${spec.capability}\` | ${spec.effect} | ${askedAbout(spec)} | ${yes(!spec.privileged)} | ${yes(spec.rehearses)} | ${yes(spec.grantable)} |`

  test('the list of tools in docs/reference/mesh.md is the list in the code', () => {
    const text = readFileSync(new URL('../../../docs/reference/mesh.md', import.meta.url), 'utf8')
    const rows = text.split('\n').filter((line) => /^\| `\w+` \| `[a-z.]+` \| (?:read|write) \|/.test(line))
    expect(rows).toEqual(meshSpecs.map(rowOf))
  })

  test('an agent accepts exactly what the spec of a capability says', () => {
    const onDevice = new Map(capabilitiesOn({}).map(({ capability, args }) => [capability, args]))
    expect([...onDevice.keys()].sort()).toEqual(meshSpecs.map(({ capability }) => capability).sort())
    for (const { capability, args } of meshSpecs) expect(onDevice.get(capability)).toBe(args)
  })

  /** Every module that is loaded with this one, from the root of the repository. */
  function loadedWith(file: string, found = new Set<string>()): Set<string> {
    if (found.has(file)) return found
    found.add(file)
    const text = readFileSync(file, 'utf8').replace(/^import type .*$/gm, '')
    for (const [, path] of text.matchAll(/^(?:import|\} from|export \* from)[^']*'(\.[^']+)'/gm))
      if (path !== undefined) loadedWith(join(dirname(file), path), found)
    return found
  }

  test('an agent loads nothing of the control plane', () => {
    const root = fileURLToPath(new URL('../../..', import.meta.url))
    const loaded = [...loadedWith(join(root, 'mesh/agent/main.ts'))].map((file) => relative(root, file))
    expect(loaded).toContain('mesh/specs/fs.ts')
    const foreign = loaded.filter(
      (file) => !/^(?:domain|safety|mesh\/agent|mesh\/specs)\/|^mesh\/(?:paths|sign)\.ts$/.test(file),
    )
    expect(foreign).toEqual([])
  })

  describe('the control plane lets less through than a device accepts', () => {
    const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
      schema.safeParse(value).success
    const letters = (count: number) => 'a'.repeat(count)

    test('content of fs.write: 100,000 characters of 1,048,576', () => {
      const { args, input } = specOf('fs.write')
      const write = (count: number) => ({ path: '/srv/x', content: letters(count) })
      expect([100_000, 100_001].map((count) => accepts(input, write(count)))).toEqual([true, false])
      expect([1_048_576, 1_048_577].map((count) => accepts(args, write(count)))).toEqual([true, false])
    })

    test('a message of git.commit: 3 to 2,000 characters of 1 to 5,000', () => {
      const { args, input } = specOf('git.commit')
      const commit = (count: number) => ({ path: '/srv/x', message: letters(count) })
      expect([2, 3, 2_000, 2_001].map((count) => accepts(input, commit(count)))).toEqual([false, true, true, false])
      expect([0, 1, 5_000, 5_001].map((count) => accepts(args, commit(count)))).toEqual([false, true, true, false])
    })

    test('files of git.commit: 100 of 200, 200 characters of 4,000', () => {
      const { args, input } = specOf('git.commit')
      const commit = (files: number, length: number) => ({
        path: '/srv/x',
        message: 'a message',
        files: Array.from({ length: files }, () => letters(length)),
      })
      expect([commit(100, 200), commit(101, 1), commit(1, 201)].map((each) => accepts(input, each))).toEqual([
        true,
        false,
        false,
      ])
      expect([commit(200, 4_000), commit(201, 1), commit(1, 4_001)].map((each) => accepts(args, each))).toEqual([
        true,
        false,
        false,
      ])
    })
  })
})
