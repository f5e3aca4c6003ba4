import { beforeAll, expect, test } from '@jest/globals'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { meshSpecs } from '../../../mesh/registry.ts'
import { corePort } from '../../support/api.ts'
import { enrolled, stopDevicesAtEnd, toolNamed, useMeshApi } from '../../support/mesh-api.ts'
import type { ScriptedDevice } from '../../support/scripted-device.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

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

test('a run that reads a node sees the capabilities of its device, without a request to the device', async () => {
  const heard = node.heard.length
  const { device } = await looked('get_node', { id: 'node-osl-1' })
  const { capabilities } = device as { capabilities: string[] }
  expect(device).toMatchObject({ id: 'node-osl-1' })
  expect(capabilities).toContain('fs.read')
  // Not in mode user, and what the device itself said that it lacks.
  for (const none of ['pkg.install', 'docker.container.list']) expect(capabilities).not.toContain(none)
  expect(node.heard.length).toBe(heard)
})

test('a list of nodes has them for each, and null without a device', async () => {
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

test("a VM without a device has the capabilities of its host's device", async () => {
  const inGuests = meshSpecs.filter((spec) => spec.throughHost).map((spec) => spec.name)
  expect(inGuests).toEqual(['exec', 'shell_eval'])
  const onHost = { id: 'host-osl-1', mode: 'all', capabilities: ['shell.exec'] }
  expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: onHost })
  expect(await looked('current_vm_host', { vm: 'vm-2' })).toMatchObject({ device: null })
  const { body } = await api.get('/vms')
  expect((body.items as unknown as { id: string; device: unknown }[]).find(({ id }) => id === 'vm-1')?.device).toEqual(
    onHost,
  )
})

test('a device without capabilities offers nothing, and its host is not asked in its place', async () => {
  const settings = { mode: 'all', terms: { capabilities: [], roots: [] } }
  const vm = await enrolled(api, 'vm-1', settings)
  expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: { id: 'vm-1' } })
  await api.put('/devices/vm-1', { body: { ...settings, url: vm.url, enabled: false } })
  expect(await looked('current_vm_host', { vm: 'vm-1' })).toMatchObject({ device: null })
  await api.post('/devices/node-osl-1/revoke', { body: {} })
  expect(await looked('get_node', { id: 'node-osl-1' })).toMatchObject({ device: null })
})
