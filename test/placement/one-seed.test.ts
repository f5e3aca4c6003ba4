import { expect, test } from '@jest/globals'
import { generate } from '../../bench/placement/clusters.ts'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { exhaust } from '../../placement/search/exhaust.ts'
import { solve } from '../../placement/solve.ts'
import { patienceMs } from '../support/directory.ts'
import { dead, down, host, problem, vm } from './problems.ts'
import { listSolvers } from './solvers.ts'

/** A plan by a machine whose solvers stand still for half a second, twice. */
async function haltedPlan(given: PlacementProblem): Promise<Plan> {
  let halts = 0
  return await solve(given, {
    timeoutMs: patienceMs,
    seed: 5,
    onProgress() {
      for (const pid of halts < 2 ? listSolvers() : []) {
        halts += 1
        process.kill(pid, 'SIGSTOP')
        setTimeout(() => process.kill(pid, 'SIGCONT'), 500)
      }
    },
  })
}

test('one seed gives one plan, however fast the machine is', async () => {
  const given = generate({ hosts: 20, vms: 300, racks: null, load: 0.97, seed: 1 })
  const plan = await solve(given, { timeoutMs: patienceMs, seed: 5 })
  const halted = await haltedPlan(given)
  expect(plan.isTimeUp).toBe(false)
  expect(halted).toEqual(plan)
})

test('a plan of a search that was too short says that its time was up', async () => {
  const given = generate({ hosts: 50, vms: 1_000, racks: null, load: 0.97, seed: 1 })
  expect((await solve(given, { timeoutMs: 1 })).isTimeUp).toBe(true)
})

test('the exhaustive search stops at its time limit and at its work limit, also while it starts VMs', () => {
  // Eleven VMs start anywhere, in billions of ways, before the last turns out to be allowed
  // nowhere.
  const hosts = Array.from({ length: 8 }, (_, index) => host(`h${index}`, 64))
  const many = Array.from({ length: 11 }, (_, index) => vm(`v${index}`, 2, 'x', down))
  const never = vm('never', 1, 'x', { ...down, forbiddenHosts: hosts.map(({ name }) => name) })
  const given = problem([...hosts, host('x', 64, dead)], [...many, never])
  const { instance } = buildInstance(given, buildModel(given))
  expect(exhaust(instance, 150_000, performance.now())).toEqual({ kind: 'unknown' })
  expect(exhaust(instance, 100, Number.POSITIVE_INFINITY)).toEqual({ kind: 'unknown' })
})
