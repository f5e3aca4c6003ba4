import { expect, test } from '@jest/globals'
import {
  beginPlatformEffect,
  endPlatformEffect,
  notePlatformTask,
  platformEffectByKey,
} from '../../../db/writes/platform-effects.ts'
import { moveClock, useDatabase } from '../../support/database.ts'

const database = useDatabase()
const entry = {
  key: 'inc_1.1:3:tool_started:0:1',
  action: 'migrate' as const,
  vmId: 'vm-101',
  node: 'pve1',
  target: 'pve2',
  tasksBefore: ['UPID:a', 'UPID:b'],
}

test('if two processes want to send a write one may, and both find the same row', async () => {
  const { db } = database
  expect(await platformEffectByKey(db, entry.key)).toBeNull()
  const other = { ...entry, target: 'pve3' }
  const begun = await Promise.all([beginPlatformEffect(db, entry), beginPlatformEffect(db, other)])
  expect(begun.toSorted()).toEqual([false, true])
  const row = await platformEffectByKey(db, entry.key)
  expect(row).toMatchObject({ vmId: 'vm-101', target: begun[0] ? 'pve2' : 'pve3', task: null, ending: null })
  expect(row?.tasksBefore).toEqual(['UPID:a', 'UPID:b'])
})

test('the task is recorded, the first ending stays, and its secrets are removed', async () => {
  const { db, owner } = database
  const key = 'another'
  await beginPlatformEffect(db, { ...entry, key })
  await notePlatformTask(db, key, 'UPID:c')
  await moveClock(owner, '90 seconds')
  expect(await platformEffectByKey(db, key)).toMatchObject({ task: 'UPID:c', ending: null })
  expect((await platformEffectByKey(db, key))?.ageSeconds).toBeGreaterThan(85)
  await endPlatformEffect(db, key, { status: 'failed', detail: 'password=hunter2hunter2 was refused' })
  await endPlatformEffect(db, key, { status: 'done', detail: 'late' })
  const ending = (await platformEffectByKey(db, key))?.ending
  expect(ending?.status).toBe('failed')
  expect(ending?.detail).not.toContain('hunter2')
})
