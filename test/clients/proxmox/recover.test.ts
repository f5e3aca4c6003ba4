import { afterAll, beforeEach, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import type { JudgedDeath } from '../../../domain/death.ts'
import type { PlanStep } from '../../../domain/placement.ts'
import type { Tool, ToolContext } from '../../../domain/tool.ts'
import { platformJournal } from '../../../effects/platform.ts'
import { tools } from '../../../tools/registry.ts'
import { approvedWrite } from '../../support/announced.ts'
import { corePort, useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { aGuest, type ScriptedProxmox, startScriptedProxmox, token } from './scripted-proxmox.ts'

let pve: ScriptedProxmox
let made: PlatformClient
const own = () => made
const api = useApi(async (db) => {
  pve = await startScriptedProxmox()
  made = createProxmoxClient({ urls: [pve.server.url], token, allow: 'loopback', journal: platformJournal(db) })
  return {
    platform: {
      ...(made.sizeNote && { sizeNote: made.sizeNote }),
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
afterAll(async () => {
  await closeConnections()
  await pve.close()
})

const gib = 1_073_741_824

/**
 * pve1 dies. The large guest on it has room on pve2 once 102 has left it, and the small one
 * everywhere.
 */
beforeEach(async () => {
  Object.assign(pve, { nodes: { pve1: { online: true }, pve2: { online: true }, pve3: { online: true } }, begun: [] })
  pve.guests = [
    aGuest(101, 'pve1', { maxmem: 48 * gib, maxcpu: 1 }),
    aGuest(105, 'pve1', { maxmem: 1 * gib, maxcpu: 1 }),
    aGuest(102, 'pve2', { maxmem: 20 * gib, maxcpu: 1 }),
    aGuest(103, 'pve2', { maxmem: 10 * gib, maxcpu: 1 }),
    aGuest(104, 'pve3', { maxmem: 30 * gib, maxcpu: 1 }),
  ]
  const sids = ['vm:101', 'vm:105']
  pve.ha = {
    rules: [],
    groups: [],
    services: {},
    resources: sids.map((sid) => ({ sid, type: 'vm', state: 'started' })),
  }
  manager('started', { 101: 'pve1', 105: 'pve1' })
  // What a guest may have is read while its node lives.
  api.api.deps.state.forget()
  await api.get('/hosts')
  pve.nodes.pve1 = { online: false }
  manager('recovery', { 101: 'pve1', 105: 'pve1' })
  api.api.deps.state.forget()
})

/** What the HA manager says of its guests, which are where they are with it. */
function manager(state: string, places: Record<number, string>) {
  for (const [vmid, node] of Object.entries(places)) {
    Object.assign(pve.guest(Number(vmid)), { node, status: 'running' })
    pve.ha.services[`vm:${vmid}`] = { node, state, ...(state === 'started' && { running: 1 }) }
  }
}

type Plan = { proposal_id: string; planDigest: string; stateFingerprint: string; steps: PlanStep[]; state: string }
async function planned(incidentId: string | null = null): Promise<Plan> {
  const body = { intent: 'recover', host_ids: ['pve1'], use_rack_constraints: false, incident_id: incidentId }
  return (await api.post('/placement/proposals', { body })).body as unknown as Plan
}

async function carriedOut(plan: Plan) {
  const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
    ...(await approvedWrite(api, 'execute_migration', { plan: plan.planDigest })),
    body: { reason: 'pve1 is dead' },
    headers: { 'if-match': plan.stateFingerprint },
  })
  return answer.body as unknown as {
    detail: string
    changed: string[]
    steps: { step: number; vm: string; to: string; status: string; detail: string }[]
  }
}
const step = (steps: { vm: string }[], vm: string) => steps.find((each) => each.vm === vm)

/** Once room is made, the manager brings its guests where it likes. */
function managerBrings(places: Record<number, string>) {
  pve.onTask = (task, guest, target) => {
    if (task.end === 'OK') Object.assign(guest, { node: target, status: 'running' })
    manager('started', places)
  }
}

const tool = tools.get('execute_migration') as Tool
const prepared = async ({ proposal_id }: Plan) => {
  const context = { core: corePort(api), signal: AbortSignal.timeout(10_000) } as unknown as ToolContext
  return await tool.prepare?.({ proposal_id, reason: 'pve1 is dead' }, context)
}

test('the migrations that make room are the plan, and the restarts of the HA manager are a forecast', async () => {
  const plan = await planned()
  expect(plan).toMatchObject({ state: 'planned' })
  expect(plan.steps.map(({ action, vm }) => `${action} ${vm}`).sort()).toEqual([
    'migrate vm-102',
    'start vm-101',
    'start vm-105',
  ])
  const { summary, details } = (await prepared(plan))?.dryRun ?? {}
  expect(summary).toMatch(/^migrate 1 VM, to .*; the platform starts 2 VMs by itself$/)
  expect(details).toMatchObject({ forecast: { restarts: expect.arrayContaining(['vm-101', 'vm-105']), staysDown: [] } })
  expect(details?.sizeNote).toContain('ballooning and KSM')
  expect(details?.deaths as unknown as JudgedDeath[]).toMatchObject([
    { host: 'pve1', verdict: 'fenced', isForecast: true },
  ])
})

test('a guest that the manager recovered elsewhere than forecast, within the rules, is done without a call', async () => {
  const plan = await planned()
  const forecast = plan.steps.find(({ vm }) => vm === 'vm-105')?.to
  const other = forecast === 'pve2' ? 'pve3' : 'pve2'
  managerBrings({ 101: 'pve2', 105: other })
  const done = await carriedOut(plan)
  expect(done.detail).toBe('all 3 steps were done')
  expect(step(done.steps, 'vm-105')).toMatchObject({
    to: other,
    detail: `the platform started the VM on ${other} and not on ${forecast} as forecast`,
  })
  expect(done.changed).toContain(`vm-105 started on ${other}`)
  expect(pve.begun.map(({ path }) => path)).toEqual(['/api2/json/nodes/pve2/qemu/102/migrate'])
  const context = { core: corePort(api), signal: AbortSignal.timeout(10_000) } as unknown as ToolContext
  const input = { proposal_id: plan.proposal_id, reason: 'pve1 is dead' }
  expect(await tool.postcondition?.check(input, done, context)).toMatchObject({ holds: true })
})

test('a guest that the manager recovered against a rule of the plan has failed, and the rule is named', async () => {
  pve.ha.rules = [{ rule: 'apart', type: 'resource-affinity', affinity: 'negative', resources: 'vm:101,vm:105' }]
  const plan = await planned()
  managerBrings({ 101: 'pve2', 105: 'pve2' })
  const done = await carriedOut(plan)
  expect(done.steps.map(({ vm, status }) => [vm, status])).toEqual([
    ['vm-102', 'OK'],
    ['vm-101', 'OK'],
    ['vm-105', 'FAILED'],
  ])
  expect(step(done.steps, 'vm-105')).toMatchObject({
    detail: expect.stringMatching(
      /^the platform started the VM on pve2 and not on pve3 as forecast; the VM runs, but breaks the plan's rules there .*apart/,
    ),
  })
})

test('a plan that would only wait for the manager is refused', async () => {
  pve.guests = pve.guests.filter(({ vmid }) => vmid !== 104)
  api.api.deps.state.forget()
  const plan = await planned(await claimedIncident(api.db))
  expect(plan.steps.every(({ action }) => action === 'start')).toBe(true)
  await expect(prepared(plan)).rejects.toThrow(
    /leaves nothing to do: the platform fences the dead host and starts vm-101/,
  )
})
