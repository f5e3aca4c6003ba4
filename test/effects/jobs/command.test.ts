import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { runCommand } from '../../../effects/jobs/command.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'

const directory = temporaryDirectory()
afterAll(directory.remove)
const run = (argv: string[], more: { timeoutMs?: number; cwd?: string } = {}) =>
  runCommand({ argv, cwd: directory.path, env: { GIVEN: 'yes' }, timeoutMs: 600_000, ...more })
/** The kernel takes a moment between a signal and the end. */
const toEnd = (file: string) => {
  const pid = Number(readFileSync(join(directory.path, file), 'utf8'))
  return eventually(`process ${pid} to end`, () => {
    try {
      return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return true
    }
  })
}

test('a word is one word, whatever characters of a shell it contains', async () => {
  const { output } = await run(['printf', '[%s]', 'a b', '$(id)', '; rm -rf /'])
  expect(output).toBe('[a b][$(id)][; rm -rf /]')
})

test('a command gets its declared environment, and nothing else of this process', async () => {
  process.env.SECRET_OF_THE_API = 'hidden'
  const { output } = await run(['env'])
  delete process.env.SECRET_OF_THE_API
  expect(output).toContain('GIVEN=yes')
  expect(output).not.toContain('hidden')
})

test('at its time limit the whole group is killed, even if it ignores the request to end', async () => {
  const script = 'trap "" TERM; (trap "" TERM; sleep 60) & echo $! > child; wait; sleep 60'
  const outcome = await run(['bash', '-c', script], { timeoutMs: 2_000 })
  expect(outcome).toMatchObject({ isOk: false, exitCode: null })
  expect(outcome.detail).toContain('stopped at its deadline')
  await toEnd('child')
})

test('processes that a command leaves in its group end with it, and do not delay its answer', async () => {
  const outcome = await run(['bash', '-c', 'sleep 3600 & echo $! > left; echo done'])
  expect(outcome).toMatchObject({ isOk: true, output: 'done\n' })
  await toEnd('left')
})

test('of a long output the beginning and the end are kept, and a missing program is an outcome', async () => {
  const outcome = await run(['bash', '-c', 'echo first; head -c 300000 /dev/zero | tr "\\0" x; echo; echo last'])
  expect(outcome.isCut).toBe(true)
  expect(outcome.output).toMatch(/^first\n[\s\S]*left out[\s\S]*last\n$/)
  expect(outcome.output.length).toBeLessThan(70_000)
  expect(await run(['not-a-program'])).toMatchObject({
    isOk: false,
    detail: 'not-a-program could not be started (ENOENT)',
  })
})
