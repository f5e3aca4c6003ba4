import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import { PlatformError } from '../../../clients/platform.ts'
import { createProxmoxClient, type ProxmoxOptions } from '../../../clients/proxmox/client.ts'
import { resourceId } from '../../../tools/define.ts'
import { answerJson, startLocalServer } from '../../support/local-server.ts'
import {
  aGuest,
  memoryJournal,
  pathsSeen,
  type ScriptedProxmox,
  startScriptedProxmox,
  token,
} from './scripted-proxmox.ts'

let pve: ScriptedProxmox
const client = (more: Partial<ProxmoxOptions> = {}) =>
  createProxmoxClient({ urls: [pve.server.url], token, allow: 'loopback', journal: memoryJournal(), ...more })

beforeEach(async () => {
  pve = await startScriptedProxmox()
})
afterEach(async () => {
  await closeConnections()
  await pve.close()
})

async function refused(promise: Promise<unknown>): Promise<Error> {
  return await promise.then(
    () => Promise.reject(new Error('it answered')),
    (error: Error) => error,
  )
}
const vmsOf = async (platform = client()) => new Map((await platform.inventory()).vms.map((vm) => [vm.id, vm]))
const pins = async (vmid = 101, platform = client()) => (await vmsOf(platform)).get(`vm-${vmid}`)?.pinnedTo
const asHa = (vmid: number, change: object = {}) => {
  const sid = `${pve.guest(vmid).type === 'qemu' ? 'vm' : 'ct'}:${vmid}`
  pve.ha.resources.push({ sid, type: sid.slice(0, 2), state: 'started', ...change })
  pve.ha.services[sid] = { node: pve.guest(vmid).node, state: 'started', running: 1 }
}

test('nodes are hosts and guests are VMs, with sizes, region and racks', async () => {
  pve.guests.push(
    aGuest(200, 'pve3', { type: 'lxc', status: 'stopped', config: { rootfs: 'ceph:vm-200-disk-0,size=8G' } }),
  )
  pve.guests.push(aGuest(900, 'pve1', { template: 1, status: 'stopped' }))
  const inventory = await client({ racks: { pve1: 'r1', pve2: 'r1' } }).inventory()
  expect(inventory).toMatchObject({ regions: [{ id: 'oslo' }], shards: [], nodes: [], tenants: [], links: [] })
  expect(inventory.hosts).toEqual([
    { id: 'pve1', aliases: ['10.9.0.1'], region: 'oslo', rack: 'r1', state: 'live', ramMib: 65_536, cpuMc: 16_000 },
    { id: 'pve2', aliases: ['10.9.0.2'], region: 'oslo', rack: 'r1', state: 'live', ramMib: 65_536, cpuMc: 16_000 },
    { id: 'pve3', aliases: ['10.9.0.3'], region: 'oslo', rack: 'pve3', state: 'live', ramMib: 65_536, cpuMc: 16_000 },
  ])
  expect(inventory.vms.map(({ id, host, running }) => [id, host, running])).toEqual([
    ['vm-101', 'pve1', true],
    ['vm-102', 'pve2', true],
    ['vm-200', 'pve3', false],
  ])
  expect(inventory.vms[0]).toEqual({
    id: 'vm-101',
    name: 'guest-101',
    aliases: ['101'],
    host: 'pve1',
    running: true,
    ramMib: 2_048,
    cpuMc: 2_000,
    haGroup: null,
    affinityGroup: null,
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    tenant: null,
    startedAt: null,
    busy: null,
  })
  for (const { id } of [...inventory.hosts, ...inventory.vms]) expect(resourceId.safeParse(id).success).toBe(true)
})

test('a guest keeps its name while the statistics of its node hang', async () => {
  Object.assign(pve.guest(101), { name: 'shop-vm', config: { ...pve.guest(101).config, name: 'shop-vm' } })
  const platform = client()
  expect((await vmsOf(platform)).get('vm-101')).toMatchObject({ name: 'shop-vm', aliases: ['101'] })
  pve.nodes.pve1 = { online: true, noStatistics: true }
  expect((await vmsOf(platform)).get('vm-101')).toMatchObject({ name: 'shop-vm', aliases: ['101'] })
})

