import { expect, test } from '@jest/globals'
import type { HostState } from '../../domain/platform.ts'
import { conditionsIn, fingerprintOf, type LabCondition, webhookBody } from '../../lab/conditions.ts'
import { healthOf, type NodeLook } from '../../lab/look.ts'
import { afterLook, type ProberMemory } from '../../lab/prober.ts'

const nothing: ProberMemory = { firing: {}, unsent: [], disagreeing: {} }
const bad = (instance: string): LabCondition => ({ labels: { alertname: 'service_down', instance }, annotations: {} })
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))

/** Looks once per second; each letter of a look is something that is bad. */
function watch(...looks: string[]): ProberMemory {
  return looks.reduce((memory, look, second) => afterLook(memory, [...look].map(bad), at(second)), nothing)
}

test.each([
  ['one bad look', ['a'], []],
  ['two in a row', ['a', 'a'], ['a firing']],
  ['a bad look between good ones', ['a', '', 'a', ''], []],
  ['a good look between bad ones', ['a', 'a', '', 'a'], ['a firing']],
  ['two good looks', ['a', 'a', '', ''], ['a firing', 'a resolved']],
  ['two things at once', ['ab', 'ab'], ['a+b firing']],
  ['one after the other', ['a', 'ab', 'ab'], ['a firing', 'b firing']],
  ['again after its end', ['a', 'a', '', '', 'a', 'a'], ['a firing', 'a resolved', 'a firing']],
])('%s', (_, looks, told) => {
  const { unsent } = watch(...looks)
  expect(
    unsent.map(({ alerts }) => `${alerts.map(({ labels }) => labels.instance).join('+')} ${alerts[0]!.status}`),
  ).toEqual(told)
})

test('a sender without ends repeats a lasting fault once, and never sends an end', () => {
  const cron = (instance: string): LabCondition => ({
    ...bad(instance),
    labels: { ...bad(instance).labels, monitor: 'cron-check' },
  })
  const look = (memory: ProberMemory, conditions: LabCondition[], second: number) =>
    afterLook(memory, conditions, at(second))
  let memory = nothing
  for (let second = 0; second < 60; second += 1) memory = look(memory, [cron('a'), bad('b')], second)
  const [together, ...repeats] = memory.unsent
  expect(together?.alerts.map(({ labels }) => labels.instance)).toEqual(['a'])
  expect(repeats.map(({ alerts }) => alerts.map(({ labels, status }) => `${labels.instance} ${status}`))).toEqual([
    ['b firing'],
    ['a firing'],
  ])
  const [first, , repeated] = memory.unsent.map(({ alerts }) => alerts[0])
  expect(repeated).toEqual(first)
  for (const second of [60, 61]) memory = look({ ...memory, unsent: [] }, [], second)
  expect(memory.unsent.map(({ alerts }) => alerts.map(({ labels }) => labels.instance))).toEqual([['b']])
  expect(memory.firing).toEqual({})
})

test('an alert begins when it fires and keeps that time until it ends', () => {
  const [fired, ended] = watch('a', 'a', '', '').unsent.map(({ alerts }) => alerts[0]!)
  expect(fired).toMatchObject({ startsAt: at(1).toISOString(), endsAt: '0001-01-01T00:00:00Z' })
  expect(ended).toMatchObject({ startsAt: at(1).toISOString(), endsAt: at(3).toISOString() })
})

test('a fingerprint is made of the labels alone, in any order', () => {
  expect(fingerprintOf({ a: '1', b: '2' })).toBe(fingerprintOf({ b: '2', a: '1' }))
  expect(fingerprintOf({ a: '1', b: '2' })).not.toBe(fingerprintOf({ a: '12', b: '' }))
})

test('a body has the common labels of its alerts', () => {
  const [{ alerts }] = watch('ab', 'ab').unsent as [ProberMemory['unsent'][number]]
  expect(webhookBody('service_down', alerts)).toMatchObject({
    version: '4',
    status: 'firing',
    groupKey: '{}:{alertname="service_down"}',
    commonLabels: { alertname: 'service_down' },
  })
})

