import { startEngine } from '../../placement/bound/engine.ts'
import { instanceOf } from '../../placement/cluster/instance.ts'
import { type Known, migrationsOf } from '../../placement/cluster/known.ts'
import { random } from '../../placement/cluster/random.ts'
import { situationOf } from '../../placement/cluster/situation.ts'
import { planOf } from '../../placement/plan.ts'
import { improve } from '../../placement/search/improve.ts'
import { search } from '../../placement/search/search.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { fewestMigrations } from '../../test/placement/brute-force.ts'
import { report } from '../report.ts'
import { tiny } from './tiny.ts'

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
    const { instance, names } = instanceOf(problem, situationOf(problem))
    if (instance.wanted.length === 0) continue
    const fewest = fewestMigrations(problem)
    const check = (known: Known) => {
      const plan = planOf(problem, instance, names, known)
      if (!plan) return
      count.plans += 1
      if (!verifyPlan(problem, plan).ok) count.violations += 1
    }
    const deadlineMs = performance.now() + 10_000
    const known = await improve(instance, engine, { deadlineMs, random: random(seed), report: () => {} })
    check(known)
    if (known.isImpossible !== (fewest === null) || (fewest !== null && known.atLeast > fewest)) count.wrongClaims += 1
    if (fewest === null) continue
    count.solvable += 1
    if (fewest > 0) count.needMoves += 1
    if (known.left.length === 0 && migrationsOf(instance, known.moves) === fewest) count.minimal += 1

    const alone = searchAlone()
    check(alone)
    if (alone.left.length > 0 || migrationsOf(instance, alone.moves) !== fewest) continue
    count.searched += 1
    if (fewest > 0) count.searchedWithMoves += 1

    function searchAlone(): Known {
      const next = random(seed)
      const until = performance.now() + 100
      let best: Known = {
        moves: [],
        left: instance.wanted,
        atLeast: 0,
        how: 'trivial',
        certificate: null,
        isImpossible: false,
      }
      for (let run = 0; run < 300 && performance.now() < until; run += 1) {
        const maxMigrations = best.left.length === 0 ? migrationsOf(instance, best.moves) - 1 : 10
        if (maxMigrations < 0) break
        const noise = run === 0 ? 0 : 0.3 + 0.7 * next()
        const found = search(instance, { random: next, noise, maxMigrations, deadlineMs: until })
        if (found.left.length === 0) best = { ...best, ...found }
      }
      return best
    }
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
