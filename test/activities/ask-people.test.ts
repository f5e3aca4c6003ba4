import { expect, test } from '@jest/globals'
import { expirySecondsOf } from '../../activities/ask-people.ts'
import { putConfig, readSettings } from '../../db/settings.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const expiry = async (tool: string) => expirySecondsOf(await readSettings(database.db), tool)

test('an approval can be decided for one hour, and a command on a device for half an hour, because its rehearsal ages', async () => {
  expect(await expiry('execute_migration')).toBe(3_600)
  expect(await expiry('shell_eval')).toBe(1_800)
})

test('the setting of a tool for the expiry of its approvals overrides the default, shorter or longer', async () => {
  for (const [seconds, version] of [
    [7_200, null],
    [60, 1],
  ] as const) {
    await putConfig(database.db, {
      key: 'approval.expiry.shell_eval',
      value: String(seconds),
      actor: 'user:anna',
      reason: null,
      ifVersion: version,
    })
    expect(await expiry('shell_eval')).toBe(seconds)
  }
})
