import { expect, test } from '@jest/globals'
import { anotherClient, client, followed, journal, migrated, move, pve, useCluster } from './scripted-proxmox.ts'

useCluster()

test('if the answer is lost after the task began, the task is found and no second task begins', async () => {
  pve.startTask('qmigrate', 'pve1', 101).end = 'OK'
  pve.answer = 'lost_after'
  const answer = await migrated()
  expect(answer.status).toBe('running')
  expect(answer.result.task).toBe(pve.tasks.at(-1)?.upid)
  expect(await followed(answer)).toMatchObject({ status: 'done' })
  expect(pve.begun).toHaveLength(1)
})

test('a refusal of a repeat that we did not send does not count as the end of the first request', async () => {
  pve.answer = { status: 500, message: 'VM is locked (migrate)', hasBegun: true }
  const answer = await migrated()
  expect(answer.status).toBe('running')
  expect(await followed(answer)).toMatchObject({ status: 'done' })
  expect(pve.begun).toHaveLength(1)
})

test('a request that was lost before its task began is reported once it can no longer arrive', async () => {
  pve.answer = 'lost_before'
  // The first looks come too early to tell, whatever the machine takes for them.
  let looks = 0
  Object.defineProperty(journal, 'ageSeconds', { configurable: true, get: () => (looks++ < 2 ? 0 : 61) })
  const { status, detail } = await migrated()
  expect([status, pve.begun]).toEqual(['failed', []])
  expect(detail).toBe('the task never began: pve1 has no task of it, and vm-101 is not on pve2')
})

const row = {
  action: 'migrate' as const,
  vmId: 'vm-101',
  node: 'pve1',
  target: 'pve2',
  tasksBefore: [] as string[],
}

test('after the process died between request and task, the task that was not there before is taken as its own', async () => {
  const before = pve.startTask('qmigrate', 'pve1', 101)
  before.end = 'OK'
  await journal.begin({ ...row, key: 'k2', tasksBefore: [before.upid] })
  await expect(client.effect('k2')).rejects.toMatchObject({ status: 503, retryable: true })
  // Neither is it one of another person's, of another kind, or of another guest.
  pve.startTask('qmigrate', 'pve1', 101, 'root@pam').end = 'OK'
  pve.startTask('qmsnapshot', 'pve1', 101).end = 'OK'
  pve.startTask('qmigrate', 'pve1', 102).end = 'OK'
  await expect(anotherClient().effect('k2')).rejects.toMatchObject({ status: 503 })
  const own = pve.startTask('qmigrate', 'pve1', 101)
  expect(await anotherClient().effect('k2')).toMatchObject({ status: 'running', result: { task: own.upid } })
  own.end = 'OK'
  expect(await anotherClient().migrateVm('vm-101', move, 'k2')).toMatchObject({ status: 'done' })
  expect(pve.begun).toEqual([])
})

test('a task whose node is silent is neither running nor failed until the guest shows the outcome', async () => {
  pve.course.looks = 99
  const { key } = await migrated()
  pve.nodes.pve1 = { online: true, silent: true }
  await expect(client.effect(key)).rejects.toMatchObject({ status: 503 })
  pve.nodes.pve1 = { online: false }
  await expect(client.effect(key)).rejects.toMatchObject({ status: 503 })
  pve.guest(101).node = 'pve2'
  expect(await client.effect(key)).toMatchObject({ status: 'done' })
})

test('without quorum the place of a guest is unknown', async () => {
  pve.course.looks = 99
  const { key } = await migrated()
  pve.isQuorate = false
  pve.nodes.pve1 = { online: false }
  pve.guest(101).node = 'pve2'
  await expect(client.effect(key)).rejects.toMatchObject({
    status: 503,
    detail: expect.stringContaining('no quorum'),
  })
})

test('a task that its node forgot is judged by the place of the guest', async () => {
  pve.course.looks = 99
  const { key } = await migrated()
  for (const task of pve.tasks) task.isGone = true
  expect(await client.effect(key)).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('the task is gone from pve1'),
  })
  expect(await client.effect('never')).toBeNull()
})
