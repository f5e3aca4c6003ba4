import { expect, test } from '@jest/globals'
import { findBreaks } from '../../bench/placement/checker.ts'
import { tiny } from '../../bench/placement/clusters.ts'
import { drawCluster, familyNames, takesScale } from '../../bench/placement/drawn.ts'
import { findOrder, toSequentialPlan } from '../../bench/placement/order.ts'
import { readWorld } from '../../bench/placement/world.ts'
import type { PlacementProblem } from '../../domain/placement.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { dead, down, host, problem, vm } from '../placement/problems.ts'
import { patienceMs } from '../support/directory.ts'

test(
  "the benchmark's checker and the replay agree about plans, also about changed plans",
  async () => {
    let refused = 0
    for (let seed = 1; seed <= 25; seed += 1) {
      const given = tiny(seed)
      const plan = await solve(given, { timeoutMs: patienceMs })
      if (plan.steps.length === 0) continue
      const changed = [
        plan,
        ...plan.steps.map((_, at) => ({ ...plan, steps: plan.steps.with(at, { ...plan.steps[at]!, needs: [] }) })),
        ...plan.steps.map((_, at) => ({ ...plan, steps: plan.steps.with(at, { ...plan.steps[at]!, to: 'h2' }) })),
      ]
      for (const each of changed) {
        const isSound = verifyPlan(given, each).ok
        const breaks = findBreaks(given, each)
        // What the replay takes breaks nothing. It is stricter about what breaks nothing: a move to
        // where a VM is, a wait for less room than there is.
        if (isSound) expect([seed, breaks]).toEqual([seed, []])
        if (breaks.length > 0) expect([seed, isSound, breaks]).toEqual([seed, false, breaks])
        refused += breaks.length > 0 ? 1 : 0
      }
    }
    expect(refused).toBeGreaterThan(10)
  },
  patienceMs,
)

test('two full hosts swap their VMs through a third host, and do not swap without one', () => {
  const swap = (third: number): PlacementProblem =>
    problem(
      [host('a', 4), host('b', 4), host('c', third), host('x', 4, dead)],
      [vm('one', 4, 'a'), vm('two', 4, 'b'), vm('gone', 1, 'x', down)],
    )
  const world = readWorld(swap(5))
  const ends = world.units.map(({ vms }) => ({ one: 1, two: 0, gone: 2 })[vms[0]!.vm] as number)
  const order = findOrder(world, ends, 60)
  expect(order?.migrations).toBe(3)
  const plan = toSequentialPlan(world, order!)
  expect(findBreaks(swap(5), plan)).toEqual([])
  expect(verifyPlan(swap(5), plan)).toEqual({ ok: true })
  expect(findOrder(readWorld(swap(3)), ends, 0.2)).toBeNull()
})

test.each(familyNames.filter((name) => takesScale(name, 'small')))(
  'a generated cluster of %s is valid before its failure, and is the same for the same seed',
  (name) => {
    const drawn = [1, 2, 3, 4].map((seed) => drawCluster(name, 'small', seed)).find((each) => each !== null)
    expect(drawn).toEqual(drawCluster(name, 'small', Number(drawn?.name.split('-s').at(-1))))
    const { problem: given } = drawn!
    const before = {
      ...given,
      intent: 'rebalance' as const,
      hostIds: [],
      hosts: given.hosts.map((each) => ({ ...each, state: 'live' as const })),
      vms: given.vms.map((each) => ({ ...each, running: true })),
    }
    const idle = {
      ...toSequentialPlan(readWorld(given), { moves: [] }),
      state: 'no_action' as const,
      unplaced: [],
    }
    expect(verifyPlan(before, idle)).toEqual({ ok: true })
  },
)
