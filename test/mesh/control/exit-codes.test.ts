import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { toEnvelope } from '../../../activities/send.ts'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { append } from '../../../db/log/append.ts'
import { systemScope } from '../../../db/scope.ts'
import { callsOf } from '../../../db/writes/device-calls.ts'
import { effectByKey } from '../../../db/writes/effects.ts'
import { agentActor } from '../../../domain/event.ts'
import type { CoreAnswer } from '../../../domain/tool.ts'
import { whyEndedBadly } from '../../../effects/devices/ask-device.ts'
import { specNamed } from '../../../mesh/registry.ts'
import { corePort } from '../../support/api.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { prepared, ran, realAgent, toolNamed, useMeshApi } from '../../support/mesh-api.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

/**
 * What went through: tool registry, core API, signature, the agent's door, guard and journal, the
 * process, and back.
 */
const api = useMeshApi()
const on = 'host-osl-1'
const place = temporaryDirectory()
afterAll(() => place.remove())
beforeAll(async () => {
  const { inventoryState } = scriptedPlatform()
  const [first] = inventoryState.vms
  if (!first) throw new Error('no VM')
  await syncInventory(api.db, { ...inventoryState, vms: [...inventoryState.vms, { ...first, id: 'vm-101' }] })
  const pct = '#!/bin/sh\nshift 3\nexec "$@"\n'
  const roots = [{ path: place.path, writable: true }]
  await realAgent(api, on, { guests: 'pct', terms: { capabilities: [], roots } } as never, { pct })
})

/** The row with which a run notes what it was answered. */
async function finished(id: string, stepKey: string, tool: string, args: Record<string, unknown>, answer: CoreAnswer) {
  await api.db.transaction().execute((trx) =>
    append(trx, id, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: '',
      stepKey: stepKey.replace('started', 'finished'),
      metadata: {
        callId: 'c1_0',
        tool,
        arguments: args,
        effect: 'write',
        targets: [],
        body: null,
        discovered: [],
        outcome: answer.ok ? 'done' : 'failed',
        result: { ...toEnvelope(answer), data: null },
        durationMs: 1,
      },
    }),
  )
}

/** An approved call: what the model reads of it, and what its verification says. */
async function verified(tool: string, args: Record<string, unknown>) {
  const given = { on, ...args, reason: 'because' }
  const { answer, stepKey, incidentId } = await ran(api, tool, given, 'approved')
  await finished(incidentId, stepKey, tool, given, answer as CoreAnswer)
  const context = { core: corePort(api), incidentId, stepKey, ifMatch: null }
  const seen = await toolNamed(tool).postcondition?.check(given as never, null, context)
  return { read: toEnvelope(answer as CoreAnswer), seen, effect: await effectByKey(api.db, stepKey) }
}

const exec = (...argv: string[]) => verified('exec', { argv })
const bash = (command: string) => verified('shell_eval', { command })

