import { expect, test } from '@jest/globals'
import { aGuest, client, followed, migrated, move, pathsSeen, pve, useCluster } from './scripted-proxmox.ts'

useCluster()

test('a migration is sent once, and followed from its task to the running guest', async () => {
  const answer = await migrated()
  expect(answer).toMatchObject({ key: 'k1', status: 'running', result: { vm: 'vm-101', from: 'pve1', to: 'pve2' } })
  const changed = ['vm-101 runs on pve2']
  expect(await followed(answer)).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2', changed })
  expect(pve.begun).toEqual([{ path: '/api2/json/nodes/pve1/qemu/101/migrate', form: { target: 'pve2', online: '1' } }])
  expect(pve.guest(101).node).toBe('pve2')

  const seen = pve.server.seen.length
  expect(await migrated()).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2' })
  expect(pve.server.seen.length).toBe(seen)
  await expect(client.migrateVm('vm-101', { from: 'pve1', to: 'pve3' }, 'k1')).rejects.toMatchObject({ status: 422 })
})

test('a container is restarted during its move, because it cannot migrate live', async () => {
  pve.guests.push(aGuest(200, 'pve1', { type: 'lxc', config: { rootfs: 'ceph:vm-200-disk-0' } }))
  for (const release of [8, 9] as const) {
    Object.assign(pve, { release })
    pve.guest(200).node = 'pve1'
    const answer = await client.migrateVm('vm-200', move, `k${release}`)
    expect(await followed(answer)).toMatchObject({ status: 'done' })
  }
  expect(pve.begun.at(-1)).toEqual({
    path: '/api2/json/nodes/pve1/lxc/200/migrate',
    form: { target: 'pve2', restart: '1' },
  })
})

test('warnings of a task are reported, and do not make it fail', async () => {
  pve.course = { looks: 1, end: 'WARNINGS: 2' }
  expect(await followed(await migrated())).toMatchObject({
    status: 'done',
    detail: expect.stringContaining('WARNINGS: 2'),
  })
})

test('a failed task is reported with the end of its log', async () => {
  const log = [
    'starting migration of VM 101',
    'x'.repeat(5_000),
    "ERROR: Problem found while scanning volumes - 'oops'",
  ]
  pve.course = { looks: 2, end: 'migration aborted', log }
  const { status, detail } = await followed(await migrated())
  expect([status, detail.length < 1_000]).toEqual(['failed', true])
  expect(detail).toMatch(/^Proxmox VE: migration aborted \| starting migration .* \| ERROR: Problem found/)
  expect(await client.effect('k1')).toMatchObject({ status: 'failed', detail })
})

test('a task that ends badly after the guest moved did its work, and both facts are reported', async () => {
  pve.course = { looks: 1, end: 'migration problems' }
  pve.onTask = (_task, guest, target) => Object.assign(guest, { node: target })
  const answer = await followed(await migrated())
  expect(answer).toMatchObject({
    status: 'done',
    detail: 'vm-101 runs on pve2, although its task ended with: migration problems',
  })
})

test.each<[string, () => void, string]>([
  [
    'a lock',
    () => {
      pve.guest(101).lock = 'backup'
    },
    'the guest is locked (backup)',
  ],
  [
    'a task of somebody',
    () => void pve.startTask('vzdump', 'pve1', 101, 'root@pam'),
    'a task of root@pam is working on the guest (vzdump)',
  ],
  [
    'a local disk that came since the plan',
    () => {
      pve.guest(101).config.scsi1 = 'local-lvm:vm-101-disk-9'
    },
    'local-lvm, which is not shared',
  ],
  [
    'a local disk that only Proxmox VE sees',
    () => {
      pve.precheck = { local_disks: [{ volid: 'local-lvm:vm-101-state', size: 1 }] }
    },
    'local disks: local-lvm:vm-101-state',
  ],
  [
    'a device of the host',
    () => {
      pve.precheck = { local_resources: ['hostpci0'] }
    },
    'local resources: hostpci0',
  ],
  [
    'a storage that is missing there',
    () => {
      pve.precheck = { not_allowed_nodes: { pve2: { unavailable_storages: ['nfs'] } } }
    },
    'storages missing there: nfs',
  ],
  [
    'an HA rule',
    () => {
      const inTheWay = [{ sid: 'vm:102', cause: 'resource-affinity' }]
      pve.precheck = { not_allowed_nodes: { pve2: { 'blocking-ha-resources': inTheWay } } }
    },
    'HA resources in the way: vm:102',
  ],
  [
    'a node that Proxmox VE leaves out',
    () => {
      pve.precheck = { allowed_nodes: ['pve3'] }
    },
    'does not allow this node',
  ],
  [
    'a target that is offline',
    () => {
      pve.nodes.pve2 = { online: false }
    },
    'pve2 is offline',
  ],
  [
    'a target in maintenance',
    () => {
      pve.nodes.pve2 = { online: true, maintenance: true }
    },
    'pve2 is in maintenance',
  ],
  [
    'a source that is offline',
    () => {
      pve.nodes.pve1 = { online: false }
    },
    'pve1 is offline',
  ],
  [
    'a guest that moved',
    () => {
      pve.guest(101).node = 'pve3'
    },
    'vm-101 is on pve3, not on pve1',
  ],
  [
    'a guest that was stopped',
    () => {
      pve.guest(101).status = 'stopped'
    },
    'does not run',
  ],
  [
    'a lost quorum',
    () => {
      pve.isQuorate = false
    },
    'no quorum',
  ],
  [
    'a node that does not answer',
    () => {
      pve.nodes.pve1 = { online: true, silent: true }
    },
    'nothing was sent',
  ],
])('%s is refused before anything is sent', async (_what, arrange, reason) => {
  arrange()
  const { status, detail } = await migrated()
  expect([status, pve.begun]).toEqual(['failed', []])
  expect(detail).toContain(reason)
  expect(await client.effect('k1')).toBeNull()
})

test.each(['vm-101/../102', '101', 'vm-7', 'vm-', 'ct-101', 'vm-1e3', '../../access'])(
  '%s is no guest, and nothing is sent',
  async (id) => {
    expect(await client.migrateVm(id, move, 'k1')).toMatchObject({ status: 'failed' })
    expect(pathsSeen(pve.server.seen).filter((path) => !path.startsWith('GET /cluster/'))).toEqual([])
  },
)

test('the name of a host is sent as data, whatever it is', async () => {
  expect(await client.migrateVm('vm-101', { from: 'pve1', to: 'pve2&online=0' }, 'k1')).toMatchObject({
    status: 'failed',
  })
  expect(pve.begun).toEqual([])
})

test('a guest that already runs there needs nothing, and the answer says that nothing changed', async () => {
  pve.guest(101).node = 'pve2'
  expect(await migrated()).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2 already', changed: [] })
  expect(pve.begun).toEqual([])
})

test.each([
  [500, 'VM is locked (snapshot)'],
  [403, 'Permission check failed (/vms/101, VM.Migrate)'],
])(
  'a refusal with %i is a known failure, in its own words, also of a release that has them only in the status line',
  async (status, message) => {
    pve.release = 8
    pve.answer = { status, message }
    expect(await migrated()).toMatchObject({ status: 'failed', detail: `Proxmox VE: ${message}` })
    expect(await client.effect('k1')).toMatchObject({ status: 'failed' })
  },
)

test('Proxmox VE has no shards', async () => {
  await expect(client.converge('db-osl-1', 'k1')).rejects.toMatchObject({
    retryable: false,
    detail: 'Proxmox VE has no shards',
  })
})
