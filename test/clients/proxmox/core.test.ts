import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import type { Db } from '../../../db/connect.ts'
import { platformJournal } from '../../../effects/platform.ts'
import { approvedWrite } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { aGuest, type ScriptedProxmox, startScriptedProxmox, token } from './scripted-proxmox.ts'

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
  return answer.body as unknown as {
    proposal_id: string
    planDigest: string
    state: string
    stateFingerprint: string
    steps: object[]
  }
}

test('the core API plans how to empty a node of a cluster, and does it', async () => {
  expect((await api.get('/vms/vm-104')).body).toMatchObject({ host: 'pve1', pinnedTo: ['pve1'] })
  const plan = await proposed(['vm-101', 'vm-102'])
  expect(plan).toMatchObject({ state: 'planned' })
  expect(plan.steps).toHaveLength(2)
  const done = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
    ...(await approvedWrite(api, 'execute_migration', { plan: plan.planDigest })),
    body: { reason: 'pve1 gets new memory' },
    headers: { 'if-match': plan.stateFingerprint },
  })
  expect(done).toMatchObject({ status: 200, body: { failed: 0 } })
  expect(pve.begun.map(({ path }) => path).toSorted()).toEqual([
    '/api2/json/nodes/pve1/lxc/102/migrate',
    '/api2/json/nodes/pve1/qemu/101/migrate',
  ])
  expect((await api.get('/vms/vm-101')).body).not.toMatchObject({ host: 'pve1' })
})

test('no node is reported as unreachable, because Proxmox VE reports no links', async () => {
  expect((await api.get('/reachability?from=pve1&to=pve2')).body).toMatchObject({
    status: 'unknown',
    reachable: null,
  })
  expect((await api.get('/links?a=pve1&b=pve2')).body).toMatchObject({ status: 'unknown', live: null })
})

test('a guest that cannot leave its node is never planned to move', async () => {
  const plan = await proposed(['vm-104'])
  expect(plan.state).not.toBe('planned')
  expect(plan.steps).toEqual([])
})

test('after a process died between request and task, the next process finds the task through the journal', async () => {
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
