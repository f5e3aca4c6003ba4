import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, expect, test } from '@jest/globals'
import { procKill } from '../../../mesh/agent/capabilities/proc-kill.ts'
import { procList } from '../../../mesh/agent/capabilities/proc-list.ts'
import { readStat } from '../../../mesh/agent/processes.ts'
import { deviceOf, done, fault } from './device.ts'

const device = deviceOf('/nowhere', {})
const started: ChildProcess[] = []

afterEach(() => {
  for (const child of started.splice(0)) {
    child.stdout!.destroy()
    try {
      // With what it has started itself.
      process.kill(-child.pid!, 'SIGKILL')
    } catch {}
  }
})

/** A real process that says when it is ready. */
async function start(script: string, ...words: string[]): Promise<ChildProcess & { pid: number }> {
  const child = spawn('bash', ['-c', script, ...words], { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  started.push(child)
  await new Promise((resolve) => child.stdout.once('data', resolve))
  return child as ChildProcess & { pid: number }
}

const startTime = (pid: number) => readStat(readFileSync(`/proc/${pid}/stat`, 'utf8')).start_time
type Listed = { pid: number; ppid: number; start_time: string; cmdline: string; cpu_seconds: number; name: string }
const list = async (asked: object) => (await done(device, procList, { ...asked })).processes as Listed[]

test('a process is found by its name, with all that names it', async () => {
  const child = await start('echo on; read -t 60 < <(sleep 60)', 'needle-in-the-list')
  const [found, ...others] = await list({ name: 'needle-in-the-list' })
  expect(others.filter(({ ppid }) => ppid !== child.pid)).toEqual([])
  expect(found).toMatchObject({
    pid: child.pid,
    ppid: process.pid,
    start_time: startTime(child.pid),
    name: 'bash',
    user: expect.any(String),
    rss_bytes: expect.any(Number),
    kernel_thread: false,
  })
})

test('a runaway process stands at the top', async () => {
  const child = await start('echo on; while :; do :; done', 'runaway-one')
  for (;;) {
    const [first] = await list({ name: 'runaway-one' })
    if (first!.cpu_seconds > 0.2) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const calm = await start('echo on; sleep 60; :', 'runaway-calm')
  const found = (await list({ name: 'runaway-' })).map(({ pid }) => pid)
  expect(found.indexOf(child.pid)).toBeLessThan(found.indexOf(calm.pid))
})

test('a password on a command line is not told', async () => {
  await start('echo on; sleep 60; :', 'mysqldump', '--password', 'hunter2hunter2', '--host=db1')
  const [found] = await list({ name: 'mysqldump' })
  expect(found!.cmdline).toContain('--host=db1')
  expect(found!.cmdline).not.toContain('hunter2')
})

test('the list says how many there are beyond what it shows', async () => {
  const all = await done(device, procList, { limit: 1_000 })
  const some = await done(device, procList, { limit: 1 })
  expect(some.processes).toHaveLength(1)
  expect(some.total as number).toBeGreaterThan(1)
  expect((all.processes as Listed[]).some(({ pid }) => pid === process.pid)).toBe(true)
})

test('a line of /proc is read right whatever the process calls itself', () => {
  const rest = `S 7 1 1 0 -1 2129984 0 0 0 0 250 50 0 0 20 0 1 0 98765 1 1 1`
  expect(readStat(`42 (a) R (b c) ${rest}`)).toEqual({
    ...{ pid: 42, ppid: 7, start_time: '98765', name: 'a) R (b c' },
    ...{ state: 'S', cpu_seconds: 3, kernel_thread: true },
  })
})

test('a process is ended by its pid and start time, and the answer says that it ended', async () => {
  const child = await start('echo on; exec sleep 60')
  const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
  const asked = { pid: child.pid, start_time: startTime(child.pid) }
  expect(await done(device, procKill, asked)).toMatchObject({ pid: child.pid, signal: 'TERM', ended: true })
  expect(await gone).toBe('SIGTERM')
  expect(await fault(device, procKill, asked)).toMatchObject({ code: 'not_found' })
})

test('one that ignores SIGTERM is told to be still there, and SIGKILL ends it', async () => {
  const child = await start(`trap '' TERM; echo on; while :; do sleep 1; done`)
  const asked = { pid: child.pid, start_time: startTime(child.pid) }
  expect(await done(device, procKill, asked)).toMatchObject({ ended: false })
  expect(await done(device, procKill, { ...asked, signal: 'KILL' })).toMatchObject({ ended: true })
})

test('another process that has the pid by now is left alone', async () => {
  const child = await start('echo on; exec sleep 60')
  const earlier = String(BigInt(startTime(child.pid)) - 1n)
  expect(await fault(device, procKill, { pid: child.pid, start_time: earlier })).toMatchObject({ code: 'conflict' })
  expect(child.exitCode ?? child.signalCode).toBeNull()
})

test('process 1, the agent, what it runs below and threads of the kernel are never signalled', async () => {
  const weigh = (pid: number) => procKill.weigh({ pid, start_time: '1', signal: 'KILL' }, device.manifest)
  for (const pid of [1, process.pid, process.ppid]) expect(weigh(pid).effect).toBe('refused')
  const child = await start('echo on; exec sleep 60')
  expect(weigh(child.pid).effect).toBe('write')
  expect(procKill.args.safeParse({ pid: 0, start_time: '1' }).success).toBe(false)
  expect(procKill.args.safeParse({ pid: -child.pid, start_time: '1' }).success).toBe(false)

  const [thread] = (await list({ limit: 1_000 })).filter(
    (one) => (one as Listed & { kernel_thread: boolean }).kernel_thread,
  )
  if (thread) {
    const asked = { pid: thread.pid, start_time: thread.start_time }
    expect(await fault(device, procKill, asked)).toMatchObject({ code: 'blocked' })
  }
})

test('the number of a thread names no process', async () => {
  const child = spawn(process.execPath, ['-e', 'console.log("on"); setInterval(() => {}, 1000)'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  started.push(child)
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const thread = readdirSync(`/proc/${child.pid}/task`)
    .map(Number)
    .find((tid) => tid !== child.pid)!
  const asked = { pid: thread, start_time: startTime(thread) }
  expect(await fault(device, procKill, asked)).toMatchObject({ code: 'not_found' })
})
