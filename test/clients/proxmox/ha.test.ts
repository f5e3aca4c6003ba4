import { beforeEach, expect, test } from '@jest/globals'
import type { EffectAnswer } from '../../../domain/platform.ts'
import {
  aGuest,
  client,
  journal,
  migrated,
  move,
  pathsSeen,
  pve,
  type ScriptedProxmox,
  useCluster,
} from './scripted-proxmox.ts'

useCluster()

beforeEach(() => {
  pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'started' }]
  service({ node: 'pve1', state: 'started', running: 1 })
  // The task is over when the order is given; what becomes of it is in the manager's hands.
  pve.course = { looks: 1, end: 'OK' }
  pve.onTask = () => {}
})

function service(to: ScriptedProxmox['ha']['services'][string]) {
  pve.ha.services['vm:101'] = to
}
const now = async (key = 'k1') => (await client.effect(key)) as EffectAnswer

test('an HA-managed guest is moved by the manager with the call that needs only VM.Migrate, and followed there', async () => {
  expect((await migrated()).status).toBe('running')
  expect(pve.begun.map(({ path }) => path)).toEqual(['/api2/json/nodes/pve1/qemu/101/migrate'])
  expect(pve.tasks.at(-1)?.upid).toContain(':hamigrate:101:')
  service({ node: 'pve1', state: 'started', running: 1, cmd: ['migrate', 'pve2'] })
  journal.ageSeconds = 400
  expect(await now()).toMatchObject({ status: 'running' })
  service({ node: 'pve1', state: 'migrate', target: 'pve2' })
  expect(await now()).toMatchObject({ status: 'running', detail: 'with the HA manager (migrate)' })
  pve.guest(101).node = 'pve2'
  service({ node: 'pve2', state: 'started' })
  expect(await now()).toMatchObject({ status: 'running' })
  service({ node: 'pve2', state: 'started', running: 1 })
  expect(await now()).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2, by the HA manager' })
  expect(pathsSeen(pve.server.seen).filter((path) => path.startsWith('POST'))).toHaveLength(1)
})

test('a failed task of the manager is the reason, with its log', async () => {
  await migrated()
  const work = pve.startTask('qmigrate', 'pve1', 101, 'root@pam')
  expect(await now()).toMatchObject({ status: 'running' })
  Object.assign(work, { end: 'migration aborted', log: ['ERROR: no route to pve2'] })
  expect(await now()).toMatchObject({
    status: 'failed',
    detail: 'Proxmox VE: migration aborted | ERROR: no route to pve2',
  })
})

test('an order that the manager drops is a failure after three minutes', async () => {
  await migrated()
  journal.ageSeconds = 170
  expect(await now()).toMatchObject({ status: 'running' })
  journal.ageSeconds = 190
  expect(await now()).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('did not accept the request'),
  })
})

test('it is reported if the manager used another target or gave up', async () => {
  await migrated()
  pve.guest(101).node = 'pve3'
  service({ node: 'pve3', state: 'started', running: 1 })
  expect(await now()).toMatchObject({
    status: 'failed',
    detail: 'the HA manager brought vm-101 to pve3, not to pve2',
  })
  pve.guest(101).node = 'pve1'
  service({ node: 'pve1', state: 'error' })
  const refused = await client.migrateVm('vm-101', move, 'k2')
  expect(refused).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('ha-manager set vm:101 --state disabled'),
  })
})

test('a guest that the manager moves elsewhere is left alone, and a guest that it moves to the target is waited for', async () => {
  service({ node: 'pve1', state: 'migrate', target: 'pve3' })
  expect(await migrated()).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('moving the guest to pve3 already'),
  })
  service({ node: 'pve1', state: 'started', running: 1, cmd: ['migrate', 'pve2'] })
  expect(await migrated()).toMatchObject({ status: 'running' })
  pve.guest(101).node = 'pve2'
  service({ node: 'pve2', state: 'started', running: 1 })
  expect(await now()).toMatchObject({ status: 'done', detail: 'vm-101 runs on pve2, by the HA manager' })
  expect(pve.begun).toEqual([])
})