test('a single node is a region with its own name', async () => {
  pve.clusterName = null
  pve.nodes = { alone: { online: true } }
  pve.guests = [aGuest(101, 'alone')]
  expect((await client().inventory()).hosts).toMatchObject([{ id: 'alone', region: 'alone', state: 'live' }])
})

test('an offline node is dead, a node in maintenance is draining, and old statistics of a dead node are not used', async () => {
  Object.assign(pve.nodes, { pve1: { online: false }, pve2: { online: true, maintenance: true } })
  const { hosts, vms } = await client().inventory()
  expect(hosts.map(({ state }) => state)).toEqual(['dead', 'draining', 'live'])
  expect(vms).toMatchObject([
    { id: 'vm-101', running: false },
    { id: 'vm-102', running: true },
  ])
})

test('a node whose statistics hang gets no new guests, and its guests are read one by one', async () => {
  pve.nodes.pve1 = { online: true, noStatistics: true }
  const { hosts, vms } = await client().inventory()
  expect(hosts[0]).toMatchObject({ id: 'pve1', state: 'draining' })
  expect(vms[0]).toMatchObject({ id: 'vm-101', running: true, ramMib: 2_048 })
  pve.nodes.pve1.silent = true
  expect((await refused(client().inventory())).message).toContain('pve1 does not report whether vm-101 runs')
})

test.each([
  ['a disk on storage that is not shared', { scsi1: 'local-lvm:vm-101-disk-1,size=1G' }, ['pve1']],
  ['an unused disk on storage that is not shared', { unused0: 'local-lvm:vm-101-disk-2' }, ['pve1']],
  ['a disk on storage that is not everywhere', { scsi1: 'nfs:101/vm-101-disk-1.qcow2' }, ['pve1', 'pve2']],
  ['a disk on storage that nobody knows', { scsi1: 'gone:vm-101-disk-1' }, ['pve1']],
  ['a disk that is a device of the host', { scsi1: '/dev/disk/by-id/ata-x,size=1T' }, ['pve1']],
  ['the drive of the host', { ide2: 'cdrom,media=cdrom' }, ['pve1']],
  ['a passed-through device', { hostpci0: '0000:01:00.0' }, ['pve1']],
  ['a USB stick of the host', { usb0: 'host=046d:c52b' }, ['pve1']],
  ['a SPICE channel and a serial socket', { usb0: 'spice', serial0: 'socket' }, []],
  ['a lock', { lock: 'backup' }, ['pve1']],
])('%s decides where a virtual machine may go', async (_what, config, expected) => {
  const { lock, ...disks } = config as Record<string, string>
  Object.assign(pve.guest(101).config, disks)
  if (lock) pve.guest(101).lock = lock
  expect(await pins()).toEqual(expected)
})

test.each([
  ['a root disk on shared storage', { rootfs: 'ceph:vm-200-disk-0,size=8G' }, []],
  ['a folder of the host', { rootfs: 'ceph:x', mp0: '/srv/data,mp=/data' }, ['pve1']],
  ['a folder that is the same everywhere', { rootfs: 'ceph:x', mp0: '/mnt/nfs,mp=/data,shared=1' }, []],
  ['a device of the host', { rootfs: 'ceph:x', dev0: '/dev/ttyUSB0' }, ['pve1']],
])('%s decides where a container may go', async (_what, config, expected) => {
  pve.guests.push(aGuest(200, 'pve1', { type: 'lxc', config }))
  expect(await pins(200)).toEqual(expected)
})

