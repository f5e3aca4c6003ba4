import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { describeMissing, missingServers } from '../../lab/monitoring.ts'
import { eventually } from '../support/directory.ts'
import { controlToken, labDirectory, platformToken, type RunningLab, runLab } from '../support/running-lab.ts'

const directory = labDirectory()
let lab: RunningLab

beforeAll(async () => {
  lab = await runLab(directory.path)
})
afterEach(async () => {
  lab.answerAlertsWith(202)
  await lab.control.heal()
})
afterAll(async () => {
  await lab.stop()
  directory.remove()
})

const alertsNamed = (name: string) =>
  lab.alerts.flatMap(({ alerts }) => alerts).filter(({ labels }) => labels.alertname === name)
const node = async (id: string) => (await lab.inventory()).nodes.find((each) => each.id === id)!
const failing = async (scenario: Parameters<typeof lab.control.oracle>[0]) =>
  (await lab.control.oracle(scenario)).checks.filter(({ ok }) => !ok).map(({ name }) => name)

test('a fresh lab is nominal everywhere, and the oracle finds no fault', async () => {
  const { nodes, shards, hosts, vms, tenants } = await lab.inventory()
  expect(nodes.map(({ status }) => status)).toEqual(nodes.map(() => 'nominal'))
  expect(shards.map(({ id, status }) => `${id} ${status}`)).toEqual([
    'db-osl-1 nominal',
    'db-ams-1 nominal',
    'web-osl-1 nominal',
  ])
  expect(tenants.every(({ status }) => status === 'nominal')).toBe(true)
  expect(hosts.every(({ state }) => state === 'live')).toBe(true)
  expect(vms.every(({ running }) => running)).toBe(true)
  expect(await failing('nothing')).toEqual([])
  expect((await fetch(`${lab.url}/readyz`)).status).toBe(200)
})

test('a stopped replica falls behind, an alert is posted, and a converge lets it catch up', async () => {
  await lab.control.break('replication_lag', 'db-osl-1')
  const alert = await eventually('the alert', () =>
    lab.firing().find(({ labels }) => labels.node === 'node-db-osl-1b' && labels.alertname === 'replication_lag'),
  )
  expect(alert).toMatchObject({
    status: 'firing',
    labels: {
      severity: 'critical',
      region: 'osl',
      shard: 'db-osl-1',
      node: 'node-db-osl-1b',
      instance: 'node-db-osl-1b',
    },
    endsAt: '0001-01-01T00:00:00Z',
  })
  expect(alert.fingerprint).toMatch(/^[0-9a-f]{16}$/)
  expect(alert.annotations.description).toMatch(/is \d+ s behind its primary$/)
  const behind = await node('node-db-osl-1b')
  expect(behind.status).toBe('critical')
  expect(behind.reason).toMatch(/process is stopped/)
  await eventually('two seconds of lag', async () => (await failing('replication_lag')).length === 2)
  expect(await failing('replication_lag')).toEqual(['node-db-osl-1b runs and answers', 'node-db-osl-1b has caught up'])

  const { answer } = await lab.write('converge-1', '/v1/shards/db-osl-1/converge')
  expect(answer).toMatchObject({ status: 'done', changed: ['node-db-osl-1b: continued'] })
  const again = await lab.write('converge-2', '/v1/shards/db-osl-1/converge')
  expect(again.answer).toMatchObject({ status: 'done', detail: 'nothing to change', changed: [] })
  await eventually('the replica to catch up', async () => (await lab.control.oracle('replication_lag')).healthy)
  const primary = readFileSync(join(lab.dir, 'nodes/node-db-osl-1a/data/log'))
  const replica = readFileSync(join(lab.dir, 'nodes/node-db-osl-1b/data/log'))
  expect(primary.subarray(0, replica.length).equals(replica)).toBe(true)
  const resolved = await eventually('the end of the alert', () =>
    alertsNamed('replication_lag').find(
      ({ status, fingerprint, startsAt }) =>
        status === 'resolved' && fingerprint === alert.fingerprint && startsAt === alert.startsAt,
    ),
  )
  expect(Date.parse(resolved.endsAt)).toBeGreaterThan(Date.parse(resolved.startsAt))
})