test('a guest that the manager moved and returned has not reached its target', async () => {
  await migrated()
  pve.startTask('qmigrate', 'pve1', 101, 'root@pam').end = 'OK'
  expect(await now()).toMatchObject({ status: 'running' })
  journal.ageSeconds = 190
  expect(await now()).toMatchObject({ status: 'failed', detail: expect.stringContaining('brought it back') })
})

test('a stopped guest on a running node is started there, and only there', async () => {
  Object.assign(pve.guest(102), { status: 'stopped' })
  expect(await client.startVm('vm-102', 'pve1', 'k1')).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('pve2, which is online'),
  })
  pve.onTask = (_task, guest) => Object.assign(guest, { status: 'running' })
  expect(await client.startVm('vm-102', 'pve2', 'k2')).toMatchObject({
    status: 'done',
    detail: 'vm-102 was started on pve2',
  })
  expect(pve.begun).toEqual([{ path: '/api2/json/nodes/pve2/qemu/102/status/start', form: {} }])
  expect(await client.startVm('vm-102', 'pve2', 'k3')).toMatchObject({
    status: 'done',
    detail: 'vm-102 runs on pve2 already',
  })
})

test('a start through the manager is done when the manager reports the guest as running', async () => {
  pve.guest(101).status = 'stopped'
  service({ node: 'pve1', state: 'stopped' })
  expect(await client.startVm('vm-101', 'pve1', 'k1')).toMatchObject({ status: 'running' })
  service({ node: 'pve1', state: 'started' })
  expect(await now()).toMatchObject({ status: 'running' })
  service({ node: 'pve1', state: 'started', running: 1 })
  expect(await now()).toMatchObject({ status: 'done', detail: 'vm-101 was started on pve1, by the HA manager' })
})

test('on a dead node a guest that the manager does not manage gets no call, and the remedy is reported', async () => {
  pve.guests.push(aGuest(200, 'pve1', { type: 'lxc', config: { rootfs: 'ceph:vm-200-disk-0' } }))
  pve.nodes.pve1 = { online: false }
  const { status, detail } = await client.startVm('vm-200', 'pve2', 'k1')
  expect([status, pve.begun]).toEqual(['failed', []])
  expect(detail).toContain('mv /etc/pve/nodes/pve1/lxc/200.conf /etc/pve/nodes/pve2/lxc/200.conf')
})

test('on a dead node the manager recovers its guests itself, which is waited for without a call', async () => {
  pve.nodes.pve1 = { online: false }
  service({ node: 'pve1', state: 'fence' })
  expect(await client.startVm('vm-101', 'pve2', 'k1')).toMatchObject({
    status: 'running',
    detail: 'the HA manager is working on the guest (fence)',
  })
  // Statistics of the dead node still say that it runs: that is no recovery.
  pve.guest(101).node = 'pve2'
  service({ node: 'pve2', state: 'started' })
  expect(await now()).toMatchObject({ status: 'running' })
  service({ node: 'pve2', state: 'started', running: 1 })
  expect(await now()).toMatchObject({
    status: 'done',
    detail: 'vm-101 runs on pve2, by the HA manager',
  })
  expect(pve.begun).toEqual([])
})

test('a recovery to another node than planned is reported, and so is that the guest runs', async () => {
  pve.nodes.pve1 = { online: false }
  await client.startVm('vm-101', 'pve2', 'k1')
  pve.guest(101).node = 'pve3'
  service({ node: 'pve3', state: 'started', running: 1 })
  expect(await now()).toMatchObject({
    status: 'failed',
    detail: 'the HA manager brought vm-101 to pve3, not to pve2: it runs there',
  })
})

test('a recovery that does not happen is abandoned after ten minutes', async () => {
  pve.nodes.pve1 = { online: false }
  service({ node: 'pve1', state: 'recovery' })
  await client.startVm('vm-101', 'pve2', 'k1')
  journal.ageSeconds = 601
  expect(await now()).toMatchObject({
    status: 'failed',
    detail: 'the HA manager has not brought the guest there in 10 minutes (recovery)',
  })
})

test('a guest that the manager ignores counts as not HA-managed', async () => {
  pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'ignored' }]
  pve.onTask = (_task, guest, target) => Object.assign(guest, { node: target })
  pve.nodes.pve1 = { online: false }
  expect(await client.startVm('vm-101', 'pve2', 'k1')).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('not HA-managed'),
  })
})
