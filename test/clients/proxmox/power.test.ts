import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxApi, upid } from '../../../clients/proxmox/api.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import type { Db } from '../../../db/connect.ts'
import { platformJournal } from '../../../effects/platform.ts'
import { useApi } from '../../api/api.ts'
import { useDatabase } from '../../support/database.ts'
import { compileCache, eventually, freePort } from '../../support/directory.ts'
import { selfSigned } from '../local-server.ts'
import {
  aGuest,
  anotherClient,
  client,
  followed,
  journal,
  migrated,
  move,
  pve,
  type ScriptedProxmox,
  startScriptedProxmox,
  token,
  useCluster,
} from './scripted-proxmox.ts'

describe('power', () => {
  describe('authority', () => {
    const own = selfSigned()
    let asked = 0
    let server: Server
    let url: string

    beforeAll(async () => {
      server = createServer(own, (_request, response) => {
        asked += 1
        response.end(JSON.stringify({ data: 'UPID:pve1:00000FA1:00015F91:6AFD1A01:qmigrate:101:nightshift@pve!core:' }))
      })
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    afterAll(async () => {
      await closeConnections()
      server.closeAllConnections()
      server.close()
    })

    test("a cluster's own authority is believed when it is named, and the token goes to nobody else", async () => {
      const ask = (ca?: string) =>
        createProxmoxApi({ urls: [url], token, allow: 'loopback', ca }).get(['version'], upid)
      expect(await ask(own.cert)).toContain('UPID:pve1:')
      // Neither the system's authorities nor another cluster's vouch for it, also not over a connection that is still open.
      for (const ca of [undefined, selfSigned().cert]) {
        await expect(ask(ca)).rejects.toMatchObject({ name: 'HttpError' })
      }
      expect(asked).toBe(1)
    })
  })

  describe('power', () => {
    useCluster()
    // Half a minute has passed whenever somebody looks, so that a run of three seconds is a new one.
    beforeEach(() => {
      journal.ageSeconds = 30
      pve.guest(101).uptime = 86_400
    })

    const stopped = () => client.powerVm('vm-101', 'stop', 'pve1', 'k1')
    const restarted = () => client.powerVm('vm-101', 'restart', 'pve1', 'k1')

    test('a stop is a shutdown that ends hard after a minute, and its task is followed', async () => {
      const answer = await stopped()
      expect(answer).toMatchObject({ status: 'running', result: { task: expect.stringContaining(':qmshutdown:101:') } })
      expect(await followed(answer)).toMatchObject({ status: 'done', detail: 'vm-101 was stopped on pve1' })
      expect(pve.begun).toEqual([
        { path: '/api2/json/nodes/pve1/qemu/101/status/shutdown', form: { timeout: '60', forceStop: '1' } },
      ])
    })

    test('a container is stopped by its own task', async () => {
      pve.guest(101).type = 'lxc'
      const answer = await followed(await stopped())
      expect(answer).toMatchObject({ status: 'done', result: { task: expect.stringContaining(':vzshutdown:101:') } })
    })

    test('a restart is done only once the guest runs with a new start', async () => {
      // The guest comes up after its task has ended.
      pve.onPower = (_, guest) => Object.assign(guest, { status: 'stopped', uptime: 0 })
      const waiting = await followed(await restarted())
      expect(waiting).toMatchObject({ status: 'running', detail: expect.stringContaining('no new start yet') })
      Object.assign(pve.guest(101), { status: 'running', uptime: 2 })
      expect(await client.effect('k1')).toMatchObject({
        ...{ status: 'done', detail: 'vm-101 was restarted on pve1', result: { newStart: true } },
      })
      expect(pve.begun).toMatchObject([
        { path: '/api2/json/nodes/pve1/qemu/101/status/reboot', form: { timeout: '60' } },
      ])
    })

    test('a guest that goes on with the run of before was not restarted, whatever its task says', async () => {
      pve.onPower = () => {}
      expect(await followed(await restarted())).toMatchObject({ status: 'running' })
      journal.ageSeconds = 181
      expect(await client.effect('k1')).toMatchObject({
        status: 'failed',
        detail: expect.stringContaining('no new start'),
      })
    })

    test('a guest that does not shut down in time fails with the words of its task', async () => {
      pve.course = { looks: 1, end: 'VM quit/powerdown failed - got timeout', log: ['TASK ERROR: got timeout'] }
      expect(await followed(await restarted())).toMatchObject({
        status: 'failed',
        detail: expect.stringContaining('got timeout'),
      })
    })

    test('the HA manager keeps a guest stopped: only then it is done', async () => {
      pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'started' }]
      pve.ha.services = { 'vm:101': { node: 'pve1', state: 'started', running: 1 } }
      const waiting = await followed(await stopped())
      expect(waiting).toMatchObject({ status: 'running', detail: 'with the HA manager' })
      Object.assign(pve.guest(101), { status: 'stopped', uptime: 0 })
      // It is down, and the manager would start it again.
      expect(await client.effect('k1')).toMatchObject({ status: 'running' })
      pve.ha.resources = [{ sid: 'vm:101', type: 'vm', state: 'stopped' }]
      expect(await client.effect('k1')).toMatchObject({
        status: 'done',
        detail: expect.stringContaining('by the HA manager'),
      })
    })

    test.each(['lost_after', 'held'] as const)(
      'an answer that was %s is found by its task, and not sent again',
      async (how) => {
        pve.answer = how
        pve.course = { looks: 1, end: 'OK' }
        const short = how === 'held' ? anotherClient(200) : client
        const answer = await short.powerVm('vm-101', 'restart', 'pve1', 'k1')
        expect((await followed(answer)).status).toBe('done')
        expect(pve.begun).toHaveLength(1)
      },
    )

    test('a request that never arrived was never begun, and nobody guesses before a minute', async () => {
      pve.answer = 'lost_before'
      journal.ageSeconds = 61
      expect(await stopped()).toMatchObject({
        status: 'failed',
        detail: expect.stringContaining('vm-101 is not stopped'),
      })
    })

    test('a restart or a start cannot reuse the key of a stop', async () => {
      await stopped()
      await expect(restarted()).rejects.toMatchObject({ status: 422 })
      await expect(client.startVm('vm-101', 'pve1', 'k1')).rejects.toMatchObject({ status: 422 })
    })

    test('what Proxmox VE would refuse, or do elsewhere, is a no, and nothing is sent', async () => {
      const no = async (key: string, action: 'stop' | 'restart', host = 'pve1') => {
        const answer = await client.powerVm('vm-101', action, host, key)
        expect(answer.status).toBe('failed')
        return answer.detail
      }
      expect(await no('a', 'stop', 'pve2')).toBe('vm-101 is on pve1, not on pve2')
      pve.guest(101).lock = 'migrate'
      expect(await no('b', 'restart')).toContain('it is locked (migrate)')
      expect((await client.inventory()).vms[0]).toMatchObject({ id: 'vm-101', busy: 'locked: migrate' })
      delete pve.guest(101).lock
      pve.guest(101).status = 'stopped'
      expect(await no('c', 'restart')).toContain('does not run')
      expect(await client.powerVm('vm-101', 'stop', 'pve1', 'd')).toMatchObject({ status: 'done' })
      pve.nodes.pve1!.online = false
      expect(await no('e', 'stop')).toBe('pve1 is offline')
      expect(pve.begun).toEqual([])
    })

    test('a token without VM.PowerMgmt gets the words of Proxmox VE', async () => {
      pve.answer = { status: 403, message: 'Permission check failed (/vms/101, VM.PowerMgmt)' }
      expect(await stopped()).toMatchObject({ status: 'failed', detail: expect.stringContaining('VM.PowerMgmt') })
    })
  })

  describe('lost', () => {
    useCluster()

    test('when the answer is lost after the task began, the task is found and no second one is begun', async () => {
      pve.startTask('qmigrate', 'pve1', 101).end = 'OK'
      pve.answer = 'lost_after'
      const answer = await migrated()
      expect(answer.status).toBe('running')
      expect(answer.result.task).toBe(pve.tasks.at(-1)?.upid)
      expect(await followed(answer)).toMatchObject({ status: 'done' })
      expect(pve.begun).toHaveLength(1)
    })

    test('a no to a repeat that we did not send is not taken for the end of what it repeats', async () => {
      pve.answer = { status: 500, message: 'VM is locked (migrate)', hasBegun: true }
      const answer = await migrated()
      expect(answer.status).toBe('running')
      expect(await followed(answer)).toMatchObject({ status: 'done' })
      expect(pve.begun).toHaveLength(1)
    })

    test('when the request is lost before it began, that is told once it cannot be on its way any more', async () => {
      pve.answer = 'lost_before'
      setTimeout(() => Object.assign(journal, { ageSeconds: 61 }), 300)
      const { status, detail } = await migrated()
      expect([status, pve.begun]).toEqual(['failed', []])
      expect(detail).toBe('it was never begun: pve1 has no task of it, and vm-101 is not on pve2')
    })

    const row = {
      action: 'migrate' as const,
      vmId: 'vm-101',
      node: 'pve1',
      target: 'pve2',
      tasksBefore: [] as string[],
    }

    test('after our process died between request and task, the task that was not there before is taken for its own', async () => {
      const before = pve.startTask('qmigrate', 'pve1', 101)
      before.end = 'OK'
      await journal.begin({ ...row, key: 'k2', tasksBefore: [before.upid] })
      await expect(client.effect('k2')).rejects.toMatchObject({ status: 503, retryable: true })
      // Neither is it one of another person's, of another kind, or of another guest.
      pve.startTask('qmigrate', 'pve1', 101, 'root@pam').end = 'OK'
      pve.startTask('qmsnapshot', 'pve1', 101).end = 'OK'
      pve.startTask('qmigrate', 'pve1', 102).end = 'OK'
      await expect(anotherClient().effect('k2')).rejects.toMatchObject({ status: 503 })
      const own = pve.startTask('qmigrate', 'pve1', 101)
      expect(await anotherClient().effect('k2')).toMatchObject({ status: 'running', result: { task: own.upid } })
      own.end = 'OK'
      expect(await anotherClient().migrateVm('vm-101', move, 'k2')).toMatchObject({ status: 'done' })
      expect(pve.begun).toEqual([])
    })

    test('a task whose node goes silent is neither running nor failed, until the guest shows what became of it', async () => {
      pve.course.looks = 99
      const { key } = await migrated()
      pve.nodes.pve1 = { online: true, silent: true }
      await expect(client.effect(key)).rejects.toMatchObject({ status: 503 })
      pve.nodes.pve1 = { online: false }
      await expect(client.effect(key)).rejects.toMatchObject({ status: 503 })
      pve.guest(101).node = 'pve2'
      expect(await client.effect(key)).toMatchObject({ status: 'done' })
    })

    test('without quorum nobody is told where the guest is', async () => {
      pve.course.looks = 99
      const { key } = await migrated()
      pve.isQuorate = false
      pve.nodes.pve1 = { online: false }
      pve.guest(101).node = 'pve2'
      await expect(client.effect(key)).rejects.toMatchObject({
        status: 503,
        detail: expect.stringContaining('no quorum'),
      })
    })

    test('a task that its node forgot is judged by where the guest is', async () => {
      pve.course.looks = 99
      const { key } = await migrated()
      for (const task of pve.tasks) task.isGone = true
      expect(await client.effect(key)).toMatchObject({
        status: 'failed',
        detail: expect.stringContaining('its task is gone from pve1'),
      })
      expect(await client.effect('never')).toBeNull()
    })
  })
})

describe('process', () => {
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
      await eventually('the API', async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200)
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
      const effect = await eventually('the effect to be settled', async () => {
        const answer = await ask('GET', `/effects/${encodeURIComponent(row.key)}`)
        return answer.status === 'running' ? null : answer
      })
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
      const effect = await eventually('the effect to be settled', async () => {
        const answer = await ask('GET', `/effects/${encodeURIComponent(key)}`)
        return answer.status === 'running' ? null : answer
      })
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
})
