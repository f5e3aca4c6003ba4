import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { compareLeft } from '../../../../domain/undo.ts'
import { servicesBy } from '../../../../mesh/agent/capabilities/unit.ts'
import type { DeviceCapability } from '../../../../mesh/agent/capability.ts'
import { privilegeOf, systemdBy } from '../../../../mesh/agent/systemd.ts'
import { serviceRestart, serviceStop, sudoersLine } from '../../../../mesh/specs/unit.ts'
import { ask, contextOf, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

// A scripted systemctl with what systemd 252 answered; test/long/services.test.ts asks a real one.

const answer = (changes: Record<string, string> = {}) =>
  Object.entries({
    Type: 'simple',
    MainPID: '29713',
    Result: 'success',
    NRestarts: '0',
    ExecMainStatus: '0',
    MemoryCurrent: '[not set]',
    TasksCurrent: '3',
    Id: 'web.service',
    RequiredBy: 'front.service',
    BoundBy: '',
    ConsistsOf: '',
    TriggeredBy: '',
    PropagatesStopTo: '',
    Description: 'A web server',
    LoadState: 'loaded',
    ActiveState: 'active',
    SubState: 'running',
    UnitFileState: 'static',
    FragmentPath: '/etc/systemd/system/web.service',
    NeedDaemonReload: 'no',
    StateChangeTimestamp: 'Mon 2026-11-23 16:43:06 UTC',
    InvocationID: 'af60794c9eb34c56987a3f2299666438',
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

test('a service is shown as systemd reports it, with numbers as numbers and without unknown values', async () => {
  scripted({ 'web.service': answer({ Description: 'A \u001b[31mred\u202e server', NRestarts: '4' }) })
  const state = await done(device, show, { unit: 'web.service' })
  expect(state).toMatchObject({ active: 'active', sub: 'running', main_pid: 29_713, restarts: 4, tasks: 3 })
  expect(state).not.toHaveProperty('memory_bytes')
  expect(state.description).toBe('A red server')
})

test('an unknown service is named, and nothing is started', async () => {
  scripted({})
  expect(await fault(device, restart, { unit: 'nginx.service' })).toEqual({
    code: 'not_found',
    message: 'This device has no service nginx.service. "systemctl list-units --type=service" lists the services.',
  })
  expect(askedFor().some((words) => words.includes('restart'))).toBe(false)
})

test('the rehearsal shows what stops with the service, what is unknown, and how to undo it', async () => {
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
      'undo: none; data in the memory of the service is lost',
    ]),
  )
  expect(restarted.untried.join(' ')).toMatch(/present configuration.*changed on disk/)
  const stopped = await told(stop)
  expect(stopped.told).toEqual(
    expect.arrayContaining(['stops with it: front.service', 'undo: service_start of web.service']),
  )
  expect(stopped.untried.join(' ')).toContain('web.socket may start the unit again')
})