test('the same idempotency key converges once, also when it is sent twice at the same time', async () => {
  const send = () => lab.write('once', '/v1/shards/db-ams-1/converge')
  const [first, second] = await Promise.all([send(), send()])
  const third = await send()
  expect(second).toEqual(first)
  expect(third).toEqual(first)
  const effects = await lab.control.effects()
  expect(effects.find(({ key }) => key === 'once')).toMatchObject({ runs: 1, status: 'done' })
})

test('another write under the same idempotency key is refused', async () => {
  await lab.write('taken', '/v1/shards/db-ams-1/converge')
  await expect(lab.write('taken', '/v1/shards/db-osl-1/converge')).rejects.toThrow()
  const response = await fetch(`${lab.url}/v1/shards/db-osl-1/converge`, {
    method: 'POST',
    headers: { authorization: `Bearer ${platformToken}`, 'idempotency-key': 'taken' },
    body: '{}',
  })
  expect(response.status).toBe(422)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
})

test('a disk full of temporary files is cleared by a converge, and the log and the tenants stay', async () => {
  await lab.control.break('disk_pressure', 'node-web-osl-1a')
  const full = await node('node-web-osl-1a')
  expect(full.reason).toBe('disk 130 % of quota')
  expect(full.diskByDirectory.tmp).toBeGreaterThan(full.diskQuotaBytes!)
  await eventually('the alert', () => alertsNamed('disk_pressure').length > 0)
  // Asked beforehand, it names the files that it would clear.
  const asked = await fetch(`${lab.url}/v1/shards/web-osl-1/converge?dry_run=true`, {
    headers: { authorization: `Bearer ${platformToken}` },
  })
  expect(await asked.json()).toMatchObject({
    attachments: [
      {
        name: 'files to clear.txt',
        kind: 'text',
        text: expect.stringMatching(/^\d+ bytes {2}node-web-osl-1a:\/tmp\//),
      },
    ],
  })
  const { answer } = await lab.write('clear', '/v1/shards/web-osl-1/converge')
  expect(answer.detail).toMatch(/^node-web-osl-1a: cleared \d+ bytes from tmp and rotated logs$/)
  expect(await failing('disk_pressure')).toEqual([])
})

test('a disk full of a tenant’s data is not cleared by a converge, and the data stays', async () => {
  await lab.control.break('disk_pressure_tenant', 'web-osl-1')
  const { answer } = await lab.write('useless', '/v1/shards/web-osl-1/converge')
  expect(answer).toMatchObject({ status: 'done', detail: 'nothing to change' })
  const full = await node('node-web-osl-1a')
  expect(full.status).toBe('critical')
  expect(full.diskByDirectory.tenants).toBeGreaterThan(full.diskQuotaBytes!)
  expect(await failing('disk_pressure_tenant')).toEqual([])
})

test('a killed web node is restarted by a converge, while its tenants are served by the other', async () => {
  await lab.control.break('service_down', 'web-osl-1')
  const { nodes, tenants, shards } = await lab.inventory()
  expect(nodes.find(({ id }) => id === 'node-web-osl-1a')).toMatchObject({
    status: 'critical',
    reason: 'process is not running',
  })
  expect(tenants.filter(({ shard }) => shard === 'web-osl-1').map(({ status }) => status)).toEqual([
    'degraded',
    'degraded',
  ])
  expect(shards.find(({ id }) => id === 'web-osl-1')?.status).toBe('critical')
  const { answer } = await lab.write('restart', '/v1/shards/web-osl-1/converge')
  expect(answer.detail).toBe('node-web-osl-1a: restarted')
  expect(await failing('service_down')).toEqual([])
})

test('a drifted configuration is named setting by setting and restored by a converge', async () => {
  await lab.control.break('config_drift', 'web-osl-1')
  expect((await node('node-web-osl-1a')).reason).toBe('configuration drifted: maxAgeSeconds is 0, should be 60')
  const alert = await eventually('the alert', () => alertsNamed('config_drift')[0])
  expect(alert.labels.severity).toBe('info')
  // Asked beforehand, it is told node by node, and nothing is changed.
  const dryRun = async () =>
    (
      await fetch(`${lab.url}/v1/shards/web-osl-1/converge?dry_run=true`, {
        headers: { authorization: `Bearer ${platformToken}` },
      })
    ).json()
  expect(await dryRun()).toEqual({
    nodes: [
      {
        id: 'node-web-osl-1a',
        changes: ['restore its configuration (maxAgeSeconds is 0, should be 60)'],
      },
      { id: 'node-web-osl-1b', changes: [] },
    ],
  })
  expect((await node('node-web-osl-1a')).reason).toContain('configuration drifted')
  const { answer } = await lab.write('restore', '/v1/shards/web-osl-1/converge')
  expect(answer.detail).toBe('node-web-osl-1a: configuration restored')
  expect(await failing('config_drift')).toEqual([])
})

test('a deploy that breaks the routes raises an alert about the file, and a heal reverts it so that it can be broken again', async () => {
  const broken = await lab.control.break('bad_deploy', 'web-osl-1')
  const alert = await eventually('the alert', () => alertsNamed('bad_deploy')[0])
  expect(alert.labels).toMatchObject({
    severity: 'critical',
    node: broken.on,
    file: expect.stringMatching(/^\/.*\/site\/routes\.json$/),
  })
  expect(() => JSON.parse(readFileSync(alert.labels.file!, 'utf8'))).toThrow()
  // JSON, but neither what it was nor committed.
  writeFileSync(alert.labels.file!, '{}')
  expect((await lab.control.oracle('bad_deploy')).checks.find(({ ok }) => !ok)?.detail).toBe(
    'site/routes.json is not as desired, not committed: M routes.json',
  )
  await expect(lab.control.break('bad_deploy', 'db-osl-1')).rejects.toThrow(/db-osl-1/)
  await lab.control.heal()
  expect(await failing('nothing')).toEqual([])
  await lab.control.break('bad_deploy', 'web-osl-1')
  expect(await failing('bad_deploy')).toHaveLength(1)
})

test('alerts that begin together are posted together, and none is lost while the receiver is down', async () => {
  lab.answerAlertsWith(503)
  const before = lab.alerts.length
  await lab.control.break('service_down', 'node-web-osl-1a')
  await lab.control.break('service_down', 'node-web-osl-1b')
  await lab.control.break('host_down', 'host-ams-4')
  // Each look of the lab that has something to tell is one that fails; two of them make an alert
  // begin or end.
  const looks = async (count: number) => {
    const before = lab.refused()
    await eventually('some rounds to fail', () => lab.refused() >= before + count)
  }
  await looks(4)
  await lab.control.heal()
  await looks(4)
  expect(lab.alerts.length).toBe(before)
  lab.answerAlertsWith(202)
  const told = () =>
    lab.alerts
      .slice(before)
      .filter(({ groupLabels }) => groupLabels.alertname!.endsWith('_down'))
      .flatMap(({ alerts }) => alerts.map(({ labels, status }) => `${labels.instance} ${status}`))
  await eventually('everything to be told', () => told().length >= 6)
  for (const instance of ['node-web-osl-1a', 'node-web-osl-1b', 'host-ams-4']) {
    expect(told().filter((each) => each.startsWith(instance))).toEqual([`${instance} firing`, `${instance} resolved`])
  }
})

test('a hanging host is dead to its platform, which does not report it as off', async () => {
  const children = JSON.parse(readFileSync(join(lab.dir, 'children.json'), 'utf8')) as { id: string; pid: number }[]
  const pid = children.find(({ id }) => id === 'host-ams-2')?.pid ?? 0
  const look = async () => (await lab.inventory()).hosts.find(({ id }) => id === 'host-ams-2')
  process.kill(pid, 'SIGSTOP')
  try {
    expect(await look()).toMatchObject({ state: 'dead' })
    expect((await look())?.fenced).toBeUndefined()
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await eventually('it to answer again', async () => (await look())?.state === 'live')
})

test('a VM of a dead host starts elsewhere with its counter kept, and only once', async () => {
  const { counters } = await lab.control.break('host_down', 'host-osl-1')
  const { hosts, vms } = await lab.inventory()
  const dead = { state: 'dead', fenced: { by: 'its power switch', at: null } }
  expect(hosts.find(({ id }) => id === 'host-osl-1')).toMatchObject(dead)
  expect(vms.find(({ id }) => id === 'vm-101')).toMatchObject({ host: 'host-osl-1', running: false })

  const start = async (key: string, vm: string, host: string) =>
    (await lab.write(key, `/v1/vms/${vm}/start`, { host })).answer
  expect(await start('s0', 'vm-101', 'host-osl-1')).toMatchObject({ status: 'failed', detail: 'host-osl-1 is down' })
  expect(await start('s1', 'vm-101', 'host-osl-4')).toMatchObject({ status: 'done' })
  expect(await start('s2', 'vm-101', 'host-osl-2')).toMatchObject({
    status: 'failed',
    detail: 'vm-101 still runs on host-osl-4',
  })
  expect(await start('s3', 'vm-102', 'host-osl-4')).toMatchObject({
    status: 'failed',
    detail: 'vm-102 needs 6144 MiB of RAM, and host-osl-4 has 5120 free',
  })
  expect(await failing('host_down')).toEqual(
    ['vm-102', 'vm-103'].map((vm) => `${vm} runs exactly once, on a live host`),
  )
  await start('s4', 'vm-102', 'host-osl-2')
  await start('s5', 'vm-103', 'host-osl-3')
  expect(await failing('host_down')).toEqual([])
  const counter = Number(readFileSync(join(lab.dir, 'storage/vm-101/counter'), 'utf8'))
  expect(counter).toBeGreaterThan(counters['vm-101']!)
})

test('the oracle notices damage beside the fault', async () => {
  await lab.control.break('service_down', 'node-web-osl-1a')
  await lab.write('repair', '/v1/shards/web-osl-1/converge')
  expect(await failing('service_down')).toEqual([])
  const page = join(lab.dir, 'nodes/node-web-osl-1b/tenants/tenant-5/index.html')
  const text = readFileSync(page)
  rmSync(page)
  expect((await node('node-web-osl-1b')).reason).toBe('process does not answer')
  expect(await failing('service_down')).toEqual(['every other node runs and answers', 'no tenant data was touched'])
  writeFileSync(page, text)
  expect(await failing('service_down')).toEqual([])
})

test('a VM moves from host to host with its counter', async () => {
  const from = (await lab.inventory()).vms.find(({ id }) => id === 'vm-112')!.host!
  const counter = () => Number(readFileSync(join(lab.dir, 'storage/vm-112/counter'), 'utf8'))
  const before = counter()
  const { answer } = await lab.write('move', '/v1/vms/vm-112/migrate', { from, to: 'host-ams-2' })
  expect(answer.status).toBe('done')
  expect((await lab.inventory()).vms.find(({ id }) => id === 'vm-112')).toMatchObject({
    host: 'host-ams-2',
    running: true,
  })
  expect(counter()).toBeGreaterThan(before)
  expect(await failing('nothing')).toEqual([])
})

test('of VMs that move to a host at once only those arrive for which it has room', async () => {
  await lab.control.break('host_down', 'host-osl-2')
  // 12288 MiB are free: for vm-105 and vm-106, or for vm-104 alone.
  const starts = await Promise.all(
    ['vm-104', 'vm-105', 'vm-106'].map((vm) =>
      lab.write(`at once ${vm}`, `/v1/vms/${vm}/start`, { host: 'host-osl-1' }),
    ),
  )
  const refused = starts.filter(({ answer }) => answer.status === 'failed').map(({ answer }) => answer.detail)
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.every((detail) => /needs \d+ MiB of RAM, and host-osl-1 has \d+ free/.test(detail))).toBe(true)
  const overfull = (await lab.control.oracle('nothing')).checks.filter(({ name, ok }) => /holds/.test(name) && !ok)
  expect(overfull).toEqual([])
})

test('a moving VM takes room on both hosts', async () => {
  // host-osl-1 has 12288 MiB free and host-osl-2 10240: vm-104 leaves no room for vm-105, and frees
  // none until it is there.
  const [move, blocked] = await Promise.all([
    lab.write('way 1', '/v1/vms/vm-104/migrate', { from: 'host-osl-2', to: 'host-osl-1' }),
    lab.write('way 2', '/v1/vms/vm-109/migrate', { from: 'host-osl-3', to: 'host-osl-1' }),
  ])
  expect(move.answer.status).toBe('done')
  expect(blocked.answer).toMatchObject({
    status: 'failed',
    detail: 'vm-109 needs 8192 MiB of RAM, and host-osl-1 has 2048 free',
  })
})

test('heal returns every VM to its first host', async () => {
  await lab.write('away', '/v1/vms/vm-112/migrate', { from: 'host-osl-4', to: 'host-osl-1' })
  await lab.control.heal()
  const { vms } = await lab.inventory()
  expect(vms.find(({ id }) => id === 'vm-112')).toMatchObject({ host: 'host-osl-4', running: true })
})

test('VMs return with the last host that is healed, so that a play finds the state of the play before', async () => {
  const homeOf = async (id: string) => (await lab.inventory()).vms.find((vm) => vm.id === id)
  await lab.control.break('drain', 'host-osl-3')
  await lab.control.break('drain', 'host-osl-4')
  await lab.write('home', '/v1/vms/vm-112/migrate', { from: 'host-osl-4', to: 'host-osl-1' })
  await lab.control.heal('drain', 'host-osl-3')
  expect(await homeOf('vm-112')).toMatchObject({ host: 'host-osl-1', running: true })
  await lab.control.heal('drain', 'host-osl-4')
  expect(await homeOf('vm-112')).toMatchObject({ host: 'host-osl-4', running: true })
})

test('a host that has to be drained alerts until it is empty, and takes no VM meanwhile', async () => {
  const { counters } = await lab.control.break('drain', 'host-osl-3')
  expect((await lab.inventory()).hosts.find(({ id }) => id === 'host-osl-3')?.state).toBe('draining')
  const alert = await eventually('the alert', () =>
    alertsNamed('host_draining').find(({ labels }) => labels.host === 'host-osl-3'),
  )
  expect(alert).toMatchObject({
    labels: { severity: 'warning', host: 'host-osl-3', rack: 'osl-r2' },
    annotations: { summary: 'Host host-osl-3 is to be emptied for maintenance' },
  })
  const move = async (vm: string, from: string, to: string) =>
    (await lab.write(`drain ${vm}`, `/v1/vms/${vm}/migrate`, { from, to })).answer
  expect((await move('vm-106', 'host-osl-2', 'host-osl-3')).detail).toBe('host-osl-3 is being emptied and takes no VM')
  await move('vm-107', 'host-osl-3', 'host-osl-2')
  expect(await failing('drain')).toEqual([
    'host-osl-3 is empty',
    'vm-108 runs exactly once, on a live host',
    'vm-109 runs exactly once, on a live host',
  ])
  await Promise.all([move('vm-108', 'host-osl-3', 'host-osl-1'), move('vm-109', 'host-osl-3', 'host-osl-4')])
  expect(await failing('drain')).toEqual([])
  expect(Object.keys(counters)).toEqual(['vm-107', 'vm-108', 'vm-109'])
  await eventually('the end of the alert', () =>
    alertsNamed('host_draining').some(({ status }) => status === 'resolved'),
  )
})

test('of a dead rack the most important VMs run again, and only VMs without room may stay down', async () => {
  await lab.control.break('rack_down', 'osl-r1')
  await eventually('both alerts', () => new Set(alertsNamed('host_down').map(({ labels }) => labels.host)).size > 1)
  const start = async (vm: string, host: string) =>
    (await lab.write(`rack ${vm} ${host}`, `/v1/vms/${vm}/start`, { host })).answer.status
  // The least important one takes the room of the most important.
  expect([await start('vm-103', 'host-osl-4'), await start('vm-106', 'host-osl-4')]).toEqual(['done', 'done'])
  expect(await failing('rack_down')).toEqual(['vm-101', 'vm-102', 'vm-104', 'vm-105'].map((vm) => `${vm} has no room`))
  await lab.control.heal()
  await lab.control.break('rack_down', 'osl-r1')
  expect([await start('vm-101', 'host-osl-4'), await start('vm-102', 'host-osl-3')]).toEqual(['done', 'done'])
  expect(await failing('rack_down')).toEqual(['vm-106 has no room'])
  expect(await start('vm-106', 'host-osl-3')).toBe('done')
  expect(await failing('rack_down')).toEqual([])
})

test('a host whose VM fits nowhere can be lost, and no move for it is right', async () => {
  await expect(lab.control.break('no_room', 'host-osl-1')).rejects.toThrow('vm-101 would fit elsewhere')
  await lab.control.break('no_room', 'host-ams-5')
  expect(await failing('no_room')).toEqual([])
  const start = await lab.write('too large', '/v1/vms/vm-125/start', { host: 'host-ams-1' })
  expect(start.answer.detail).toBe('vm-125 needs 49152 MiB of RAM, and host-ams-1 has 11264 free')
  await lab.write('in vain', '/v1/vms/vm-113/migrate', { from: 'host-ams-1', to: 'host-ams-2' })
  expect(await failing('no_room')).toEqual(['every VM of the region is defined where it was'])
})

test('a VM whose storage takes no write starts nowhere, and its counter stays', async () => {
  const { counters, readOnly } = await lab.control.break('step_fails', 'host-osl-1')
  expect(readOnly).toEqual(['vm-103'])
  const start = async (vm: string, host: string) =>
    (await lab.write(`ro ${vm}`, `/v1/vms/${vm}/start`, { host })).answer
  expect(await start('vm-103', 'host-osl-3')).toMatchObject({
    status: 'failed',
    detail: 'vm-103 did not come up on host-osl-3 within 5 s',
  })
  expect(Number(readFileSync(join(lab.dir, 'storage/vm-103/counter'), 'utf8'))).toBe(counters['vm-103'])
  await Promise.all([start('vm-101', 'host-osl-4'), start('vm-102', 'host-osl-2')])
  expect(await failing('step_fails')).toEqual([])
  await lab.control.heal()
  expect((await lab.inventory()).vms.find(({ id }) => id === 'vm-103')).toMatchObject({ running: true })
})

test('no VM moves over broken links', async () => {
  await lab.control.break('link_down', 'host-osl-1~host-ams-1')
  await lab.control.break('link_down', 'host-ams-3~host-osl-3')
  expect((await lab.inventory()).links.filter(({ up }) => !up)).toHaveLength(2)
  const { answer } = await lab.write('cut', '/v1/vms/vm-106/migrate', { from: 'host-osl-2', to: 'host-ams-2' })
  expect(answer).toMatchObject({
    status: 'failed',
    detail: 'no path of working links leads from host-osl-2 to host-ams-2',
  })
})

test('a user of the platform may neither break it nor ask the oracle', async () => {
  const status = async (path: string, token: string) =>
    (await fetch(lab.url + path, { headers: { authorization: `Bearer ${token}` } })).status
  expect(await status('/control/oracle?scenario=nothing', platformToken)).toBe(401)
  expect(await status('/control/faults', platformToken)).toBe(401)
  expect(await status('/v1/inventory', controlToken)).toBe(401)
  expect(await status('/v1/inventory', '')).toBe(401)
})

test('a key that was never accepted is unknown', async () => {
  const response = await fetch(`${lab.url}/v1/effects/never`, {
    headers: { authorization: `Bearer ${platformToken}` },
  })
  expect(response.status).toBe(404)
})

test('a fault that does not fit its target breaks nothing', async () => {
  await expect(lab.control.break('replication_lag', 'node-db-osl-1a')).rejects.toThrow('422')
  await expect(lab.control.break('host_down', 'db-osl-1')).rejects.toThrow('422')
  await expect(lab.control.break('slow_leak', 'web-osl-1')).rejects.toThrow('no Prometheus runs yet')
  expect(await lab.control.faults()).toEqual([])
})

test('a machine without Prometheus says what to install', () => {
  const path = process.env.PATH
  process.env.PATH = '/nonexistent'
  try {
    expect(describeMissing(missingServers())).toMatch(/apt-get install prometheus prometheus-alertmanager/)
  } finally {
    process.env.PATH = path
  }
})
