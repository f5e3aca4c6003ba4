import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { procKill, procList } from '../../../mesh/agent/capabilities/proc.ts'
import { servicesBy } from '../../../mesh/agent/capabilities/unit.ts'
import type { DeviceCapability } from '../../../mesh/agent/capability.ts'
import { enclosureOf, type ProcessScope, unitOf, whyOutside } from '../../../mesh/agent/process-facts.ts'
import { readStat } from '../../../mesh/agent/programs.ts'
import { privilegeOf, socketsIn, systemdBy } from '../../../mesh/agent/systemd.ts'
import { serviceRestart, serviceStop, sudoersLine } from '../../../mesh/specs/unit.ts'
import { ask, contextOf, type Device, deviceOf, done, fault } from '../../support/device.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'

describe('proc', () => {
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
    await eventually('it to have worked', async () => (await list({ name: 'runaway-one' }))[0]!.cpu_seconds > 0.2)
    const calm = await start('echo on; sleep 60; :', 'runaway-calm')
    const found = (await list({ name: 'runaway-' })).map(({ pid }) => pid)
    expect(found.indexOf(child.pid)).toBeLessThan(found.indexOf(calm.pid))
  })

  test('the list tells when a process started, and how much of a processor it uses now', async () => {
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

  test('the tables of sockets are read right: IPv6, connected UDP, and no port that only looks like it', () => {
    const line = (local: string, remote: string, state: string) =>
      `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0`
    const any = '00000000000000000000000000000000'
    const mapped = '0000000000000000FFFF00000100007F'
    const tcp = [line(`${any}:1F90`, `${any}:0000`, '0A'), line(`${mapped}:1F90`, `${mapped}:D431`, '01')].join('\n')
    expect(socketsIn(tcp, 'tcp', 8080)).toEqual([
      { protocol: 'tcp', local: '[::]:8080', remote: null, state: 'listen', uid: '1000', inode: '4711' },
      {
        ...{ protocol: 'tcp', local: '127.0.0.1:8080', remote: '127.0.0.1:54321' },
        ...{ state: 'established', uid: '1000', inode: '4711' },
      },
    ])
    expect(socketsIn(line('0100007F:0035', '00000000:0000', '07'), 'udp', 53)).toMatchObject([
      { local: '127.0.0.1:53', state: 'bound' },
    ])
    expect(socketsIn(line('0100007F:0035', '00000000:0000', '07'), 'udp', 0x7f00)).toEqual([])
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

  test('what is rehearsed is who the process is: its start, command line, user and service', async () => {
    const child = await start('echo on; sleep 60; :', 'mysqldump', '--password', 'hunter2hunter2')
    const asked = { pid: child.pid, start_time: startTime(child.pid) }
    const outcome = await ask(device, procKill, asked, { rehearse: true })
    const told = ((outcome.result?.told ?? []) as string[]).join('\n')
    expect(told).toMatch(
      new RegExp(`^process ${child.pid} \\(bash\\) of user \\S+, below process ${process.pid}$`, 'm'),
    )
    expect(told).toMatch(/^started: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/m)
    expect(told).toMatch(/^command line: bash -c .*mysqldump/m)
    expect(told).toMatch(/^service: \S/m)
    expect(told).not.toContain('hunter2')
    expect(outcome.result?.untried).toEqual(['What it does with SIGTERM shows only when it gets it.'])
    expect(child.exitCode ?? child.signalCode).toBeNull()
    const earlier = String(BigInt(asked.start_time) - 1n)
    const other = await ask(device, procKill, { ...asked, start_time: earlier }, { rehearse: true })
    expect(other).toMatchObject({ ok: false, code: 'conflict' })
  })

  const inNamespace = spawnSync('unshare', ['--user', '--map-root-user', '--pid', '--fork', 'true']).status === 0

  ;(inNamespace ? test : test.skip)('a process in another namespace of processes is refused', async () => {
    const child = await start(
      'unshare --user --map-root-user --pid --fork bash -c "echo on; sleep 60; :" in-a-namespace',
    )
    const inside = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ')[0])
    const asked = { pid: inside, start_time: startTime(inside), signal: 'KILL' }
    const listed = await done(device, procList, { name: 'in-a-namespace' })
    expect((listed.processes as Listed[]).map(({ pid }) => pid)).not.toContain(inside)
    expect(listed).toMatchObject({ left_out: 1, left_out_in: [expect.any(String)] })
    expect(await fault(device, procKill, asked)).toMatchObject({
      code: 'blocked',
      message: expect.stringContaining('another namespace of processes'),
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
      ...{ cgroups: ['0::/system.slice/x.service'], numbers: ['7'], namespace: 'pid:[1]', words: ['x'], name: 'x' },
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
    ])
      expect([words, why({ words })]).toEqual([words, 'is one of the services of Nightshift'])
    expect(why({ cgroups: ['0::/system.slice/nightshift-worker.service'] })).toBe(
      'is one of the services of Nightshift',
    )
    for (const words of [
      ['psql', 'nightshift'],
      ['tail', '/var/log/nightshift'],
      ['node', 'server.js', 'nightshift'],
    ])
      expect([words, why({ words })]).toEqual([words, null])
  })
})

describe('unit', () => {
  // A scripted systemctl with what systemd 252 answered; test/long/services.test.ts asks a real one.

  const answer = (changes: Record<string, string> = {}) =>
    Object.entries({
      ...{ Type: 'simple', MainPID: '29713', Result: 'success', NRestarts: '0', ExecMainStatus: '0' },
      ...{ MemoryCurrent: '[not set]', TasksCurrent: '3', Id: 'web.service', RequiredBy: 'front.service' },
      ...{ BoundBy: '', ConsistsOf: '', TriggeredBy: '', PropagatesStopTo: '', Description: 'A web server' },
      ...{ LoadState: 'loaded', ActiveState: 'active', SubState: 'running', UnitFileState: 'static' },
      ...{ FragmentPath: '/etc/systemd/system/web.service', NeedDaemonReload: 'no' },
      ...{ StateChangeTimestamp: 'Mon 2026-11-23 16:43:06 UTC', InvocationID: 'af60794c9eb34c56987a3f2299666438' },
      ...changes,
    })
      .map(([name, value]) => `${name}=${value}`)
      .join('\n')

  let place: ReturnType<typeof temporaryDirectory>
  let device: Device
  let show: DeviceCapability<{ unit: string }>
  let restart: typeof show
  let start: typeof show
  let stop: typeof show

  /** `shown` is what `show` prints, one file a unit; the verbs run `acts`. */
  function scripted(shown: Record<string, string>, acts = 'true'): void {
    for (const [unit, text] of Object.entries(shown)) writeFileSync(join(place.path, unit), text)
    const script = `#!/bin/sh
cd ${place.path}
echo "$*" >> asked
case "$1" in
  show) shift 4; first=yes; for unit; do
    [ $first = yes ] || echo; first=no
    if [ -f "$unit" ]; then cat "$unit"; echo; else echo "Id=$unit"; echo "LoadState=not-found"; fi
  done ;;
  *) ${acts} ;;
esac
`
    const program = join(place.path, 'systemctl')
    writeFileSync(program, script)
    chmodSync(program, 0o755)
    ;[show, restart, start, stop] = servicesBy([program]) as [typeof show, typeof show, typeof show, typeof show]
  }

  beforeEach(() => {
    place = temporaryDirectory()
    device = deviceOf(join(place.path, 'state'), {})
  })
  afterEach(() => place.remove())

  const askedFor = () => readFileSync(join(place.path, 'asked'), 'utf8').trim().split('\n')

  test('a service is shown as systemd says it, with numbers as numbers and nothing for what it does not know', async () => {
    scripted({ 'web.service': answer({ Description: 'A \u001b[31mred\u202e server', NRestarts: '4' }) })
    const state = await done(device, show, { unit: 'web.service' })
    expect(state).toMatchObject({ active: 'active', sub: 'running', main_pid: 29_713, restarts: 4, tasks: 3 })
    expect(state).not.toHaveProperty('memory_bytes')
    expect(state.description).toBe('A red server')
  })

  test('a service that is not there is named, and nothing is started', async () => {
    scripted({})
    expect(await fault(device, restart, { unit: 'nginx.service' })).toEqual({
      code: 'not_found',
      message: 'There is no service nginx.service here. "systemctl list-units --type=service" lists them.',
    })
    expect(askedFor().some((words) => words.includes('restart'))).toBe(false)
  })

  test('the rehearsal says what stops with it, what nobody can know, and how to undo it', async () => {
    scripted({
      'web.service': answer({ TriggeredBy: 'web.socket', NeedDaemonReload: 'yes' }),
      'front.service': answer({ Id: 'front.service', RequiredBy: '' }),
    })
    const told = async (capability: typeof show) => {
      const outcome = await ask(device, capability, { unit: 'web.service' }, { rehearse: true })
      return outcome.ok
        ? (outcome.result as { told: string[]; untried: string[]; rests_on: string })
        : Promise.reject(outcome)
    }
    const restarted = await told(restart)
    expect(restarted.told).toEqual(
      expect.arrayContaining([
        'now active (running) since Mon 2026-11-23 16:43:06 UTC, main process 29713',
        'stops and starts with it: front.service',
        'undo: none; what it held in memory is gone',
      ]),
    )
    expect(restarted.untried.join(' ')).toMatch(/present configuration.*changed on disk/)
    const stopped = await told(stop)
    expect(stopped.told).toEqual(
      expect.arrayContaining(['stops with it: front.service', 'undo: service_start of web.service']),
    )
    expect(stopped.untried.join(' ')).toContain('web.socket may start it again')
  })

  test('a person agrees to this run of a service that is well, and to any run of one that keeps failing', async () => {
    const restsOn = async (changes: Record<string, string>) => {
      scripted({ 'web.service': answer({ RequiredBy: '', ...changes }) })
      const outcome = await ask(device, restart, { unit: 'web.service' }, { rehearse: true })
      return outcome.ok && outcome.result.rests_on
    }
    expect(await restsOn({})).not.toBe(await restsOn({ InvocationID: 'b'.repeat(32) }))
    const failing = { NRestarts: '7', ActiveState: 'activating', SubState: 'auto-restart' }
    expect(await restsOn(failing)).toBe(await restsOn({ ...failing, NRestarts: '9', InvocationID: 'c'.repeat(32) }))
    expect(await restsOn(failing)).not.toBe(await restsOn({}))
  })

  test('a service that ends right after its start has failed, whatever systemctl said', async () => {
    scripted(
      { 'web.service': answer({ RequiredBy: '' }) },
      `sed -i 's/^ActiveState=.*/ActiveState=failed/; s/^Result=.*/Result=exit-code/' web.service`,
    )
    expect(await fault(device, restart, { unit: 'web.service' })).toMatchObject({
      code: 'failed',
      message: expect.stringContaining('did not stay up: failed (running)'),
    })
  })

  test('what systemd refuses comes with its words', async () => {
    scripted({ 'web.service': answer() }, `echo 'Failed to restart web.service: Access denied' >&2; exit 4`)
    expect((await fault(device, restart, { unit: 'web.service' })).message).toContain('Access denied')
  })

  test.each([
    ['Nightshift itself', 'nightshift-agent.service', answer(), 'blocked'],
    ['what carries the system', 'dbus.service', answer(), 'blocked'],
    ['an alias of what carries the system', 'bus.service', answer({ Id: 'dbus-broker.service' }), 'blocked'],
    ['a service that switches the device off', 'systemd-poweroff.service', answer(), 'blocked'],
    ['an alias of one', 'off.service', answer({ Id: 'systemd-reboot.service' }), 'blocked'],
    ['a service that formats a disk', 'systemd-makefs@dev-sdb1.service', answer(), 'blocked'],
    ['a shell of root', 'debug-shell.service', answer(), 'blocked'],
    ['a masked service', 'web.service', answer({ LoadState: 'masked' }), 'conflict'],
    ['one that systemd cannot load', 'web.service', answer({ LoadState: 'bad-setting' }), 'conflict'],
  ])('%s is not touched under any approval', async (_, unit, text, code) => {
    scripted({ [unit]: text })
    for (const capability of [start, stop]) expect(await fault(device, capability, { unit })).toMatchObject({ code })
    expect(
      existsSync(join(place.path, 'asked')) ? askedFor().filter((words) => /^(start|stop)/.test(words)) : [],
    ).toEqual([])
  })

  test('what stops with what stops with it is told, and nothing that takes the agent or the system along is done', async () => {
    const chain = (last: string) => ({
      'web.service': answer({ RequiredBy: 'front.service idle.service' }),
      'front.service': answer({ Id: 'front.service', RequiredBy: '', BoundBy: last }),
      'idle.service': answer({ Id: 'idle.service', ActiveState: 'inactive', RequiredBy: 'dbus.service' }),
      [last]: answer({ Id: last, RequiredBy: '', ConsistsOf: 'web.service' }),
    })
    scripted(chain('api.service'))
    const outcome = await ask(device, stop, { unit: 'web.service' }, { rehearse: true })
    expect(outcome).toMatchObject({
      ok: true,
      result: { told: expect.arrayContaining(['stops with it: api.service, front.service']) },
    })
    for (const last of ['nightshift-agent.service', 'dbus.service']) {
      scripted(chain(last))
      for (const capability of [stop, restart]) {
        const refused = await fault(device, capability, { unit: 'web.service' })
        expect(refused).toMatchObject({
          code: 'blocked',
          message: expect.stringContaining(`${last} stops with web.service`),
        })
      }
      expect((await ask(device, stop, { unit: 'web.service' }, { rehearse: true })).ok).toBe(false)
    }
    expect(askedFor().some((words) => /^(restart|stop)/.test(words))).toBe(false)
  })

  test('nobody is asked to start what runs, or to stop what does not', async () => {
    scripted({ 'web.service': answer({ RequiredBy: '' }) })
    const starts = await ask(device, start, { unit: 'web.service' }, { rehearse: true })
    expect(starts).toMatchObject({ ok: false, code: 'conflict', message: expect.stringContaining('runs already') })
    scripted({ 'web.service': answer({ RequiredBy: '', ActiveState: 'inactive' }) })
    const stops = await ask(device, stop, { unit: 'web.service' }, { rehearse: true })
    expect(stops).toMatchObject({ ok: false, code: 'conflict', message: expect.stringContaining('stopped already') })
  })

  test('a service on which two hundred others hang is not stopped', async () => {
    const names = Array.from({ length: 201 }, (_, at) => `s${at}.service`)
    scripted({ 'web.service': answer({ RequiredBy: names.join(' ') }) })
    expect(await fault(device, stop, { unit: 'web.service' })).toMatchObject({ code: 'blocked' })
  })

  test.each([
    '--force.service',
    'a/b.service',
    'a b.service',
    'web',
    'web.target',
    '-.service',
    'a;b.service',
    `${'a'.repeat(260)}.service`,
  ])('no option, path or other unit rides in a name: %s', (unit) =>
    expect(serviceRestart.args.safeParse({ unit }).success).toBe(false),
  )

  test('a model may leave out the suffix, and nothing else gets in', () => {
    expect(serviceRestart.toArgs({ unit: 'nginx' })).toEqual({ unit: 'nginx.service' })
    expect(serviceRestart.toArgs({ unit: 'nginx.service' })).toEqual({ unit: 'nginx.service' })
    expect(serviceStop.input.safeParse({ unit: '../x' }).success).toBe(false)
  })

  test('sudoers is asked for exactly these words, and its line is exact', async () => {
    const asked: string[][] = []
    const run = async (argv: readonly string[]) => {
      asked.push([...argv])
      return { exitCode: 1, signal: null, stdout: '', stderr: '', truncated: false, stoppedBy: null }
    }
    const privilege = await privilegeOf(systemdBy(undefined), 'restart', 'a.service', { ...contextOf(device), run })
    expect(['root', 'unknown']).toContain(privilege)
    for (const words of asked)
      expect(words.slice(-3)).toEqual([expect.stringMatching(/systemctl$/), 'restart', 'a.service'])
    expect(sudoersLine('nightshift-agent', ['/usr/bin/systemctl', 'restart', 'getty@tty1:0.service'])).toBe(
      'nightshift-agent ALL=(root) NOPASSWD: /usr/bin/systemctl restart getty@tty1\\:0.service',
    )
  })

  test('the proof of a restart is the run that systemd began then', () => {
    const promise = serviceRestart.promise?.({ unit: 'web' })
    const state = {
      unit: 'web.service',
      active: 'active',
      sub: 'running',
      type: 'simple',
      result: 'success',
      invocation: 'a',
    }
    const later = (seen: object, then: object | null = { after: state }) =>
      promise?.holds({ result: { ...state, ...seen } }, then as never)
    expect(promise?.look(null)).toEqual({ capability: 'service.show', args: { unit: 'web.service' } })
    expect(later({})).toMatchObject({ holds: true })
    expect(later({ invocation: 'b' })).toMatchObject({
      holds: false,
      observed: expect.stringContaining('started again since'),
    })
    expect(later({ active: 'failed' })).toMatchObject({ holds: false })
    expect(later({ type: 'oneshot', active: 'inactive' })).toMatchObject({ holds: true })
    expect(later({}, null)).toBeNull()
  })
})
