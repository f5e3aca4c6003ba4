import { startEngine } from '../../placement/bound/engine.ts'
import { random } from '../../placement/cluster/budget.ts'
import { buildInstance, buildModel, type Instance } from '../../placement/cluster/instance.ts'
import { toPlan } from '../../placement/plan.ts'
import { improve } from '../../placement/search/improve.ts'
import { countMigrations, type Incumbent } from '../../placement/search/incumbent.ts'
import { search } from '../../placement/search/search.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { fewestMigrations } from '../../test/placement/brute-force.ts'
import { report } from '../report.ts'
import { tiny } from './clusters.ts'

/** Random small clusters against trying everything: the whole pipeline, and the search alone, which is what large ones have. */
export async function small(): Promise<void> {
  const cases = Number(process.env.CASES ?? 10_000)
  const engine = startEngine('glpk')
  const count = {
    solvable: 0,
    needMoves: 0,
    minimal: 0,
    searched: 0,
    searchedWithMoves: 0,
    violations: 0,
    wrongClaims: 0,
    plans: 0,
  }
  for (let seed = 1; seed <= cases; seed += 1) {
    const problem = tiny(seed)
    const { instance, names } = buildInstance(problem, buildModel(problem))
    if (instance.evacuees.length === 0) continue
    const fewest = fewestMigrations(problem)
    const check = (known: Incumbent) => {
      const plan = toPlan(problem, instance, names, known)
      if (!plan) return
      count.plans += 1
      if (!verifyPlan(problem, plan).ok) count.violations += 1
    }
    const deadlineMs = performance.now() + 10_000
    const known = await improve(instance, engine, { deadlineMs, random: random(seed), report: () => {} })
    check(known)
    if (known.isInfeasible !== (fewest === null) || (fewest !== null && known.lowerBound > fewest))
      count.wrongClaims += 1
    if (fewest === null) continue
    count.solvable += 1
    if (fewest > 0) count.needMoves += 1
    if (known.unplaced.length === 0 && countMigrations(instance, known.moves) === fewest) count.minimal += 1

    const alone = searchAlone(instance, seed)
    check(alone)
    if (alone.unplaced.length > 0 || countMigrations(instance, alone.moves) !== fewest) continue
    count.searched += 1
    if (fewest > 0) count.searchedWithMoves += 1
  }
  engine.stop()
  report('placement small', {
    clusters: cases,
    'with a VM down': count.plans,
    'solvable by trying everything': count.solvable,
    'of these needing migrations': count.needMoves,
    'solved with the fewest (%)': Number(((100 * count.minimal) / count.solvable).toFixed(2)),
    'by the search alone (%)': Number(((100 * count.searched) / count.solvable).toFixed(2)),
    'by the search alone, where migrations are needed (%)': Number(
      ((100 * count.searchedWithMoves) / count.needMoves).toFixed(2),
    ),
    'plans replayed that break a rule in some interleaving': count.violations,
    'claims that trying everything contradicts': count.wrongClaims,
  })
}

/** The search without bound and engine, which is all that large clusters have. */
function searchAlone(instance: Instance, seed: number): Incumbent {
  const next = random(seed)
  const until = performance.now() + 100
  let best: Incumbent = {
    moves: [],
    unplaced: instance.evacuees,
    lowerBound: 0,
    provenBy: 'trivial',
    certificate: null,
    isInfeasible: false,
  }
  for (let run = 0; run < 300 && performance.now() < until; run += 1) {
    const maxMigrations = best.unplaced.length === 0 ? countMigrations(instance, best.moves) - 1 : 10
    if (maxMigrations < 0) break
    const noise = run === 0 ? 0 : 0.3 + 0.7 * next()
    const found = search(instance, { random: next, noise, maxMigrations, deadlineMs: until })
    if (found.unplaced.length === 0) best = { ...best, ...found }
  }
  return best
}
