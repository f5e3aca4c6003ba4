import { afterAll, expect, test } from '@jest/globals'
import { tiny } from '../../bench/placement/clusters.ts'
import { startEngine } from '../../placement/bound/assignment.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import { toPlan } from '../../placement/plan.ts'
import { countMigrations } from '../../placement/search/exhaust.ts'
import { improve } from '../../placement/search/improve.ts'
import { search } from '../../placement/search/search.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { fewestMigrations } from './problems.ts'

const engine = startEngine('glpk')
afterAll(() => engine.stop())

test('plans for small clusters keep every rule in every interleaving and need as few migrations as an exhaustive search', async () => {
  let compared = 0
  let planned = 0
  for (let seed = 1; seed <= 200; seed += 1) {
    const problem = tiny(seed)
    const { instance, names } = buildInstance(problem, buildModel(problem))
    if (instance.evacuees.length === 0) continue
    const deadlineMs = performance.now() + patienceMs
    const known = await improve(instance, engine, { deadlineMs, random: random(seed), report: () => {} })
    const plan = toPlan(problem, instance, names, known)
    if (plan) {
      planned += 1
      expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
    }
    const fewest = fewestMigrations(problem)
    expect({ seed, isInfeasible: known.isInfeasible }).toEqual({ seed, isInfeasible: fewest === null })
    if (fewest === null) continue
    compared += 1
    expect({ seed, migrations: countMigrations(instance, known.moves), left: known.unplaced }).toEqual({
      seed,
      migrations: fewest,
      left: [],
    })
    expect(known.lowerBound).toBe(fewest)
  }
  expect(compared).toBeGreaterThan(80)
  expect(planned).toBeGreaterThan(80)
})

test('the search alone, which is all that large clusters have, also breaks no rule', () => {
  let planned = 0
  for (let seed = 1; seed <= 500; seed += 1) {
    const problem = tiny(seed)
    const { instance, names } = buildInstance(problem, buildModel(problem))
    const deadlineMs = performance.now() + patienceMs
    const found = search(instance, { random: random(seed), noise: 0.5, maxMigrations: 10, deadlineMs })
    const claimed = {
      ...found,
      lowerBound: 0,
      provenBy: 'trivial' as const,
      certificate: null,
      isInfeasible: false,
      triage: null,
    }
    const plan = toPlan(problem, instance, names, claimed)
    if (!plan) continue
    planned += 1
    expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
  }
  expect(planned).toBeGreaterThan(250)
})