describe('a command that was to change something', () => {
  test('and ended with an exit code other than 0 failed, and the model reads the code and its output', async () => {
    const { read, seen, effect } = await exec(
      'sh',
      '-c',
      'echo before; echo first >&2; echo "no such unit" >&2; exit 7',
    )
    expect(seen).toEqual({ holds: false, observed: 'not verified: exit code 7: no such unit' })
    expect(effect).toMatchObject({ status: 'failed' })
    // On the page of the device, too.
    expect(
      (await callsOf(systemScope(api.db), on, { limit: 50 })).find(({ key }) => key === effect?.key),
    ).toMatchObject({
      ok: false,
      errorCode: 'exit_code',
    })
    expect(read).toMatchObject({
      ok: false,
      error: { failed: true, blocked: false, message: 'device_mesh: shell.exec: exit code 7: no such unit' },
      data: { exit_code: 7, stdout: 'before\n', stderr: 'first\nno such unit\n' },
    })
  })

  test('and ended with 0 is unproven, because nothing was promised', async () => {
    const { read, seen, effect } = await exec('touch', join(place.path, 'new'))
    expect(seen).toMatchObject({ holds: null, observed: expect.stringContaining('nothing proves that it worked') })
    expect(read).toMatchObject({ ok: true, data: { exit_code: 0 } })
    expect(effect).toMatchObject({ status: 'done' })
  })

  test.each<[string, string]>([
    ['false; touch x', 'a later command'],
    ['rm /nowhere || true', 'another one that took its place'],
    ['rm /nowhere 2>&1 | tee x', 'the end of a pipe'],
    ['rm /nowhere & wait', 'the background'],
  ])('in %s, where the exit code of %s hides its own, never counts as held', async (command) => {
    expect((await verified('shell_eval', { command, cwd: place.path })).seen).toMatchObject({ holds: null })
  })

  test('and was killed did not do its work', async () => {
    expect((await exec('sh', '-c', 'kill -9 $$')).seen).toMatchObject({
      holds: false,
      observed: 'not verified: ended by SIGKILL',
    })
    expect((await bash("sh -c 'kill -9 $$'; exit $?")).seen).toMatchObject({
      holds: false,
      observed: expect.stringContaining('exit code 137'),
    })
  })

  test('and was stopped because it printed too much did not do its work', async () => {
    const { seen, read } = await exec('sh', '-c', 'yes nightshift; touch never')
    expect(seen).toMatchObject({
      holds: false,
      observed: expect.stringMatching(/^not verified: (ended by|it was stopped)/),
    })
    expect(read.ok).toBe(false)
  })

  test('and does not exist did not do its work', async () => {
    expect((await exec('no-such-program')).seen).toMatchObject({ holds: false })
    expect((await bash('no-such-program')).seen).toMatchObject({
      observed: expect.stringContaining('not verified: exit code 127'),
    })
  })

  test('shows no secret of its last line', async () => {
    const { seen } = await bash('echo "pass""word=hunter2hunter2" >&2; exit 3')
    expect(seen).toMatchObject({ holds: false, observed: expect.stringContaining('exit code 3: password=') })
    expect(seen?.observed).not.toContain('hunter2')
  })

  test('and never reached the device did not do its work', async () => {
    const { read, seen, effect } = await bash('touch x; export TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345')
    expect(effect).toBeNull()
    expect(read).toMatchObject({ ok: false, error: { code: 'INVALID_INPUT' } })
    expect(seen).toMatchObject({ holds: false, observed: expect.stringContaining('not verified: ') })
  })

  test('in a guest that pct reaches ends with the exit code of the guest', async () => {
    const inGuest = (argv: string[]) => verified('exec', { on: 'vm-101', argv })
    expect((await inGuest(['sh', '-c', 'echo down >&2; exit 5'])).seen).toEqual({
      holds: false,
      observed: 'not verified: exit code 5: down',
    })
    expect((await inGuest(['touch', join(place.path, 'guest')])).seen).toMatchObject({ holds: null })
    const text = await verified('shell_eval', { on: 'vm-101', command: 'touch z; exit 9' })
    expect(text.seen).toMatchObject({ holds: false, observed: 'not verified: exit code 9' })
  })

  test('with an exit code that means success has done its work, so its report is not a failure', async () => {
    writeFileSync(join(place.path, 'a'), 'a\n')
    writeFileSync(join(place.path, 'b'), 'b\n')
    const { seen, read } = await verified('shell_eval', { command: 'diff a b > difference', cwd: place.path })
    expect(seen).toMatchObject({ holds: null })
    expect(read).toMatchObject({ ok: true, data: { exit_code: 1 } })
  })
})

test('a read that a person approved has its exit code in the answer', async () => {
  const { seen, read } = await exec('grep', '-c', 'nobody-has-this-name', '/etc/shadow')
  expect(read).toMatchObject({ ok: true, data: { exit_code: 1 } })
  expect(seen).toMatchObject({ holds: null, observed: expect.stringContaining('read-only') })
})

test('an unasked read has its exit code before its output', async () => {
  const { answer } = await ran(api, 'exec', { on, argv: ['ls', '/nowhere'] }, 'unasked')
  expect(answer).toMatchObject({ ok: true, data: { exit_code: 2, stderr: expect.stringContaining('/nowhere') } })
  const keys = Object.keys((answer as { data: object }).data)
  expect(keys.indexOf('exit_code')).toBeLessThan(keys.indexOf('stdout'))
})

