import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { PlanStep } from '../../domain/placement.ts'
import type { Inventory } from '../../domain/platform.ts'
import { approvedWrite } from '../support/announced.ts'
import { twoWaves, useApi } from '../support/api.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

// A person approved moves of things with names. What bears a name may be another thing by the time
// its step comes.
const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const { migrateVm, inventory } = platform

beforeEach(() => {
  Object.assign(platform, { inventoryState: twoWaves(), script: {}, down: false, begun: [] })
  api.api.deps.state.forget()
})
afterEach(() => {
  Object.assign(platform, { migrateVm, inventory })
})

type Plan = { proposal_id: string; planDigest: string; stateFingerprint: string; steps: PlanStep[] }
type Step = { vm: string; status: string; detail: string }

/** Executes the plan for the dead host, and answers what became of each VM. */
async function executed(change: () => void): Promise<Record<string, Step>> {
  const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false, incident_id: null }
  const plan = (await api.post('/placement/proposals', { body })).body as unknown as Plan
  change()
  const headers = { 'if-match': plan.stateFingerprint }
  const sent = await approvedWrite(api, 'execute_migration', { plan: plan.planDigest })
  const more = { ...sent, body: { reason: 'host c is dead' }, headers }
  const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, more)
  const done = (answer.body.result ?? answer.body) as unknown as { steps: Step[] }
  const numbers = new Map(plan.steps.map(({ step, vm }) => [String(step), vm]))
  const begun = platform.begun.map((key) => numbers.get(key.split(':').at(-1) ?? ''))
  for (const { vm, status } of done.steps) expect([vm, begun.includes(vm)]).toEqual([vm, status !== 'SKIPPED'])
  return Object.fromEntries(done.steps.map((step) => [step.vm, step]))
}

const vm = (id: string) => platform.inventoryState.vms.find((each) => each.id === id) as Inventory['vms'][number]
const host = (id: string) => platform.inventoryState.hosts.find((each) => each.id === id) as Inventory['hosts'][number]
const notApproved = (why: string) => ({
  status: 'SKIPPED',
  detail: `${why}: this state differs from the approved state`,
})
/** Does something to the platform once, after the first VM has moved. */
function afterAMove(change: () => void): void {
  platform.migrateVm = async (...args) => {
    const answer = await migrateVm(...args)
    change()
    return answer
  }
}
/**
 * Does something to the platform between the look that compares it with the approved state and the
 * next one.
 */
function afterTheComparison(change: () => void): void {
  let reads = 0
  platform.inventory = async () => {
    reads += 1
    if (reads === 2) change()
    return await inventory()
  }
}

test('a change between the comparison with the approved state and the first step does not count as approved', async () => {
  const steps = await executed(() =>
    afterTheComparison(() => {
      Object.assign(vm('lone'), { cpuMc: 700 })
      Object.assign(vm('small-1'), { haGroup: 'databases' })
    }),
  )
  expect(steps.lone).toMatchObject(notApproved('lone has another size'))
  expect(steps['small-1']).toMatchObject(notApproved('small-1 has other rules'))
  expect(steps.big?.status).toBe('SKIPPED')
})

test.each<[string, () => void, string]>([
  ['a VM of another size', () => Object.assign(vm('big'), { cpuMc: 700 }), 'big has another size'],
  ['a VM with other rules', () => Object.assign(vm('big'), { affinityGroup: 'x' }), 'big has other rules'],
  ['a host that stands elsewhere', () => Object.assign(host('a'), { rack: 'rack-b' }), 'a stands elsewhere'],
  ['a host of another size', () => Object.assign(host('a'), { ramMib: 8_100 }), 'a has another size'],
])('in the middle of a plan, %s under the approved name stops the step', async (_, change, why) => {
  const steps = await executed(() => afterAMove(change))
  expect(steps.big).toMatchObject(notApproved(why))
  expect(steps).toMatchObject({ 'small-1': { status: 'OK' }, 'small-2': { status: 'OK' }, lone: { status: 'OK' } })
})

test('a VM that was away for a while gets no step, even if a similar VM has its name now', async () => {
  const gone = vm('big')
  let isGone = false
  const steps = await executed(() => {
    afterAMove(() => {
      isGone = true
    })
    platform.inventory = async () => {
      const told = await inventory()
      return isGone ? { ...told, vms: told.vms.filter(({ id }) => id !== 'big') } : told
    }
  })
  expect(steps.big).toMatchObject(notApproved('big is gone'))
  expect(vm('big')).toEqual(gone)
})
