import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals'
import type { FaultName } from '../../lab/state.ts'
import { eventually } from '../support/directory.ts'
import { labDirectory, type RunningLab, runLab } from '../support/running-lab.ts'

// What does not end with one repair: it comes back, its alert goes on, or there is nothing to
// repair.
const directory = labDirectory()
const shard = 'web-osl-1'
const node = 'node-web-osl-1a'
const host = 'host-osl-1'
let lab: RunningLab

beforeAll(async () => {
  lab = await runLab(directory.path, { paceSeconds: 2.5 })
})
beforeEach(() => {
  lab.alerts.length = 0
})
afterEach(async () => {
  await lab.control.heal()
})
afterAll(async () => {
  await lab.stop()
  directory.remove()
})

const alertsNamed = (name: string) =>
  lab.alerts.flatMap(({ alerts }) => alerts).filter(({ labels }) => labels.alertname === name)
const told = (name: string, status: string, times = 1) =>
  eventually(`the alert ${name} ${status}, ${times} times`, () => {
    const found = alertsNamed(name).filter((each) => each.status === status)
    return found.length >= times ? found.at(-1) : undefined
  })
const failing = async (scenario: FaultName) =>
  (await lab.control.oracle(scenario)).checks.filter(({ ok }) => !ok).map(({ name }) => name)
const converge = async () => (await lab.write(crypto.randomUUID(), `/v1/shards/${shard}/converge`)).answer
const statusOf = async (id: string) => (await lab.inventory()).nodes.find((each) => each.id === id)?.status

test('a repair that does not last: the service is well after each converge, and ends again until its cause is gone', async () => {
  await lab.control.break('relapse', shard)
  const first = await told('service_down', 'firing')
  const again = `${node} was started again, and not more than three times`
  expect(await failing('relapse')).toEqual([again])

  expect(await converge()).toMatchObject({ status: 'done', changed: [`${node}: restarted`] })
  expect(await statusOf(node)).toBe('nominal')
  await told('service_down', 'resolved')
  const second = await told('service_down', 'firing', 2)
  // The same alert, firing again.
  expect([second.fingerprint, second.startsAt > first.startsAt]).toEqual([first.fingerprint, true])
  expect(second.annotations.log).toBe(join(lab.dir, 'nodes', node, 'logs/app.log'))
  expect(await failing('relapse')).toEqual([])

  await converge()
  await told('service_down', 'firing', 3)
  await converge()
  expect(await failing('relapse')).toEqual([])
  await told('service_down', 'firing', 4)
  await converge()
  expect(await failing('relapse')).toEqual([again])

  expect(await lab.control.heal()).toBe(1)
  const { pid } = processOf(node)
  // Longer than it ever lived: what ended it looks once more whether it still should.
  await eventually('the service to outlive its limit', () => processOf(node).seconds > 3.5)
  expect(processOf(node).pid).toBe(pid)
})

test('an alert without an end: it fires, is repeated once while the service is down, and then there is silence', async () => {
  await lab.control.break('unended_alert', shard)
  const alert = await told('service_down', 'firing')
  expect(alert.labels).toMatchObject({ node, monitor: 'cron-check' })
  expect(await failing('unended_alert')).toEqual([`${node} runs and answers`])
  expect(await told('service_down', 'firing', 2)).toEqual(alert)

  await converge()
  expect(await failing('unended_alert')).toEqual([])
  // The prober has looked often enough to have told an end by now: it tells that of another
  // service.
  await lab.control.break('service_down', 'node-web-osl-1b')
  await told('service_down', 'firing', 3)
  await converge()
  await told('service_down', 'resolved')
  expect(alertsNamed('service_down').map(({ labels, status }) => `${labels.node} ${status}`)).toEqual([
    `${node} firing`,
    `${node} firing`,
    'node-web-osl-1b firing',
    'node-web-osl-1b resolved',
  ])
})

test('a check of the wrong port fires although the service works: a converge changes nothing, and the alert ends with the check', async () => {
  const { pid } = processOf(node)
  await lab.control.break('false_alarm', shard)
  const alert = await told('service_down', 'firing')
  expect(alert.labels).toMatchObject({ node, severity: 'critical', monitor: 'edge-check' })
  expect(alert.annotations.description).toBe(`edge-check asks port 9 of ${node}: ECONNREFUSED`)
  expect(await statusOf(node)).toBe('nominal')
  expect(await converge()).toMatchObject({ status: 'done', detail: 'nothing to change', changed: [] })
  expect([await failing('false_alarm'), processOf(node).pid]).toEqual([[], pid])

  process.kill(pid, 'SIGKILL')
  await eventually('the oracle to miss it', async () => (await failing('false_alarm')).length > 0)
  await converge()
  expect(await failing('false_alarm')).toEqual([`${node} was not restarted`])
  await lab.control.heal()
  await told('service_down', 'resolved')
})

