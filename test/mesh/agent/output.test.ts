import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { CapabilityAnswer } from '../../../domain/mesh.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { aManifest, inSeconds, keys, type Running, startAgent } from '../../support/running-agent.ts'

const own = keys()
const outputBytes = 100_000
let agent: Running
let place: ReturnType<typeof temporaryDirectory>
beforeAll(async () => {
  const limits = { output_bytes: outputBytes, timeout_seconds: 120, cpu_seconds: 30, memory_mib: 200 }
  agent = await startAgent(own, { manifest: aManifest(own, { limits }) })
  place = temporaryDirectory()
})
afterAll(async () => {
  await agent.stop()
  place.remove()
})

const run = async (text: string, changes: Record<string, unknown> = {}): Promise<CapabilityAnswer> =>
  (await agent.granted('shell.eval', { text }, changes)).answer
const stdout = (answer: CapabilityAnswer) => answer.result?.stdout as string

/** Everything that runs with these words on its command line. */
function running(words: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid)) return false
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').includes(words)
      } catch {
        return false
      }
    })
}

test('of 100 MB the allowed part is kept, and the rest is not waited for', async () => {
  const answer = await run('case 1 in 1) head -c 100000000 /dev/zero | tr "\\0" x;; esac; echo end')
  expect(answer).toMatchObject({ ok: true, truncated: true })
  expect(stdout(answer)).toBe('x'.repeat(outputBytes))
})

test('endless output is cut off, and its process is gone', async () => {
  const mark = `endless-${Date.now()}`
  const answer = await run(`case 1 in 1) yes ${mark};; esac`)
  expect(answer).toMatchObject({ ok: true, truncated: true })
  expect(stdout(answer).length).toBe(outputBytes)
  expect(running(mark)).toEqual([])
})

test('binary output is text when it leaves the device', async () => {
  const bytes = Buffer.alloc(4_096, 0).map((_, at) => at % 256)
  writeFileSync(join(place.path, 'binary'), bytes)
  const answer = await run(`cat ${join(place.path, 'binary')}`)
  expect(answer.ok).toBe(true)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
  expect(stdout(answer)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
  expect(stdout(answer)).toContain('ABCDEFG')
  expect(stdout(answer).isWellFormed()).toBe(true)
})

test.each([
  ['colours', String.raw`\033[31mred\033[0m`, 'red'],
  ['a title of the window', String.raw`\033]0;owned\007plain`, 'plain'],
  ['a cleared screen', String.raw`a\033[2J\033[Hb`, 'ab'],
  ['a bell and a backspace', String.raw`a\007b\010c`, 'abc'],
  ['a byte that is no UTF-8', String.raw`a\377b`, 'a\ufffdb'],
  ['half a character', String.raw`a\303`, 'a\ufffd'],
  ['text turned around', String.raw`a\342\200\256b`, 'ab'],
])('%s in the output does not act on its reader', async (_, printed, plain) => {
  expect(stdout(await run(`printf '${printed}'`))).toBe(plain)
})

test('an exit code other than zero is an answer', async () => {
  expect(await run('echo out; echo err >&2; exit 3')).toMatchObject({
    ok: true,
    result: { exit_code: 3, stdout: 'out\n', stderr: 'err\n' },
  })
  const missing = await agent.granted('shell.exec', { argv: ['no-such-program'] })
  expect(missing.answer).toMatchObject({
    ok: true,
    result: { exit_code: 127, stderr: expect.stringContaining('not found') },
  })
})

test('a missing directory is reported as the reason', async () => {
  const { answer } = await agent.call('shell.exec', { argv: ['ls'], cwd: join(place.path, 'nowhere') })
  expect(answer).toMatchObject({
    ok: false,
    error: { code: 'not_found', message: expect.stringContaining('nowhere') },
  })
})

test('a read-only query is recognised, although its parser is loaded late', async () => {
  const read = await agent.call('shell.exec', { argv: ['psql', '-c', 'select 1'] })
  expect(read.answer.approval_status).toBe('auto_approved')
  const write = await agent.call('shell.eval', { text: `p'sq'l -c 'drop table x'` })
  expect(write.answer.error?.code).toBe('approval_required')
})

/** The author of the command's commit. */
const gitIdentity = ['GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL', 'GIT_COMMITTER_NAME', 'GIT_COMMITTER_EMAIL']

test('an input is empty, and nothing of the agent is in the environment', async () => {
  const names = stdout(await run('cat; env'))
    .split('\n')
    .map((line) => line.split('=')[0])
  expect(names.filter((name) => name !== '').sort()).toEqual(
    [...gitIdentity, 'HOME', 'LANG', 'NIGHTSHIFT_OPERATION', 'PATH', 'PWD', 'SHLVL', '_'].sort(),
  )
})

test('at the time limit the whole group dies, even if it ignores SIGTERM, and its output is kept', async () => {
  const mark = `9${Date.now()}`
  const text = `trap '' TERM; echo begun; (trap '' TERM; sleep ${mark} & wait) & sleep ${mark}; sleep ${mark}`
  const answer = await run(text, { deadline: inSeconds(2) })
  expect(answer).toMatchObject({
    status: 'failed',
    ok: false,
    error: { code: 'timeout' },
    result: { stdout: 'begun\n', exit_code: null },
  })
  expect(running(mark)).toEqual([])
})

test('a child that left its group and its session also dies at the time limit', async () => {
  const mark = `8${Date.now()}`
  const answer = await run(`setsid sleep ${mark} & setsid setsid sleep ${mark} & sleep ${mark}`, {
    deadline: inSeconds(2),
  })
  expect(answer.error?.code).toBe('timeout')
  await eventually('everything to be gone', () => running(mark).length === 0)
})

test('processes in the group of a finished command end with it', async () => {
  const mark = `7${Date.now()}`
  expect((await run(`sleep ${mark} & echo started`)).ok).toBe(true)
  await eventually('it to be gone', () => running(mark).length === 0)
})

test('more memory than the manifest allows ends the command', async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is bash
  const one = await run('x=$(head -c 400000000 /dev/zero | tr "\\0" x); echo ${#x}')
  expect(stdout(one)).not.toContain('400000000')
  // Each of these is small enough for itself. Bash does something after its `sleep`: it would
  // otherwise replace itself with it, and hold the memory for a moment only.
  const many = await run(
    'for i in 1 2 3 4; do (x=$(head -c 60000000 /dev/zero | tr "\\0" x); sleep 20; : kept) & done; wait',
    {
      deadline: inSeconds(40),
    },
  )
  expect(many).toMatchObject({ ok: false, error: { code: 'failed', message: expect.stringContaining('memory') } })
})

test('a command that uses up its CPU time ends', async () => {
  const brief = await startAgent(own, {
    manifest: aManifest(own, { limits: { cpu_seconds: 1, timeout_seconds: 100 } }),
  })
  try {
    const { answer } = await brief.granted('shell.exec', { argv: ['sh', '-c', 'while :; do :; done'] })
    expect(answer.result).toMatchObject({ exit_code: null, signal: expect.stringMatching(/SIGXCPU|SIGKILL/) })
  } finally {
    await brief.stop()
  }
})

test('the agent itself stays small through all of this', () => {
  expect(agent.residentMb()).toBeLessThan(150)
})
