import { beforeEach, expect, test } from '@jest/globals'
import { anotherClient, client, followed, journal, pve, useCluster } from './scripted-proxmox.ts'

useCluster()
// Half a minute has passed whenever somebody looks, so that a run of three seconds is a new one.
beforeEach(() => {
  journal.ageSeconds = 30
  pve.guest(101).uptime = 86_400
})

const stopped = () => client.powerVm('vm-101', 'stop', 'pve1', 'k1')
const restarted = () => client.powerVm('vm-101', 'restart', 'pve1', 'k1')

test('a stop is a shutdown that ends hard after a minute, and its task is followed', async () => {
  const answer = await stopped()
  expect(answer).toMatchObject({ status: 'running', result: { task: expect.stringContaining(':qmshutdown:101:') } })
  expect(await followed(answer)).toMatchObject({ status: 'done', detail: 'vm-101 was stopped on pve1' })
  expect(pve.begun).toEqual([
    { path: '/api2/json/nodes/pve1/qemu/101/status/shutdown', form: { timeout: '60', forceStop: '1' } },
  ])
})

test('a container is stopped by its own task', async () => {
  pve.guest(101).type = 'lxc'
  const answer = await followed(await stopped())
  expect(answer).toMatchObject({ status: 'done', result: { task: expect.stringContaining(':vzshutdown:101:') } })
})

test('a restart is done only when the guest runs with a new start', async () => {
  // The guest comes up after its task has ended.
  pve.onPower = (_, guest) => Object.assign(guest, { status: 'stopped', uptime: 0 })
  const waiting = await followed(await restarted())
  expect(waiting).toMatchObject({ status: 'running', detail: expect.stringContaining('no new start yet') })
  Object.assign(pve.guest(101), { status: 'running', uptime: 2 })
  expect(await client.effect('k1')).toMatchObject({
    status: 'done',
    detail: 'vm-101 was restarted on pve1',
    result: { newStart: true },
  })
  expect(pve.begun).toMatchObject([{ path: '/api2/json/nodes/pve1/qemu/101/status/reboot', form: { timeout: '60' } }])
})

test('a guest that still has its earlier boot was not restarted, whatever its task says', async () => {
  pve.onPower = () => {}
  expect(await followed(await restarted())).toMatchObject({ status: 'running' })
  journal.ageSeconds = 181
  expect(await client.effect('k1')).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('no new start'),
  })
})

test('a guest that does not shut down in time fails with the words of its task', async () => {
  pve.course = { looks: 1, end: 'VM quit/powerdown failed - got timeout', log: ['TASK ERROR: got timeout'] }
  expect(await followed(await restarted())).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('got timeout'),
  })
})

test('a stop is done only when the HA manager keeps the guest stopped', async () => {
  pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'started' }]
  pve.ha.services = { 'vm:101': { node: 'pve1', state: 'started', running: 1 } }
  const waiting = await followed(await stopped())
  expect(waiting).toMatchObject({ status: 'running', detail: 'with the HA manager' })
  Object.assign(pve.guest(101), { status: 'stopped', uptime: 0 })
  // It is down, and the manager would start it again.
  expect(await client.effect('k1')).toMatchObject({ status: 'running' })
  pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'stopped' }]
  expect(await client.effect('k1')).toMatchObject({
    status: 'done',
    detail: expect.stringContaining('by the HA manager'),
  })
})

test.each(['lost_after', 'held'] as const)(
  'an answer that was %s is found by its task, and not sent again',
  async (how) => {
    pve.answer = how
    pve.course = { looks: 1, end: 'OK' }
    // Long enough for its other requests on a busy machine.
    const short = how === 'held' ? anotherClient(3_000) : client
    const answer = await short.powerVm('vm-101', 'restart', 'pve1', 'k1')
    expect((await followed(answer)).status).toBe('done')
    expect(pve.begun).toHaveLength(1)
  },
)

test('a request that never arrived was never begun, and nothing is assumed before a minute', async () => {
  pve.answer = 'lost_before'
  journal.ageSeconds = 61
  expect(await stopped()).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('vm-101 is not stopped'),
  })
})

test('a restart or a start cannot reuse the key of a stop', async () => {
  await stopped()
  await expect(restarted()).rejects.toMatchObject({ status: 422 })
  await expect(client.startVm('vm-101', 'pve1', 'k1')).rejects.toMatchObject({ status: 422 })
})

test('an order that Proxmox VE would refuse, or do elsewhere, is refused, and nothing is sent', async () => {
  const no = async (key: string, action: 'stop' | 'restart', host = 'pve1') => {
    const answer = await client.powerVm('vm-101', action, host, key)
    expect(answer.status).toBe('failed')
    return answer.detail
  }
  expect(await no('a', 'stop', 'pve2')).toBe('vm-101 is on pve1, not on pve2')
  pve.guest(101).lock = 'migrate'
  expect(await no('b', 'restart')).toContain('the guest is locked (migrate)')
  expect((await client.inventory()).vms[0]).toMatchObject({ id: 'vm-101', busy: 'locked: migrate' })
  delete pve.guest(101).lock
  pve.guest(101).status = 'stopped'
  expect(await no('c', 'restart')).toContain('does not run')
  expect(await client.powerVm('vm-101', 'stop', 'pve1', 'd')).toMatchObject({ status: 'done' })
  pve.nodes.pve1!.online = false
  expect(await no('e', 'stop')).toBe('pve1 is offline')
  expect(pve.begun).toEqual([])
})

test('a token without VM.PowerMgmt gets the words of Proxmox VE', async () => {
  pve.answer = { status: 403, message: 'Permission check failed (/vms/101, VM.PowerMgmt)' }
  expect(await stopped()).toMatchObject({ status: 'failed', detail: expect.stringContaining('VM.PowerMgmt') })
})