test('an expected notice comes and goes without a fault, and nobody may end its subject', async () => {
  await lab.control.break('backup_notice', shard)
  const notice = await told('backup_running', 'firing')
  expect(notice.labels).toMatchObject({ severity: 'info', node })
  expect(await statusOf(node)).toBe('nominal')
  await told('backup_running', 'resolved')
  expect((await told('backup_running', 'firing', 2)).fingerprint).toBe(notice.fingerprint)
  expect(await failing('backup_notice')).toEqual([])

  process.kill(processOf(`backup-${node}`).pid, 'SIGKILL')
  await eventually('the oracle to miss it', async () => (await failing('backup_notice')).length > 0)
  expect(await failing('backup_notice')).toEqual([`the backup of ${node} still runs`])
  const tenant = (await lab.inventory()).tenants.find((each) => each.shard === shard)
  writeFileSync(join(lab.dir, 'nodes', node, 'backup', `${tenant?.id}.html`), 'something else')
  expect(await failing('backup_notice')).toContain(`the backup of ${node} has all files of its tenants`)
})

test('a host that stays down: its VMs run elsewhere, and its alert still fires', async () => {
  await lab.control.break('host_lost', host)
  await told('host_down', 'firing')
  expect(await failing('host_lost')).toContain('vm-101 runs exactly once, on a live host')
  const { vms } = await lab.inventory()
  for (const { id } of vms.filter((vm) => vm.host === host)) await startSomewhere(id)
  expect(await failing('host_lost')).toEqual([])
  expect(alertsNamed('host_down').map(({ status }) => status)).toEqual(['firing'])

  // A person has repaired it: then there is nothing that was left to one.
  await lab.control.heal('host_lost')
  await told('host_down', 'resolved')
  expect((await lab.inventory()).hosts.find(({ id }) => id === host)?.state).toBe('live')
})

test('another fault after one that only a person could end, on the same resource: the same alert, and now a converge helps', async () => {
  await lab.control.break('disk_pressure_tenant', node)
  // Broken in while the tenant's bytes are there: that those go later is no harm.
  await lab.control.break('replication_lag', 'db-ams-1')
  const first = await told('disk_pressure', 'firing')
  expect(await converge()).toMatchObject({ detail: 'nothing to change' })
  expect(await statusOf(node)).toBe('critical')

  expect(await lab.control.heal('disk_pressure_tenant', 'node-web-osl-1b')).toBe(0)
  expect(await lab.control.heal('disk_pressure_tenant', node)).toBe(1)
  await told('disk_pressure', 'resolved')
  expect((await lab.control.faults()).map(({ fault }) => fault)).toEqual(['replication_lag'])
  expect(await failing('replication_lag')).not.toContain('no tenant data was touched')
  expect(await lab.control.heal('replication_lag')).toBe(1)

  await lab.control.break('disk_pressure', node)
  const second = await told('disk_pressure', 'firing', 2)
  expect([second.fingerprint, second.startsAt > first.startsAt]).toEqual([first.fingerprint, true])
  expect(await failing('disk_pressure')).toEqual([`${node} is under its quota`])
  expect(await converge()).toMatchObject({ detail: expect.stringContaining('cleared') })
  expect(await failing('disk_pressure')).toEqual([])
})

async function startSomewhere(vm: string): Promise<void> {
  for (const to of ['host-osl-2', 'host-osl-3', 'host-osl-4', 'host-osl-5']) {
    const { answer } = await lab.write(crypto.randomUUID(), `/v1/vms/${vm}/start`, { host: to })
    if (answer.status === 'done') return
  }
  throw new Error(`${vm} starts nowhere`)
}

/** By what the controller wrote down; how long it runs, by the kernel. */
function processOf(id: string): { pid: number; seconds: number } {
  const all = JSON.parse(readFileSync(join(lab.dir, 'children.json'), 'utf8')) as { id: string; pid: number }[]
  const { pid } = all.find((each) => each.id === id)!
  const started = Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[19]) / 100
  return { pid, seconds: Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) - started }
}
