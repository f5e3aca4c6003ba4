import { expect, test } from '@jest/globals'
import { runCli } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()
const run = (...args: string[]) => runCli(['operators', ...args], api.as('admin'))

test('a person is made and changed, and what is not named stays as it is', async () => {
  expect((await run('set', 'anna')).code).toBe(2)
  const made = await run('set', 'anna', '--role', 'approver', '--max-risk', 'high', '--type', 'disk_pressure')
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('anna is known')])
  await run('set', 'anna', '--disable')
  expect((await run('list')).stdout).toMatch(/^anna +disabled +high +disk_pressure$/m)
  await run('set', 'anna', '--enable', '--all-types')
  expect((await run('list')).stdout).toMatch(/^anna +approver +high +all$/m)
})

test('a person is given a member ID of Slack, and it is taken away again', async () => {
  const slackUserId = async () => JSON.parse((await run('list', '--json')).stdout).find(isFrida).slackUserId
  const isFrida = ({ name }: { name: string }) => name === 'frida'
  await run('set', 'frida', '--role', 'approver', '--slack', 'U0FRIDA')
  expect(await slackUserId()).toBe('U0FRIDA')
  await run('set', 'frida', '--max-risk', 'high')
  expect(await slackUserId()).toBe('U0FRIDA')
  await run('set', 'frida', '--no-slack')
  expect(await slackUserId()).toBeNull()
})