test('strict node rules pin, affinity rules group, and rules that are off or only prefer do not count', async () => {
  for (const vmid of [103, 104, 105]) pve.guests.push(aGuest(vmid, 'pve3'))
  for (const vmid of [101, 102, 103, 104, 105]) asHa(vmid)
  const rule = (name: string, type: string, resources: string, more: object) => ({
    rule: name,
    type,
    resources,
    ...more,
  })
  pve.ha.rules = [
    rule('only-12', 'node-affinity', 'vm:101,vm:102', { nodes: 'pve1:2,pve2', strict: 1 }),
    rule('rather-3', 'node-affinity', 'vm:103', { nodes: 'pve3', strict: 0 }),
    rule('apart-a', 'resource-affinity', 'vm:101,vm:102', { affinity: 'negative' }),
    rule('apart-b', 'resource-affinity', 'vm:102,vm:103', { affinity: 'negative' }),
    rule('both', 'resource-affinity', 'vm:104,vm:105', { affinity: 'positive' }),
    rule('off', 'resource-affinity', 'vm:101,vm:104', { affinity: 'positive', disable: 1 }),
  ]
  const vms = await vmsOf()
  const of = (key: 'pinnedTo' | 'haGroup' | 'affinityGroup') =>
    [101, 102, 103, 104, 105].map((id) => vms.get(`vm-${id}`)?.[key])
  expect(of('pinnedTo')).toEqual([['pve1', 'pve2'], ['pve1', 'pve2'], [], [], []])
  expect(of('haGroup')).toEqual(['apart-a', 'apart-a', 'apart-a', null, null])
  expect(of('affinityGroup')).toEqual([null, null, null, 'both', 'both'])
})

test('a strict rule and a storage that is not on all nodes leave the nodes that both allow', async () => {
  asHa(101)
  pve.guest(101).config.scsi1 = 'nfs:101/vm-101-disk-1.qcow2'
  pve.ha.rules = [{ rule: 'a', type: 'node-affinity', resources: 'vm:101', nodes: 'pve2,pve3', strict: 1 }]
  expect(await pins()).toEqual(['pve2'])
  pve.ha.rules = [{ rule: 'a', type: 'node-affinity', resources: 'vm:101', nodes: 'pve3', strict: 1 }]
  expect(await pins()).toEqual(['pve1'])
})

test('Proxmox VE 8 has groups instead of rules, and restricted groups pin', async () => {
  pve.release = 8
  asHa(101, { group: 'narrow' })
  asHa(102, { group: 'wide' })
  pve.ha.groups = [
    { group: 'narrow', type: 'group', nodes: 'pve1:2,pve3:1', restricted: 1 },
    { group: 'wide', type: 'group', nodes: 'pve2' },
  ]
  expect(await pins(101)).toEqual(['pve1', 'pve3'])
  expect(await pins(102)).toEqual([])
})

test('tags give priorities', async () => {
  pve.guest(101).tags = 'production;nightshift-priority-50'
  pve.guest(102).tags = 'nightshift-priority-9999'
  const vms = await vmsOf()
  expect([vms.get('vm-101')?.priority, vms.get('vm-102')?.priority]).toEqual([50, 1_000])
})

test('from a dead node only HA-managed guests that should run may be recovered', async () => {
  for (const vmid of [103, 104]) pve.guests.push(aGuest(vmid, 'pve1'))
  asHa(103)
  asHa(104, { state: 'stopped' })
  const platform = client()
  await platform.inventory()
  pve.nodes.pve1 = { online: false, noStatistics: true }
  const vms = await vmsOf(platform)
  expect(vms.get('vm-101')?.pinnedTo).toEqual(['pve1'])
  expect(vms.get('vm-103')).toMatchObject({ pinnedTo: [], ramMib: 2_048, running: false })
  expect(vms.get('vm-104')?.pinnedTo).toEqual(['pve1'])
  // Whoever begins only now knows neither its size nor its disks.
  expect((await vmsOf()).get('vm-103')).toMatchObject({ pinnedTo: ['pve1'], ramMib: 1 })
})

