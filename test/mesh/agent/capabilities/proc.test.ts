import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { procKill, procList } from '../../../../mesh/agent/capabilities/proc.ts'
import { enclosureOf, type ProcessScope, unitOf, whyOutside } from '../../../../mesh/agent/process-facts.ts'
import { readStat } from '../../../../mesh/agent/programs.ts'
import { socketsIn } from '../../../../mesh/agent/sockets.ts'
import { ask, deviceOf, done, fault } from '../../../support/device.ts'
import { eventually } from '../../../support/directory.ts'

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

test('a process is found by its name, with all its identities', async () => {
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

test('a runaway process is at the top', async () => {
  const child = await start('echo on; while :; do :; done', 'runaway-one')
  await eventually('it to have worked', async () => (await list({ name: 'runaway-one' }))[0]!.cpu_seconds > 0.2)
  const calm = await start('echo on; sleep 60; :', 'runaway-calm')
  const found = (await list({ name: 'runaway-' })).map(({ pid }) => pid)
  expect(found.indexOf(child.pid)).toBeLessThan(found.indexOf(calm.pid))
})

test('the list shows when a process started, and its current CPU usage', async () => {
  const busy = await start('echo on; while :; do :; done', 'share-busy')
  await start('echo on; sleep 60; :', 'share-calm')
  const found = (await list({ name: 'share-' })) as (Listed & { started: string; cpu_percent: number })[]
  expect(found[0]).toMatchObject({
    pid: busy.pid,
    started: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
  })
  expect(Math.abs(Date.parse(found[0]!.started) - Date.now())).toBeLessThan(60_000)
  expect(found[0]!.cpu_percent).toBeGreaterThan(found[1]!.cpu_percent)
})

test('a process is found by the port at which it listens or is connected', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const nobody = await done(device, procList, { port: port === 9 ? 10 : 9 })
  expect(nobody).toMatchObject({ processes: [], total: 0 })
  const client = connect(port, '127.0.0.1')
  const [peer] = (await once(server, 'connection')) as [Socket]
  const answer = await done(device, procList, { port })
  for (const each of [client, peer, server]) 'destroy' in each ? each.destroy() : each.close()
  const [found, ...others] = answer.processes as (Listed & { sockets: object[] })[]
  expect(others).toEqual([])
  expect(found).toMatchObject({ pid: process.pid })
  expect(found!.sockets[0]).toEqual({ protocol: 'tcp', local: `127.0.0.1:${port}`, remote: null, state: 'listen' })
  expect(found!.sockets).toHaveLength(3)
  expect(answer.sockets_unseen).toEqual({ total: 0, first: [] })
  expect((await done(device, procList, { port, name: 'no-such-name' })).total).toBe(0)
})

test('the tables of sockets are read correctly: IPv6, connected UDP, and no port that only looks similar', () => {
  const line = (local: string, remote: string, state: string) =>
    `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0`
  const any = '00000000000000000000000000000000'
  const mapped = '0000000000000000FFFF00000100007F'
  const tcp = [line(`${any}:1F90`, `${any}:0000`, '0A'), line(`${mapped}:1F90`, `${mapped}:D431`, '01')].join('\n')
  expect(socketsIn(tcp, 'tcp', 8080)).toEqual([
    { protocol: 'tcp', local: '[::]:8080', remote: null, state: 'listen', uid: '1000', inode: '4711' },
    {
      protocol: 'tcp',
      local: '127.0.0.1:8080',
      remote: '127.0.0.1:54321',
      state: 'established',
      uid: '1000',
      inode: '4711',
    },
  ])
  expect(socketsIn(line('0100007F:0035', '00000000:0000', '07'), 'udp', 53)).toMatchObject([
    { local: '127.0.0.1:53', state: 'bound' },
  ])
  expect(socketsIn(line('0100007F:0035', '00000000:0000', '07'), 'udp', 0x7f00)).toEqual([])
})

test('a password on a command line is not shown', async () => {
  await start('echo on; sleep 60; :', 'mysqldump', '--password', 'hunter2hunter2', '--host=db1')
  const [found] = await list({ name: 'mysqldump' })
  expect(found!.cmdline).toContain('--host=db1')
  expect(found!.cmdline).not.toContain('hunter2')
})

test('the list shows the number of processes beyond its limit', async () => {
  const all = await done(device, procList, { limit: 1_000 })
  const some = await done(device, procList, { limit: 1 })
  expect(some.processes).toHaveLength(1)
  expect(some.total as number).toBeGreaterThan(1)
  expect((all.processes as Listed[]).some(({ pid }) => pid === process.pid)).toBe(true)
})

test('a line of /proc is read correctly whatever the name of the process is', () => {
  const rest = `S 7 1 1 0 -1 2129984 0 0 0 0 250 50 0 0 20 0 1 0 98765 1 1 1`
  expect(readStat(`42 (a) R (b c) ${rest}`)).toEqual({
    pid: 42,
    ppid: 7,
    start_time: '98765',
    name: 'a) R (b c',
    state: 'S',
    cpu_seconds: 3,
    kernel_thread: true,
  })
})

test('a process is ended by its pid and start time, and the answer confirms its end', async () => {
  const child = await start('echo on; exec sleep 60')
  const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
  const asked = { pid: child.pid, start_time: startTime(child.pid) }
  expect(await done(device, procKill, asked)).toMatchObject({ pid: child.pid, signal: 'TERM', ended: true })
  expect(await gone).toBe('SIGTERM')
  expect(await fault(device, procKill, asked)).toMatchObject({ code: 'not_found' })
})

test('a process that ignores SIGTERM is reported as running, and SIGKILL ends it', async () => {
  const child = await start(`trap '' TERM; echo on; while :; do sleep 1; done`)
  const asked = { pid: child.pid, start_time: startTime(child.pid) }
  expect(await done(device, procKill, asked)).toMatchObject({ ended: false })
  expect(await done(device, procKill, { ...asked, signal: 'KILL' })).toMatchObject({ ended: true })
})

test('another process that has the pid now is left alone', async () => {
  const child = await start('echo on; exec sleep 60')
  const earlier = String(BigInt(startTime(child.pid)) - 1n)
  expect(await fault(device, procKill, { pid: child.pid, start_time: earlier })).toMatchObject({ code: 'conflict' })
  expect(child.exitCode ?? child.signalCode).toBeNull()
})

test('process 1, the agent, its parent and threads of the kernel are never signalled', async () => {
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

test('the rehearsal shows the identity of the process: its start, command line, user and service', async () => {
  const child = await start('echo on; sleep 60; :', 'mysqldump', '--password', 'hunter2hunter2')
  const asked = { pid: child.pid, start_time: startTime(child.pid) }
  const outcome = await ask(device, procKill, asked, { rehearse: true })
  const told = ((outcome.result?.told ?? []) as string[]).join('\n')
  expect(told).toMatch(new RegExp(`^process ${child.pid} \\(bash\\) of user \\S+, below process ${process.pid}$`, 'm'))
  expect(told).toMatch(/^started: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/m)
  expect(told).toMatch(/^command line: bash -c .*mysqldump/m)
  expect(told).toMatch(/^service: \S/m)
  expect(told).not.toContain('hunter2')
  expect(outcome.result?.untried).toEqual(['The effect of SIGTERM is known only after the signal.'])
  expect(child.exitCode ?? child.signalCode).toBeNull()
  const earlier = String(BigInt(asked.start_time) - 1n)
  // The title of the question names the process as people call it.
  expect(outcome.ok && outcome.result.about).toMatch(/^\S+ \(pid \d+, running since .+ UTC\)$/)
  const other = await ask(device, procKill, { ...asked, start_time: earlier }, { rehearse: true })
  expect(other).toMatchObject({ ok: false, code: 'conflict' })
})

const inNamespace = spawnSync('unshare', ['--user', '--map-root-user', '--pid', '--fork', 'true']).status === 0

;(inNamespace ? test : test.skip)('a process in another PID namespace is refused', async () => {
  const child = await start('unshare --user --map-root-user --pid --fork bash -c "echo on; sleep 60; :" in-a-namespace')
  const inside = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')[0])
  const asked = { pid: inside, start_time: startTime(inside), signal: 'KILL' }
  const listed = await done(device, procList, { name: 'in-a-namespace' })
  expect((listed.processes as Listed[]).map(({ pid }) => pid)).not.toContain(inside)
  expect(listed).toMatchObject({ left_out: 1, left_out_in: [expect.any(String)] })
  expect(await fault(device, procKill, asked)).toMatchObject({
    code: 'blocked',
    message: expect.stringContaining('another PID namespace'),
  })
  expect(readFileSync(`/proc/${inside}/stat`, 'utf8')).toContain('bash')
})

test.each([
  ['0::/system.slice/nginx.service', null, 'nginx.service'],
  ['0::/user.slice/user-1000.slice/user@1000.service/app.slice/job.scope', null, 'job.scope'],
  [`0::/system.slice/docker-${'c'.repeat(64)}.scope`, 'c'.repeat(64), `docker-${'c'.repeat(64)}.scope`],
  [`12:memory:/docker/${'c'.repeat(64)}`, 'c'.repeat(64), null],
  [`0::/../${'c'.repeat(64)}`, 'c'.repeat(64), null],
  ['0::/kubepods.slice/kubepods-burstable.slice/x', 'kubepods.slice', null],
  ['0::/lxc/101/ns/init.scope', '101', 'init.scope'],
  ['0::/lxc.payload.web/system.slice/x.service', 'web', 'x.service'],
  ['0::/machine.slice/machine-qemu.scope/libvirt', 'machine-qemu.scope', 'machine-qemu.scope'],
  ['0::/qemu.slice/100.scope', '100.scope', '100.scope'],
  ['0::/machine.slice/libpod-conmon.scope', 'libpod-conmon.scope', 'libpod-conmon.scope'],
  ['0::/', null, null],
])('the control group %s belongs to container or guest %s, service %s', (group, enclosure, unit) => {
  expect([enclosureOf([group]), unitOf([group])]).toEqual([enclosure, unit])
})

test('a process of a container or guest is refused, and so are the services of Nightshift', () => {
  const of = (changes: Partial<ProcessScope>): ProcessScope => ({
    cgroups: ['0::/system.slice/x.service'],
    numbers: ['7'],
    namespace: 'pid:[1]',
    words: ['x'],
    name: 'x',
    ...changes,
  })
  const container = (letter: string) => [`0::/docker/${letter.repeat(64)}`]
  const why = (found: Partial<ProcessScope>, own: Partial<ProcessScope> = {}) => whyOutside(of(found), of(own))
  expect(why({})).toBeNull()
  expect(why({ cgroups: container('c') })).toContain('a container or guest')
  expect(why({ cgroups: container('c') }, { cgroups: container('d') })).toContain('a container or guest')
  // An agent in a container: its own processes, and those of the machine it is given.
  expect(why({ cgroups: container('c') }, { cgroups: container('c') })).toBeNull()
  expect(why({}, { cgroups: container('c') })).toBeNull()
  expect(why({ numbers: ['700', '1'] })).toContain('namespace')
  expect(why({ namespace: 'pid:[2]' })).toContain('namespace')
  for (const words of [
    ['/usr/bin/node', '--disable-warning=ExperimentalWarning', '/opt/nightshift/cli/main.ts', 'worker'],
    ['node', '/usr/local/bin/nightshift', 'mesh', 'agent'],
    ['/usr/local/bin/nightshift', 'api'],
    ['/opt/nightshift/current/bin/node', '/opt/nightshift/current/lib/api/main.js'],
    ['/opt/nightshift/0.2.0/bin/node', '--flag', '/opt/nightshift/0.2.0/lib/mesh/agent/main.js'],
    ['node', '/opt/nightshift/lib/worker/main.js'],
  ])
    expect([words, why({ words })]).toEqual([words, 'is one of the services of Nightshift'])
  expect(why({ cgroups: ['0::/system.slice/nightshift-worker.service'] })).toBe('is one of the services of Nightshift')
  for (const words of [
    ['psql', 'nightshift'],
    ['tail', '/var/log/nightshift'],
    ['node', 'server.js', 'nightshift'],
    ['node', '/srv/nightshift-site/api/main.js'],
  ])
    expect([words, why({ words })]).toEqual([words, null])
})
