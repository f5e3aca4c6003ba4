import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { parseLabName } from '../../cli/ui/terminal.ts'
import { createPlatformClient, type PlatformClient } from '../../clients/platform.ts'
import type { CorePort } from '../../domain/tool.ts'
import { nodeAccount } from '../../lab/children.ts'
import { missingPrograms, packagePrograms } from '../../lab/packages.ts'
import { type FaultName, faultName } from '../../lab/state.ts'
import { tools } from '../../tools/registry.ts'
import { useApi } from '../api/api.ts'
import { eventually } from '../support/directory.ts'
import { labDirectory, platformToken, type RunningLab, runLab } from './running-lab.ts'

describe('faults', () => {
  describe('agent faults', () => {
    // What only a node's own agent can repair, repaired here by hand as it would do it, and in ways that are wrong.
    const directory = labDirectory()
    const shard = 'web-osl-1'
    const node = 'node-web-osl-1a'
    const at = (...names: string[]) => join(lab.dir, 'nodes', node, ...names)
    let lab: RunningLab

    beforeAll(async () => {
      lab = await runLab(directory.path)
    })
    afterEach(async () => {
      await lab.control.heal()
    })
    afterAll(async () => {
      await lab.stop()
      directory.remove()
    })

    const alertOf = (name: string) =>
      eventually(`the alert ${name}`, () =>
        lab.alerts.flatMap(({ alerts }) => alerts).find(({ labels }) => labels.alertname === name),
      )
    const failing = async (scenario: FaultName) =>
      (await lab.control.oracle(scenario)).checks.filter(({ ok }) => !ok).map(({ name }) => name)
    const converge = async () => (await lab.write(crypto.randomUUID(), `/v1/shards/${shard}/converge`)).answer

    test('rotated logs that fill a node are told where, no converge takes them, and the log that is written must stay', async () => {
      await lab.control.break('full_log', shard)
      expect((await alertOf('disk_pressure')).annotations).toMatchObject({ mountpoint: at() })
      expect(await converge()).toMatchObject({ status: 'done', detail: 'nothing to change' })
      expect(await failing('full_log')).toEqual([`${node} is under its quota`])
      await expect(lab.control.break('full_log', shard)).rejects.toThrow(/is traced already/)

      const size = () => readFileSync(at('log/trace.log')).length
      const before = size()
      await eventually('the node to write its trace log', () => size() > before)
      for (const name of readdirSync(at('log'))) if (/\.\d+$/.test(name)) rmSync(at('log', name))
      expect(await failing('full_log')).toEqual([])

      const kept = `${node} has its trace log and all else that it had`
      const log = readFileSync(at('log/trace.log'))
      writeFileSync(at('log/trace.log'), '')
      expect(await failing('full_log')).toEqual([kept])
      writeFileSync(at('log/trace.log'), log)
      rmSync(at('etc/config.json'))
      expect(await failing('full_log')).toContain(kept)
    })

    const testWith = (programs: readonly string[]) => (missingPrograms(programs).length === 0 ? test : test.skip)

    testWith(packagePrograms)(
      'a node that lacks a package says which; its file alone is no package, and another package is one too many',
      async () => {
        await lab.control.break('missing_package', shard)
        expect((await alertOf('missing_package')).labels).toMatchObject({
          severity: 'warning',
          node,
          package: 'nightly-tariffs',
        })
        expect(await failing('missing_package')).toEqual([
          `${node} has what its release needs`,
          `${node} has the package, and no other`,
        ])
        const { package: name, file } = JSON.parse(readFileSync(at('etc/needs.json'), 'utf8')) as Record<string, string>
        mkdirSync(dirname(at(file!)), { recursive: true })
        writeFileSync(at(file!), '{}')
        expect(await failing('missing_package')).toEqual([`${node} has the package, and no other`])
        rmSync(dirname(at(file!)), { recursive: true })

        const asNode = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, stdio: 'pipe' as const, ...nodeAccount() }
        const settings = `--config-file=${at('system/etc/apt/apt.conf')}`
        execFileSync('apt-get', [settings, 'install', '--yes', name!], asNode)
        expect(await failing('missing_package')).toEqual([])
        await lab.control.heal()
        // As new: it can lack it again.
        await lab.control.break('missing_package', shard)
        expect(await failing('missing_package')).toHaveLength(2)
      },
    )

    testWith(['ss'])(
      'a node whose port another process has cannot come back until that one is gone, and no other process may be ended',
      async () => {
        const processes = () =>
          JSON.parse(readFileSync(join(lab.dir, 'children.json'), 'utf8')) as { id: string; pid: number }[]
        const pidOf = (id: string) => processes().find((each) => each.id === id)?.pid ?? 0
        await lab.control.break('port_squatter', shard)
        const alert = await alertOf('service_down')
        expect(readFileSync(alert.annotations.log!, 'utf8')).toMatch(/error listen EADDRINUSE: .* 127\.0\.0\.1:\d+\n$/)
        expect(await converge()).toMatchObject({ status: 'failed', detail: expect.stringContaining(`${node} ended`) })
        expect(await failing('port_squatter')).toEqual([
          `${node} runs and answers`,
          `${node} listens where it did`,
          `nothing else is on the port of ${node}`,
        ])
        process.kill(pidOf(`squatter-${node}`), 'SIGTERM')
        await eventually('the squatter to be gone', () => pidOf(`squatter-${node}`) === 0)
        expect(await converge()).toMatchObject({ status: 'done', detail: `${node}: restarted` })
        expect(await failing('port_squatter')).toEqual([])

        const other = 'node-web-osl-1b'
        process.kill(pidOf(other), 'SIGKILL')
        await eventually('another node to be gone', () => pidOf(other) === 0)
        await converge()
        expect(await failing('port_squatter')).toEqual(['no other process was ended'])
      },
    )

    test.each(['full_log', 'missing_package', 'port_squatter'] as const)('%s is for web nodes', async (fault) => {
      await expect(lab.control.break(fault, 'db-osl-1')).rejects.toThrow(/db-osl-1/)
    })

    test('the name of a scenario may have dashes', () => {
      const read = parseLabName(faultName.options)
      expect(['runaway-process', 'port_squatter', 'missing-package'].map(read)).toEqual([
        'runaway_process',
        'port_squatter',
        'missing_package',
      ])
      expect(() => read('port-squatters')).toThrow(/port_squatter/)
    })
  })

  describe('lasting faults', () => {
    // What does not end with one repair: it comes back, its alert goes on, or there is nothing to repair.
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

      expect(await converge()).toMatchObject({ status: 'done', result: { changed: [`${node}: restarted`] } })
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

    test('an alert whose sender never ends it: it fires, is repeated once while the service is down, and then there is silence', async () => {
      await lab.control.break('unended_alert', shard)
      const alert = await told('service_down', 'firing')
      expect(alert.labels).toMatchObject({ node, monitor: 'cron-check' })
      expect(await failing('unended_alert')).toEqual([`${node} runs and answers`])
      expect(await told('service_down', 'firing', 2)).toEqual(alert)

      await converge()
      expect(await failing('unended_alert')).toEqual([])
      // The prober has looked often enough to have told an end by now: it tells that of another service.
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

    test('a notice that was to be expected comes and goes while nothing is wrong, and nobody may end what it is about', async () => {
      await lab.control.break('backup_notice', shard)
      const notice = await told('backup_running', 'firing')
      expect(notice.labels).toMatchObject({ severity: 'info', node })
      expect(await statusOf(node)).toBe('nominal')
      await told('backup_running', 'resolved')
      expect((await told('backup_running', 'firing', 2)).fingerprint).toBe(notice.fingerprint)
      expect(await failing('backup_notice')).toEqual([])

      process.kill(processOf(`backup-${node}`).pid, 'SIGKILL')
      await eventually('the oracle to miss it', async () => (await failing('backup_notice')).length > 0)
      expect(await failing('backup_notice')).toEqual([`the backup of ${node} goes on`])
      const tenant = (await lab.inventory()).tenants.find((each) => each.shard === shard)
      writeFileSync(join(lab.dir, 'nodes', node, 'backup', `${tenant?.id}.html`), 'something else')
      expect(await failing('backup_notice')).toContain(`the backup of ${node} has what its tenants have`)
    })

    test('a host that stays down: its VMs run elsewhere, and its alert goes on', async () => {
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
  })
})

describe('vm repairs', () => {
  const directory = labDirectory()
  let lab: RunningLab
  let vm: { id: string; host: string }
  // The lab is there once a test asks.
  const platform = new Proxy({} as PlatformClient, {
    get: (_, name) => createPlatformClient({ baseUrl: lab.url, token: platformToken })[name as keyof PlatformClient],
  })
  const api = useApi(() => ({ platform }))
  const host = () => ({ host: vm.host })

  beforeAll(async () => {
    lab = await runLab(directory.path)
    const [first] = (await lab.inventory()).vms
    vm = { id: first!.id, host: first!.host! }
  })
  afterAll(async () => {
    await lab.stop()
    directory.remove()
  })

  const now = async () => (await lab.inventory()).vms.find(({ id }) => id === vm.id)!

  test('a VM that is restarted is another process on the same host, and its start is later', async () => {
    const before = await now()
    expect(before).toMatchObject({ running: true, busy: null, startedAt: expect.any(String) })
    // The same run has the same start, whenever it is asked.
    expect((await now()).startedAt).toBe(before.startedAt)
    const { answer } = await lab.write('r1', `/v1/vms/${vm.id}/restart`, host())
    expect(answer).toMatchObject({ status: 'done', result: { vm: vm.id, host: vm.host } })
    const after = await now()
    expect(after).toMatchObject({ running: true, host: vm.host })
    expect(Date.parse(after.startedAt!)).toBeGreaterThan(Date.parse(before.startedAt!))
  })

  test('a VM that is stopped stays stopped until it is started, and a repeat changes nothing', async () => {
    for (const _ of [1, 2]) {
      const { answer } = await lab.write('s1', `/v1/vms/${vm.id}/stop`, host())
      expect(answer.status).toBe('done')
    }
    expect(await now()).toMatchObject({ running: false, startedAt: null })
    expect((await lab.write('r2', `/v1/vms/${vm.id}/restart`, host())).answer).toMatchObject({
      ...{ status: 'failed', detail: `${vm.id} does not run` },
    })
    expect((await lab.write('s2', `/v1/vms/${vm.id}/start`, host())).answer.status).toBe('done')
    expect(await now()).toMatchObject({ running: true, host: vm.host })
    expect((await lab.control.effects()).find(({ key }) => key === 's1')).toMatchObject({ runs: 1 })
  })

  test('a VM that runs elsewhere is not stopped', async () => {
    const other = (await lab.inventory()).hosts.find(({ id }) => id !== vm.host)!.id
    const { answer } = await lab.write('e1', `/v1/vms/${vm.id}/stop`, { host: other })
    expect(answer).toMatchObject({ status: 'failed', detail: `${vm.id} runs on ${vm.host}, not on ${other}` })
    expect((await now()).running).toBe(true)
  })

  const core: CorePort = {
    async get(path) {
      const { status, body } = await api.get(path.replace('/api/v1', ''))
      return status < 300
        ? { ok: true, status, data: body }
        : { ok: false, status, problem: { title: '', detail: String(body.detail) } }
    },
    post: () => Promise.reject(new Error('this one only looks')),
  }

  test('each repair goes through the core API to a real process, and its tool proves it by looking', async () => {
    for (const [action, observed] of [
      ['restart', `${vm.id} runs on ${vm.host}, since 20`],
      ['stop', `${vm.id} is stopped on ${vm.host}`],
      ['start', `${vm.id} runs on ${vm.host}`],
    ]) {
      const key = `core-${action}`
      const tool = tools.get(`vm_${action}`)!
      const args = { id: vm.id, reason: 'it does not answer' }
      const context = { core, incidentId: 'inc', stepKey: key, ifMatch: null }
      const { stateFingerprint, targets } = await tool.prepare!(args, context)
      expect(targets).toEqual([
        { kind: 'vm', id: vm.id },
        { kind: 'host', id: vm.host },
      ])
      const answer = await api.post(`/vms/${vm.id}/${action}`, {
        ...{ body: { reason: args.reason }, key, headers: { 'if-match': stateFingerprint } },
      })
      expect([answer.status, answer.body.detail]).toEqual([200, expect.stringContaining(vm.id)])
      const looked = { ...context, stepKey: String(answer.body.key) }
      expect(await tool.postcondition!.check(args, null, looked)).toMatchObject({
        ...{ holds: true, observed: expect.stringContaining(observed!) },
      })
      // Decided on the state of before: the same order again is about another state.
      const again = await api.post(`/vms/${vm.id}/${action}`, {
        ...{ body: { reason: args.reason }, key: `${key}-again`, headers: { 'if-match': '0'.repeat(64) } },
      })
      expect([action, again.status]).toEqual([action, 412])
    }
  })

  test('a VM whose host was killed is for a plan, not for a start', async () => {
    await lab.control.break('host_down', vm.host)
    api.api.deps.state.forget()
    const { status, body } = await api.get(`/vms/${vm.id}/start?dry_run=true`)
    expect([status, body.code, body.detail]).toEqual([
      409,
      'HOST_DOWN',
      expect.stringContaining('schedule_ha_proposal'),
    ])
  })
})
