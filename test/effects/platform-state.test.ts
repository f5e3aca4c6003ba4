import { expect, test } from '@jest/globals'
import { vmById } from '../../db/inventory/platform-rows.ts'
import { systemScope } from '../../db/scope.ts'
import { useApi } from '../support/api.ts'
import { eventually } from '../support/directory.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))

test('a read after a write sees it, also when another write arrives during the read', async () => {
  const { state, db } = api.api.deps
  const answerNow: (() => void)[] = []
  const { inventory } = platform
  platform.inventory = async () => {
    const told = await inventory()
    await new Promise<void>((resolve) => answerNow.push(resolve))
    return told
  }
  const afterWrite = async () => {
    state.forget()
    await state.requireCurrent()
    return await vmById(systemScope(db), 'vm-2')
  }
  await platform.startVm('vm-2', 'host-osl-3', 'first')
  const first = afterWrite()
  await platform.startVm('vm-3', 'host-osl-1', 'second')
  const second = afterWrite()
  await eventually('both to look', () => answerNow.length === 2)
  answerNow[0]?.()
  // What the first makes of its answer is done, or waits for the second, once the database has
  // answered after it.
  await vmById(systemScope(db), 'vm-2')
  answerNow[1]?.()
  expect(await first).toMatchObject({ host: 'host-osl-3', running: true })
  expect(await second).toMatchObject({ host: 'host-osl-3', running: true })
})