const well: NodeLook = {
  plan: { id: 'n', shard: 's', region: 'r', role: 'replica', diskQuotaBytes: 100 },
  directory: '/srv/r',
  process: 'running',
  answers: true,
  lagSeconds: 0.2,
  bytes: { data: 10 },
  drift: [],
  runawaySeconds: null,
  appLog: null,
  brokenRoutes: null,
  missingPackage: null,
  backupSince: null,
}
const web: NodeLook = { ...well, plan: { ...well.plan, role: 'web' }, lagSeconds: null }

test.each<[string, NodeLook, string, string | null, string[]]>([
  ['all is well', well, 'nominal', null, []],
  // Degraded, but nobody is woken for it.
  ['a little behind', { ...well, lagSeconds: 2.5 }, 'degraded', 'replica is 3 s behind', []],
  ['far behind', { ...well, lagSeconds: 42 }, 'critical', 'replica is 42 s behind', ['replication_lag']],
  [
    // Its lag is the alert, not its process: there is one cause and one incident.
    'a stopped replica',
    { ...well, process: 'stopped', answers: false, lagSeconds: 42 },
    'critical',
    'replica is 42 s behind; process is stopped',
    ['replication_lag'],
  ],
  [
    'a stopped web node',
    { ...web, process: 'stopped', answers: false },
    'critical',
    'process is stopped',
    ['service_down'],
  ],
  [
    'a dead web node',
    { ...web, process: 'gone', answers: false },
    'critical',
    'process is not running',
    ['service_down'],
  ],
  ['a web node that hangs', { ...web, answers: false }, 'critical', 'process does not answer', ['service_down']],
  ['a disk nearly full', { ...web, bytes: { tmp: 92 } }, 'degraded', 'disk 92 % of quota', ['disk_pressure']],
  [
    'a disk over its quota',
    { ...web, bytes: { tmp: 91, logs: 40 } },
    'critical',
    'disk 131 % of quota',
    ['disk_pressure'],
  ],
  [
    'drift',
    { ...web, drift: ['a is 1, should be 2'] },
    'degraded',
    'configuration drifted: a is 1, should be 2',
    ['config_drift'],
  ],
  [
    'routes that are no JSON',
    { ...web, brokenRoutes: '/srv/site/routes.json' },
    'critical',
    'site/routes.json is no JSON',
    ['bad_deploy'],
  ],
  [
    'a package that is not there',
    { ...web, missingPackage: 'nightly-tariffs' },
    'degraded',
    'package nightly-tariffs is not installed',
    ['missing_package'],
  ],
  // A notice: nobody has to do anything.
  ['a backup that runs', { ...web, backupSince: '2026-11-21T02:00:00Z' }, 'nominal', null, ['backup_running']],
])('%s', (_, look, status, reason, alerts) => {
  expect(healthOf(look, 3)).toEqual({ status, reason })
  expect(conditionsIn({ nodes: [look], hosts: [], vms: [] }, 3).map(({ labels }) => labels.alertname)).toEqual(alerts)
})

const host: HostState = { id: 'h', region: 'r', rack: 'k', state: 'live', ramMib: 1, cpuMc: 1 }
const vm = { id: 'v', host: 'h', ramMib: 1, cpuMc: 1, haGroup: null, priority: 0, tenant: null }

test.each<[string, HostState['state'], string[], string[]]>([
  ['a host that runs VMs', 'live', ['h'], []],
  ['a dead host, whatever beat it left', 'dead', ['h'], ['host_down critical']],
  ['a host to be emptied', 'draining', ['h'], ['host_draining warning']],
  ['a host to be emptied that is empty', 'draining', ['elsewhere'], []],
])('%s', (_, state, on, alerts) => {
  const conditions = conditionsIn({ nodes: [], hosts: [{ ...host, state }], vms: [{ plan: vm, on }] }, 3)
  expect(conditions.map(({ labels }) => `${labels.alertname} ${labels.severity}`)).toEqual(alerts)
})
