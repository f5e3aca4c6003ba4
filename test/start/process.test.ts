import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { takeLock } from '../../start/lock.ts'
import { type Exit, type RunningProcess, startProcess, waitUntilReady } from '../../start/process.ts'
import { groupMembers, identityOf, openLedger, stopLeftovers } from '../../start/process-table.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'

let directory: ReturnType<typeof temporaryDirectory>
const running: RunningProcess[] = []

beforeEach(() => {
  directory = temporaryDirectory()
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((child) => child.stop(0)))
  directory.remove()
})

async function start(script: string, env: Record<string, string> = {}, onExit?: (exit: Exit) => void) {
  const child = await startProcess({
    name: script,
    command: process.execPath,
    args: [join(import.meta.dirname, 'stand-ins', `${script}.ts`)],
    env: { PATH: process.env.PATH, ...env },
    logFile: join(directory.path, `${script}.log`),
    onExit,
  })
  running.push(child)
  return child
}

test('a process that ends during its start is reported with the last lines of its log', async () => {
  const child = await start('part', { LAST_WORDS: 'cannot find the pump' })
  const port = await freePort()
  await expect(waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)).rejects.toThrow(
    /part ended with code 3 while starting.*\n {2}cannot find the pump/,
  )
})

test('a process that does not become ready is reported with its answer', async () => {
  const port = await freePort()
  const child = await start('part', { PORT: String(port), STUBBORN: '1' })
  // Before it listens it has no answer to be told.
  await eventually('it to listen', () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))
  const url = `http://127.0.0.1:${port}/readyz`
  // On a busy machine a whole wait may pass without an answer: then its message says so, and the
  // next one is asked.
  const told = await eventually('a wait that was answered', async () => {
    const refused = await waitUntilReady(child, url, { timeoutMs: 1_000 }).catch((error: Error) => error)
    return /answered/.test(refused?.message ?? '') && refused?.message
  })
  expect(told).toContain(`was not ready within 1 s: ${url} answered 503 {"database":"down"}`)
})

test('a slow process is waited for, and the reason is shown', async () => {
  const port = await freePort()
  const child = await start('part', { PORT: String(port), STUBBORN: '1' })
  const url = `http://127.0.0.1:${port}/readyz`
  const heard = Promise.withResolvers<string>()
  const progress = (text: string) => text.includes('503') && heard.resolve(text)
  const waited = waitUntilReady(child, url, { progress, sayEveryMs: 10 }).catch((error: Error) => error.message)
  expect(await heard.promise).toMatch(/^still starting after \d+ s \(http:\S+ answered 503 \{"database":"down"\}\)$/)
  await child.stop(0)
  expect(await waited).toContain('ended with code 137 while starting')
})

test('a ledger on a full disk is an error when a process begins, which ends with it, and none when one has ended', async () => {
  const file = join(directory.path, 'processes.json')
  const ledger = openLedger(file)
  // What stands for a disk without room: the next page cannot be written.
  mkdirSync(`${file}.new`)
  const options = { name: 'sleeper', command: 'sleep', args: ['600'], env: {}, logFile: join(directory.path, 'log') }
  await expect(startProcess({ ...options, command: '/bin/sleep', ledger })).rejects.toThrow('EISDIR')
  expect(() => ledger.remove(1)).not.toThrow()
})

test('a process that ignores the request to stop is killed after its grace time', async () => {
  const port = await freePort()
  const child = await start('part', { PORT: String(port), STUBBORN: '1' })
  // Before it listens it would go when asked to.
  await eventually('it to listen', () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))
  await child.stop(300)
  expect((await child.exited).code).toBe(128 + 9)
})

test('stopping a process stops its child processes, and is not reported as an exit', async () => {
  const exits: Exit[] = []
  const port = await freePort()
  const child = await start('part', { PORT: String(port) }, (exit) => exits.push(exit))
  await waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)
  expect(groupMembers(child.pid)).toHaveLength(2)
  await child.stop()
  expect(groupMembers(child.pid)).toHaveLength(0)
  expect(exits).toEqual([])
})

test('a process that dies by itself is reported as an exit', async () => {
  const port = await freePort()
  const told = Promise.withResolvers<Exit>()
  const child = await start('part', { PORT: String(port) }, told.resolve)
  await waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)
  process.kill(child.pid, 'SIGKILL')
  expect(await told.promise).toMatchObject({ name: 'part', code: 128 + 9 })
})

test('a process inherits no environment', async () => {
  const port = await freePort()
  const child = await start('part', { PORT: String(port) })
  await waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)
  const env = (await (await fetch(`http://127.0.0.1:${port}/env`)).json()) as Record<string, string>
  expect(env.NIGHTSHIFT_TEST_SERVERS).toBeUndefined()
})

test('the ledger of a running process is left alone', async () => {
  const file = join(directory.path, 'processes.json')
  const ledger = openLedger(file)
  const sleeper = spawn('sleep', ['60'], { detached: true })
  await once(sleeper, 'spawn')
  ledger.add('sleeper', sleeper.pid!)
  expect(await stopLeftovers(file)).toEqual([])
  expect(identityOf(sleeper.pid!)).toBeDefined()
  ledger.kill()
  await once(sleeper, 'exit')
})

test('a process that only has the number of one in the ledger is left alone', async () => {
  const file = join(directory.path, 'processes.json')
  const innocent = spawn('sleep', ['60'], { detached: true })
  await once(innocent, 'spawn')
  openLedger(file).add('worker', innocent.pid!)
  const page = JSON.parse(readFileSync(file, 'utf8')) as {
    owner: { identity: string }
    processes: { identity: string }[]
  }
  page.owner.identity = 'another boot:1'
  page.processes[0]!.identity = 'another boot:2'
  writeFileSync(file, JSON.stringify(page))
  expect(await stopLeftovers(file)).toEqual([])
  expect(identityOf(innocent.pid!)).toBeDefined()
  innocent.kill()
})

test('the lock is held by one process at a time and taken over from a dead one', async () => {
  const file = join(directory.path, 'lock')
  const first = takeLock(file)
  expect(first).not.toHaveProperty('heldBy')
  expect(takeLock(file)).toEqual({ heldBy: process.pid })
  if ('release' in first) first.release()

  writeFileSync(file, JSON.stringify({ pid: process.pid, identity: 'another boot:1' }))
  expect(takeLock(file)).not.toHaveProperty('heldBy')
})