test('git commits as Nightshift, and a commit that it cannot make is reported', async () => {
  const path = join(place.path, 'repository')
  const git = (...words: string[]) =>
    execFileSync('git', ['-C', path, '-c', 'user.name=A', '-c', 'user.email=a@a', ...words], { encoding: 'utf8' })
  execFileSync('git', ['init', '--quiet', path])
  writeFileSync(join(path, 'file'), 'one\n')
  git('add', 'file')
  git('commit', '--quiet', '--message', 'one')
  writeFileSync(join(path, 'file'), 'two\n')
  git('commit', '--quiet', '--all', '--message', 'two')

  const reverted = await exec('git', '-C', path, 'revert', '--no-edit', 'HEAD')
  expect([reverted.read.ok, reverted.seen?.holds]).toEqual([true, null])
  expect(git('log', '-1', '--format=%an <%ae> %s').trim()).toBe(`Nightshift <nightshift@${on}> Revert "two"`)
  const again = await exec('git', '-C', path, 'revert', '--no-edit', 'no-such-commit')
  expect(again.seen).toMatchObject({
    holds: false,
    observed: expect.stringMatching(/^not verified: exit code 128: fatal: /),
  })
})

describe('the proof of a write', () => {
  const proof = async (tool: string, args: Record<string, unknown>) =>
    (await prepared(api, tool, { on, ...args, reason: 'because' }))?.dryRun.proof

  const sleeping = spawn('sleep', ['300'], { stdio: 'ignore' })
  afterAll(() => void sleeping.kill('SIGKILL'))
  const there = () => {
    const { pid = 0 } = sleeping
    return { pid, start_time: readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19] }
  }

  test('is the state, if the device can be asked for it', async () => {
    expect(await proof('fs_write', { path: join(place.path, 'file'), content: 'x' })).toEqual({
      by: 'state',
      text: 'the file holds exactly what was written',
    })
    expect(await proof('proc_kill', there())).toMatchObject({ by: 'state' })
  })

  test('is nothing for a command, for a signal that asks for something else, and for a write through a host', async () => {
    expect(await proof('exec', { argv: ['touch', '/x'] })).toMatchObject({ by: 'nothing' })
    expect(await proof('shell_eval', { command: 'touch /x' })).toMatchObject({ by: 'nothing' })
    expect(await proof('proc_kill', { ...there(), signal: 'HUP' })).toMatchObject({ by: 'nothing' })
    expect(await proof('exec', { on: 'vm-101', argv: ['touch', '/x'] })).toMatchObject({ by: 'nothing' })
  })

  test('is a read of the file, appended or whole', async () => {
    const path = join(place.path, 'appended')
    writeFileSync(path, 'one\n')
    const { seen } = await verified('fs_write', { path, content: 'two\n', append: true })
    expect(seen).toEqual({ holds: true, observed: 'the file holds what was written' })
  })

  test('a refused clone does not hold, even if something is in its place', async () => {
    const { seen, effect } = await verified('git_clone', { url: 'https://example.invalid/x.git', path: place.path })
    expect(effect).toMatchObject({ status: 'failed' })
    expect(seen).toMatchObject({ holds: false, observed: expect.stringContaining('not verified: ') })
  })
})

describe("the container engine's report about a command", () => {
  const spec = specNamed('docker_exec')!
  const why = (argv: string[], result: object) =>
    whyEndedBadly({ spec, input: { container: 'web', argv } }, { stderr: '', ...result })

  test('is its exit code', () => {
    expect(why(['nginx', '-s', 'reload'], { exit_code: 0 })).toBeNull()
    expect(why(['nginx', '-s', 'reload'], { exit_code: 1, stderr: 'a\nno pid\n' })).toBe('exit code 1: no pid')
    expect(why(['nginx', '-s', 'stop'], { exit_code: 137 })).toBe('exit code 137')
  })

  test('may be nothing, and then its end is unknown', () => {
    expect(why(['nginx', '-s', 'reload'], { exit_code: null, still_running: true })).toMatch(
      /how it ended is not known/,
    )
    expect(why(['nginx', '-s', 'reload'], {})).toMatch(/how it ended is not known/)
  })

  test('is a part of the answer of a read', () => {
    expect(why(['ls', '/nowhere'], { exit_code: 2 })).toBeNull()
  })
})
