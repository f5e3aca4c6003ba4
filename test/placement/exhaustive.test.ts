import { afterAll, expect, test } from '@jest/globals'
import { tiny } from '../../bench/placement/tiny.ts'
import { startEngine } from '../../placement/bound/engine.ts'
import { instanceOf } from '../../placement/cluster/instance.ts'
import { migrationsOf } from '../../placement/cluster/known.ts'
import { random } from '../../placement/cluster/random.ts'
import { situationOf } from '../../placement/cluster/situation.ts'
import { planOf } from '../../placement/plan.ts'
import { improve } from '../../placement/search/improve.ts'
import { search } from '../../placement/search/search.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { fewestMigrations } from './brute-force.ts'

const engine = startEngine('glpk')
afterAll(() => engine.stop())

test('plans for small clusters keep every rule in every interleaving and need as few migrations as trying everything finds', async () => {
  let compared = 0
  for (let seed = 1; seed <= 200; seed += 1) {
    const problem = tiny(seed)
    const { instance, names } = instanceOf(problem, situationOf(problem))
    if (instance.wanted.length === 0) continue
    const deadlineMs = performance.now() + 20_000
    const known = await improve(instance, engine, { deadlineMs, random: random(seed), report: () => {} })
    const plan = planOf(problem, instance, names, known)
    if (plan) expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
    const fewest = fewestMigrations(problem)
    expect({ seed, isImpossible: known.isImpossible }).toEqual({ seed, isImpossible: fewest === null })
    if (fewest === null) continue
    compared += 1
    expect({ seed, migrations: migrationsOf(instance, known.moves), left: known.left }).toEqual({
      seed,
      migrations: fewest,
      left: [],
    })
    expect(known.atLeast).toBe(fewest)
  }
  expect(compared).toBeGreaterThan(80)
})

test('also the search alone, which is all that large clusters have, breaks nothing', () => {
  for (let seed = 1; seed <= 500; seed += 1) {
    const problem = tiny(seed)
    const { instance, names } = instanceOf(problem, situationOf(problem))
    const deadlineMs = performance.now() + 5_000
    const found = search(instance, { random: random(seed), noise: 0.5, maxMigrations: 10, deadlineMs })
    const claimed = { ...found, atLeast: 0, how: 'trivial' as const, certificate: null, isImpossible: false }
    const plan = planOf(problem, instance, names, claimed)
    if (plan) expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
  }
})
