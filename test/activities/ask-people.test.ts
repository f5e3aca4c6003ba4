import { expect, test } from '@jest/globals'
import { expirySecondsOf } from '../../activities/ask-people.ts'
import { putConfig, readSettings } from '../../db/settings.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const expiry = async (tool: string) => expirySecondsOf(await readSettings(database.db), tool)

test('people have an hour, and half of it for a command on a device, whose rehearsal ages', async () => {
  expect(await expiry('execute_migration')).toBe(3_600)
  expect(await expiry('shell_eval')).toBe(1_800)
})

test('a setting counts whatever the dry run says, shorter or longer', async () => {
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
