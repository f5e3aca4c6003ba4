import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import type { Db } from '../../../db/connect.ts'
import { createToken, ensureOperator } from '../../../db/tokens.ts'
import { platformJournal } from '../../../effects/platform.ts'
import { useApi } from '../../api/api.ts'
import { useDatabase } from '../../support/database.ts'
import { compileCache, eventually, freePort } from '../../support/directory.ts'
import { aGuest, type ScriptedProxmox, startScriptedProxmox, token } from './scripted-proxmox.ts'

describe('process', () => {
  const database = useDatabase()
  const running = new Set<ChildProcess>()
  let printed = ''
  let pve: ScriptedProxmox
  let url: string
  let admin: string

  beforeAll(async () => {
    pve = await startScriptedProxmox()
    url = `http://127.0.0.1:${await freePort()}`
    const operatorId = await ensureOperator(database.db, 'admin', 'admin')
    admin = await createToken(database.db, { name: 'admin', role: 'admin', operatorId })
  })
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL')
    await pve.close()
  })

  async function started(): Promise<ChildProcess> {
    const child = spawn(process.execPath, ['api/main.ts'], {
      env: {
        ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, LOG_LEVEL: 'debug' },
        ...{ DATABASE_URL: database.url, PORT: new URL(url).port },
        ...{ TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`, PROXMOX_URL: pve.server.url, PROXMOX_TOKEN: token },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    running.add(child)
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (printed += bytes))
    await eventually('the API', async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200, 60_000)
    return child
  }

  async function killed(child: ChildProcess): Promise<void> {
    child.kill('SIGKILL')
    await once(child, 'exit')
    running.delete(child)
  }

  async function ask(method: 'GET' | 'POST', path: string, body?: object, headers: Record<string, string> = {}) {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json', ...headers },
      body: body && JSON.stringify(body),
    })
    return (await response.json()) as Record<string, never>
  }

  test('an API that is killed while a migration runs leaves it to the one that comes after, which begins no second', async () => {
    const first = await started()
    const body = { intent: 'drain', host_ids: ['pve1'], vm_ids: null, use_rack_constraints: false }
    const plan = await ask('POST', '/placement/proposals', body)
    expect(plan).toMatchObject({ state: 'planned', steps: [{ vm: 'vm-101', from: 'pve1' }] })

    // Begun at the cluster, and no answer with its task ever comes.
    Object.assign(pve, { answer: 'held', course: { looks: 3, end: 'OK' } })
    const headers = { 'if-match': String(plan.stateFingerprint), 'idempotency-key': 'drain-pve1' }
    ask('POST', `/placement/proposals/${plan.proposal_id}/execute`, { reason: 'new memory' }, headers).catch(() => {})
    await eventually('the migration', () => pve.begun.length === 1)
    await killed(first)

    await started()
    const row = await database.db.selectFrom('effect').select('key').executeTakeFirstOrThrow()
    const effect = await eventually(
      'the effect to be settled',
      async () => {
        const answer = await ask('GET', `/effects/${encodeURIComponent(row.key)}`)
        return answer.status === 'running' ? null : answer
      },
      60_000,
    )
    expect(effect).toMatchObject({ status: 'done', result: { failed: 0 } })
    expect(pve.begun).toHaveLength(1)
    expect(printed).toContain('the API is ready')
    expect(printed).not.toContain(token.split('=')[1])
  })

  test('an API that is killed between accepting a restart and its answer is followed by one that finds it', async () => {
    const [first] = running
    Object.assign(pve, { answer: 'held', course: { looks: 1, end: 'OK' }, begun: [] })
    pve.guest(102).uptime = 86_400
    const { stateFingerprint } = await ask('GET', '/vms/vm-102/restart?dry_run=true')
    const headers = { 'if-match': String(stateFingerprint), 'idempotency-key': 'restart-102' }
    ask('POST', '/vms/vm-102/restart', { reason: 'it hangs' }, headers).catch(() => {})
    await eventually('the restart', () => pve.begun.length === 1)
    await killed(first!)

    const { key, status } = await database.db
      .selectFrom('effect')
      .select(['key', 'status'])
      .where('tool', '=', 'vm_restart')
      .executeTakeFirstOrThrow()
    // Nobody guesses how it ended.
    expect(status).toBe('running')
    await started()
    const effect = await eventually(
      'the effect to be settled',
      async () => {
        const answer = await ask('GET', `/effects/${encodeURIComponent(key)}`)
        return answer.status === 'running' ? null : answer
      },
      60_000,
    )
    expect(effect).toMatchObject({ status: 'done', result: { before: { host: 'pve2', running: true } } })
    expect(pve.begun).toMatchObject([{ path: '/api2/json/nodes/pve2/qemu/102/status/reboot' }])
  })
})

describe('core', () => {
  let pve: ScriptedProxmox
  let made: PlatformClient
  const clientOf = (db: Db) =>
    createProxmoxClient({ urls: [pve.server.url], token, allow: 'loopback', journal: platformJournal(db) })
  // The server and the database are there once a test asks.
  const api = useApi((db) => {
    const own = () => (made ??= clientOf(db))
    return {
      platform: {
        inventory: (signal) => own().inventory(signal),
        converge: (shard, key) => own().converge(shard, key),
        wouldConverge: (shard) => own().wouldConverge(shard),
        startVm: (vm, host, key) => own().startVm(vm, host, key),
        powerVm: (vm, action, host, key) => own().powerVm(vm, action, host, key),
        migrateVm: (vm, move, key) => own().migrateVm(vm, move, key),
        effect: (key) => own().effect(key),
      },
    }
  })

  beforeAll(async () => {
    pve = await startScriptedProxmox()
    pve.guests = [
      aGuest(101, 'pve1'),
      aGuest(102, 'pve1', { type: 'lxc', config: { rootfs: 'ceph:vm-102-disk-0' } }),
      aGuest(103, 'pve2'),
      aGuest(104, 'pve1', { config: { scsi0: 'local-lvm:vm-104-disk-0' } }),
    ]
  })
  afterAll(async () => {
    await closeConnections()
    await pve.close()
  })

  async function proposed(vmIds: string[] | null) {
    const body = { intent: 'drain', host_ids: ['pve1'], vm_ids: vmIds, use_rack_constraints: false }
    const answer = await api.post('/placement/proposals', { body })
    expect([answer.status, answer.body.detail]).toEqual([201, undefined])
    return answer.body as unknown as { proposal_id: string; state: string; stateFingerprint: string; steps: object[] }
  }

  test('the core API plans how to empty a node of a cluster, and does it', async () => {
    expect((await api.get('/vms/vm-104')).body).toMatchObject({ host: 'pve1', pinnedTo: ['pve1'] })
    const plan = await proposed(['vm-101', 'vm-102'])
    expect(plan).toMatchObject({ state: 'planned' })
    expect(plan.steps).toHaveLength(2)
    const done = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
      body: { reason: 'pve1 gets new memory' },
      key: 'drain-1',
      headers: { 'if-match': plan.stateFingerprint },
    })
    expect(done).toMatchObject({ status: 200, body: { failed: 0 } })
    expect(pve.begun.map(({ path }) => path).toSorted()).toEqual([
      '/api2/json/nodes/pve1/lxc/102/migrate',
      '/api2/json/nodes/pve1/qemu/101/migrate',
    ])
    expect((await api.get('/vms/vm-101')).body).not.toMatchObject({ host: 'pve1' })
  })

  test('nobody is told that a node is out of reach, for Proxmox VE tells no links', async () => {
    expect((await api.get('/reachability?from=pve1&to=pve2')).body).toMatchObject({
      status: 'unknown',
      reachable: null,
    })
    expect((await api.get('/links?a=pve1&b=pve2')).body).toMatchObject({ status: 'unknown', live: null })
  })

  test('what cannot leave its node is never planned to', async () => {
    const plan = await proposed(['vm-104'])
    expect(plan.state).not.toBe('planned')
    expect(plan.steps).toEqual([])
  })

  test('a process that died between request and task is followed by the journal of the one after it', async () => {
    const entry = { action: 'migrate' as const, vmId: 'vm-103', node: 'pve2', target: 'pve3', tasksBefore: [] }
    const key = 'before-the-end'
    await platformJournal(api.db).begin({ key, ...entry })
    const task = pve.startTask('qmigrate', 'pve2', 103)
    await expect(clientOf(api.db).effect(key)).resolves.toMatchObject({
      status: 'running',
      result: { task: task.upid },
    })
    task.end = 'OK'
    pve.guest(103).node = 'pve3'
    const again = await clientOf(api.db).migrateVm('vm-103', { from: 'pve2', to: 'pve3' }, key)
    expect(again).toMatchObject({ status: 'done' })
    expect(await platformJournal(api.db).get(key)).toMatchObject({ task: task.upid, ending: { status: 'done' } })
  })
})