test('a person approves this run of a healthy service, and any run of a failing one', async () => {
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

test('a service that ends right after its start has failed, whatever systemctl returned', async () => {
  scripted(
    { 'web.service': answer({ RequiredBy: '' }) },
    `sed -i 's/^ActiveState=.*/ActiveState=failed/; s/^Result=.*/Result=exit-code/' web.service`,
  )
  expect(await fault(device, restart, { unit: 'web.service' })).toMatchObject({
    code: 'failed',
    message: expect.stringContaining('did not stay up: failed (running)'),
  })
})

test('a refusal of systemd has its words', async () => {
  scripted({ 'web.service': answer() }, `echo 'Failed to restart web.service: Access denied' >&2; exit 4`)
  expect((await fault(device, restart, { unit: 'web.service' })).message).toContain('Access denied')
})

test('a start or a stop for one run of a service touches no other, and a stop lists what stopped with it', async () => {
  scripted(
    { 'web.service': answer({ RequiredBy: '' }) },
    "sed -i 's/^ActiveState=.*/ActiveState=inactive/' web.service",
  )
  const other = { unit: 'web.service', if_run: 'b'.repeat(32) }
  const stale = { code: 'conflict', message: expect.stringContaining('nothing was done') }
  expect(await fault(device, stop, other)).toMatchObject(stale)
  expect(await fault(device, start, { unit: 'web.service', if_run: 'none' })).toMatchObject(stale)
  expect(askedFor().some((words) => /\b(?:stop|start) web/.test(words))).toBe(false)
  const own = { unit: 'web.service', if_run: 'af60794c9eb34c56987a3f2299666438' }
  const result = await done(device, stop, own)
  expect(result).toMatchObject({ before: { active: 'active' }, after: { active: 'inactive' }, taken: [] })
  const { undo } = serviceStop
  expect(undo?.of(own, result)).toEqual({
    tool: 'service_start',
    arguments: { unit: 'web.service', if_run: 'none' },
    left: { 'web.service': 'stopped since Mon 2026-11-23 16:43:06 UTC' },
  })
  // A start alone does not bring back what stopped with it, and an older agent does not say what
  // that was.
  expect(undo?.of(own, { ...result, taken: ['front.service'] })).toEqual({
    none: expect.stringContaining('front.service'),
  })
  const lie = { ...result, after: { ...(result.after as object), unit: 'sshd.service' } }
  expect(undo?.of(own, lie)).toMatchObject({ arguments: { unit: 'web.service' } })
  expect(undo?.of(own, { ...result, taken: undefined })).toEqual({ none: expect.stringContaining('older') })
  expect(serviceRestart.undo).toBeUndefined()
})

test('a service that was started and stopped again after a stop differs from the state of the stop', async () => {
  const stopped = (at: string) => answer({ RequiredBy: '', ActiveState: 'inactive', StateChangeTimestamp: at })
  const unit = { unit: 'web.service' }
  const seen = async (at: string) => {
    scripted({ 'web.service': stopped(at) })
    return serviceStop.undo?.facts(await done(device, show, unit), unit, []) ?? null
  }
  const left = (await seen('Mon 2026-11-23 16:43:06 UTC'))!
  expect(compareLeft(left, await seen('Mon 2026-11-23 16:43:06 UTC'), 'inc_1').isAsLeft).toBe(true)
  expect(compareLeft(left, await seen('Mon 2026-11-23 17:00:00 UTC'), 'inc_1')).toEqual({
    isAsLeft: false,
    observed:
      'the state changed since the write of inc_1: web.service is stopped since Mon 2026-11-23 17:00:00 UTC, and was stopped since Mon 2026-11-23 16:43:06 UTC then',
  })
  // systemd forgot when, or an older version did not store it: only that it is stopped is known.
  expect(compareLeft(left, await seen(''), 'inc_1').isAsLeft).toBe(true)
  expect(compareLeft({ 'web.service': 'stopped' }, left, 'inc_1').isAsLeft).toBe(true)
  expect(compareLeft(left, { 'web.service': 'active in run a' }, 'inc_1').isAsLeft).toBe(false)
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

test('indirect dependents are listed too, and a stop that would take the agent or the system along is refused', async () => {
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

test('nobody is asked to start a running service, or to stop a stopped one', async () => {
  scripted({ 'web.service': answer({ RequiredBy: '' }) })
  const starts = await ask(device, start, { unit: 'web.service' }, { rehearse: true })
  expect(starts).toMatchObject({ ok: false, code: 'conflict', message: expect.stringContaining('already runs') })
  scripted({ 'web.service': answer({ RequiredBy: '', ActiveState: 'inactive' }) })
  const stops = await ask(device, stop, { unit: 'web.service' }, { rehearse: true })
  expect(stops).toMatchObject({ ok: false, code: 'conflict', message: expect.stringContaining('already stopped') })
})

test('a service with more than two hundred dependents is not stopped', async () => {
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
])('a name cannot contain an option, a path or another unit: %s', (unit) =>
  expect(serviceRestart.args.safeParse({ unit }).success).toBe(false),
)

test('a model may leave out the suffix, and no other variant is accepted', () => {
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