test.each([
  ['nobody hears of it yet', 'unknown', 'started', false],
  ['it is being fenced', 'fence', 'fence', false],
  ['its guests are on their way elsewhere', 'unknown', 'recovery', true],
  ['it is fenced once more', 'fence', 'recovery', false],
  ['a guest of it was given up', 'unknown', 'error', false],
])('the HA manager reports a dead node as fenced only if it is: %s', async (_, manager, state, isFenced) => {
  pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'started' }]
  pve.ha.services = { 'vm:101': { node: 'pve1', state } }
  pve.nodes.pve1 = { online: false, manager }
  const { hosts, vms } = await client().inventory()
  const [host] = hosts
  expect(host).toMatchObject({ id: 'pve1', state: 'dead' })
  expect(host?.fenced).toEqual(isFenced ? { by: 'its HA manager', at: null } : undefined)
  const restarts = vms.filter(({ restartsElsewhere }) => restartsElsewhere).map(({ id }) => id)
  expect(restarts).toEqual(state === 'error' ? [] : ['vm-101'])
})

test('a guest that the HA manager has given up stays where it is', async () => {
  asHa(101)
  Object.assign(pve.ha.services['vm:101'] as object, { state: 'error' })
  expect(await pins()).toEqual(['pve1'])
})

test('after a recovery a guest runs when its new node reports it, whatever the statistics of the dead node say', async () => {
  asHa(101)
  Object.assign(pve.ha.services['vm:101'] as object, { running: undefined })
  await client().inventory()
  expect(pathsSeen(pve.server.seen)).toContain('GET /nodes/pve1/qemu/101/status/current')
})

test('configurations are read once a minute, a few at a time, and a silent node is asked once', async () => {
  pve.guests = Array.from({ length: 40 }, (_, index) => aGuest(100 + index, index % 2 === 0 ? 'pve1' : 'pve2'))
  const configs = () => pathsSeen(pve.server.seen).filter((path) => path.endsWith('/config'))
  const platform = client()
  await platform.inventory()
  await platform.inventory()
  expect(configs()).toHaveLength(40)
  expect(pathsSeen(pve.server.seen).length - 40).toBe(11)

  pve.server.seen.length = 0
  pve.nodes.pve1 = { online: true, silent: true }
  const vms = await vmsOf(client())
  expect(configs().filter((path) => path.includes('pve1')).length).toBeLessThanOrEqual(4)
  expect([vms.get('vm-100')?.pinnedTo, vms.get('vm-101')?.pinnedTo]).toEqual([['pve1'], []])
})

test('without quorum the inventory is refused, and can be requested again', async () => {
  pve.isQuorate = false
  Object.assign(pve.nodes, { pve2: { online: false }, pve3: { online: false } })
  expect(await refused(client().inventory())).toMatchObject({ status: 503, retryable: true })
})

test('a token that is refused, or has too few rights, is reported without its text', async () => {
  const secret = '99998888-3333-4444-5555-666677778888'
  const error = await refused(client({ token: `nightshift@pve!core=${secret}` }).inventory())
  expect(error).toBeInstanceOf(PlatformError)
  expect(error).toMatchObject({ status: 401, retryable: false })
  expect(error.message).toContain('invalid token value!')

  pve.privileges = ['VM.Audit', 'VM.Migrate']
  expect((await refused(client().inventory())).message).toContain('lacks Sys.Audit, Datastore.Audit on /')

  const echo = await startLocalServer()
  echo.play((response, seen, request) =>
    answerJson(500, { data: null, message: `you said ${seen.headers.authorization}` })(response, seen, request),
  )
  const said = await refused(client({ urls: [echo.url] }).inventory())
  expect(said.message).toContain('you said PVEAPIToken=nightshift@pve!core=[redacted]')
  expect(JSON.stringify(said) + said.stack).not.toContain(token.split('=')[1])
  await echo.close()
})

test('an answer of another shape is an error that names the place', async () => {
  pve.guests.push(aGuest(101, '../etc'))
  const error = await refused(client().inventory())
  expect(error).toMatchObject({ code: 'protocol', retryable: true })
  expect(error.message).toContain('GET /cluster/resources')
})

test('if the node that is asked is gone, the next node is asked', async () => {
  const dead = await startLocalServer()
  await dead.close()
  const platform = client({ urls: [dead.url, pve.server.url] })
  expect((await platform.inventory()).hosts).toHaveLength(3)
  expect((await platform.inventory()).hosts).toHaveLength(3)
})
