import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { findAlertResources } from '../../../db/inventory/resources.ts'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { importSource } from '../../../domain/declared-resources.ts'
import { resourceKey } from '../../../domain/registry.ts'
import {
  aGuest,
  memoryJournal,
  type ScriptedProxmox,
  startScriptedProxmox,
  token,
} from '../../clients/proxmox/scripted-proxmox.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()
let pve: ScriptedProxmox

beforeEach(async () => {
  pve = await startScriptedProxmox()
  pve.guests = [
    aGuest(101, 'pve1', { name: 'shop-vm', config: { scsi0: 'ceph:x', ipconfig0: 'ip=10.9.1.101/24,gw=10.9.1.1' } }),
    aGuest(102, 'pve2', { name: 'build-vm' }),
    aGuest(120, 'pve1', {
      type: 'lxc',
      name: 'dns-ct',
      config: { rootfs: 'ceph:y', net0: 'name=eth0,bridge=vmbr0,ip=10.9.1.120/24,ip6=2001:db8::120/64,type=veth' },
    }),
  ]
})
afterEach(async () => {
  await closeConnections()
  await pve.close()
})

/** From what a cluster answers to what an alert is about, with nothing between them made up. */
async function sync(): Promise<void> {
  const client = createProxmoxClient({ urls: [pve.server.url], token, allow: 'loopback', journal: memoryJournal() })
  await syncInventory(database.db, await client.inventory())
}

async function keyFor(labels: Record<string, string>): Promise<string | null> {
  const [found] = await findAlertResources(database.db, [labels], [])
  return found?.resource ? resourceKey(found.resource) : null
}

test.each([
  ['by its number', { job: 'pve', instance: '10.9.0.1', id: 'qemu/101' }, 'vm:vm-101'],
  ['by its number alone', { vm: '101' }, 'vm:vm-101'],
  ['by its name', { job: 'node', instance: 'shop-vm:9100' }, 'vm:vm-101'],
  ['by its name in a label of its kind', { vm_name: 'build-vm' }, 'vm:vm-102'],
  ['by its name on its host', { job: 'libvirt', instance: 'pve1:9177', domain: 'shop-vm' }, 'vm:vm-101'],
  ['by its address', { job: 'node', instance: '10.9.1.101:9100' }, 'vm:vm-101'],
  ['a container, by its number', { job: 'pve', instance: '10.9.0.1', id: 'lxc/120' }, 'vm:vm-120'],
  ['a container, by its address', { job: 'node', instance: '[2001:db8::120]:9100' }, 'vm:vm-120'],
  ['a host', { job: 'pve', instance: '10.9.0.1', id: 'node/pve2' }, 'host:pve2'],
  ['a host, by its address', { job: 'node', instance: '10.9.0.3:9100' }, 'host:pve3'],
  ['a guest that is not there', { job: 'pve', instance: '10.9.0.1', id: 'qemu/999' }, null],
])('an alert finds a guest of Proxmox VE %s', async (_how, labels, expected) => {
  await sync()
  expect(await keyFor(labels as Record<string, string>)).toBe(expected)
})

test('a node that is enrolled inside a guest with its name is the subject of an exporter in the guest', async () => {
  await sync()
  await database.db
    .transaction()
    .execute((trx) =>
      declareResources(trx, importSource, { resources: [{ kind: 'node', id: 'shop-vm' }], relations: [] }),
    )
  expect(await keyFor({ job: 'node', instance: 'shop-vm:9100' })).toBe('node:shop-vm')
  expect(await keyFor({ job: 'pve', instance: '10.9.0.1', id: 'qemu/101' })).toBe('vm:vm-101')
})
