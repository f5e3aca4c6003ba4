import type { PlacementProblem } from '../domain/placement.ts'
import { type EngineName, startEngine } from '../placement/bound/assignment.ts'
import { buildWholeModel } from '../placement/bound/places-model.ts'
import { buildInstance, buildModel, type Instance } from '../placement/cluster/instance.ts'
import { random } from '../placement/cluster/size-classes.ts'
import { toPlan } from '../placement/plan.ts'
import { countMigrations, type Incumbent } from '../placement/search/exhaust.ts'
import { improve } from '../placement/search/improve.ts'
import { explainInfeasibility } from '../placement/search/infeasibility.ts'
import { assessSurvivability } from '../placement/search/rebalance.ts'
import { search } from '../placement/search/search.ts'
import { solve } from '../placement/solve.ts'
import { verifyPlan } from '../placement/verify.ts'
import { fewestMigrations } from '../test/placement/problems.ts'
import { beyond, type Family, families, generate, loads, nameOf, tiny } from './placement/clusters.ts'
import { askCpSat, findPython, howToInstall } from './placement/rival.ts'
import { versus } from './placement/versus.ts'
import { readWorld } from './placement/world.ts'
import { report } from './stage.ts'

const limitMs = 10_000

/**
 * Compares the planner's stages with one large model of all VMs and hosts, as other solvers use it.
 * Counts the migrations that each finds within ten seconds. Only the last column can be executed,
 * because a large model finds an end state without an order.
 */
async function compare(): Promise<void> {
  const python = findPython()
  console.log(
    `\nplacement: fewest migrations found (* proved), seconds; ${python ? 'CP-SAT with 2 workers' : howToInstall}`,
  )
  console.log(
    ['instance'.padEnd(18), 'GLPK', 'HiGHS', 'CP-SAT', 'stages, in an order'].map((each) => each.padEnd(14)).join(''),
  )
  for (const [hosts, vms, racks] of [
    [10, 100, null],
    [20, 300, null],
    [20, 300, 5],
    [50, 1_000, null],
    [100, 2_000, null],
  ] as const) {
    for (const load of loads) {
      const family: Family = { hosts, vms, racks, load, seed: 1 }
      const problem = generate(family)
      const { instance } = buildInstance(problem, buildModel(problem))
      const cells = [
        await whole(instance, 'glpk'),
        await whole(instance, 'highs'),
        python ? cpSat(problem, python) : '-',
      ]
      const began = performance.now()
      const plan = await solve(problem, { timeoutMs: limitMs })
      const isProved = plan.state === 'planned' && plan.migrations === plan.lowerBound
      const bound = isProved ? '*' : ` [${plan.lowerBound}]`
      cells.push(`${plan.state === 'planned' ? plan.migrations : plan.state}${bound} ${seconds(began)}`)
      console.log([nameOf(family).padEnd(18), ...cells].map((each) => each.padEnd(14)).join(''))
    }
  }
}

async function whole(instance: Instance, name: EngineName): Promise<string> {
  const movers = instance.movable.flatMap((may, vm) => (may ? [vm] : []))
  const engine = startEngine(name)
  const began = performance.now()
  const built = buildWholeModel(instance, movers, movers.length)
  const answer = built ? await engine.solve(built.model, limitMs) : ({ status: 'infeasible' } as const)
  engine.stop()
  if (answer.status !== 'optimal' && answer.status !== 'feasible')
    return `${answer.status === 'unknown' ? 'none' : answer.status} ${seconds(began)}`
  const stayed = built!.columns.filter(
    ([vm, host], column) => answer.values[column] === 1 && instance.movable[vm] && instance.home[vm] === host,
  )
  return `${movers.length - stayed.length}${answer.status === 'optimal' ? '*' : ''} ${seconds(began)}`
}

function cpSat(problem: PlacementProblem, python: string): string {
  const began = performance.now()
  const world = readWorld(problem)
  const { status, place } = askCpSat(python, world, { ask: 'whole', triage: false, seconds: limitMs / 1_000 })
  if (!place) return `${status === 'UNKNOWN' ? 'none' : status} ${seconds(began)}`
  const moved = world.units.filter(({ stranded, home }, unit) => !stranded && home !== place[unit]).length
  return `${moved}${status === 'OPTIMAL' ? '*' : ''} ${seconds(began)}`
}

function seconds(beganMs: number): string {
  return ((performance.now() - beganMs) / 1_000).toFixed(1)
}

/**
 * Compares plans for random small clusters with a full search. Measures the whole pipeline, and the
 * search alone as for large clusters.
 */
async function small(): Promise<void> {
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

/** Runs the search without a bound and without an engine, as for large clusters. */
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
    triage: null,
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

/**
 * Runs `PARTS=versus,families,small,compare,others,beyond` (all by default). Further variables are
 * `ENGINE=highs`, `SEEDS`, `CASES`, those of `versus`, and `PYTHON` for a Python with OR-Tools.
 */
export async function placement(): Promise<void> {
  const parts = (process.env.PARTS ?? 'versus,families,small,others,beyond,compare').split(',')
  const engine = process.env.ENGINE === 'highs' ? 'highs' : 'glpk'
  if (parts.includes('versus')) await versus()
  if (parts.includes('families')) await families(engine)
  if (parts.includes('small')) await small()
  if (parts.includes('others')) await others()
  if (parts.includes('beyond')) await beyond()
  if (parts.includes('compare')) await compare()
}

/**
 * Measures two further durations that are promised: the answer which host may fail next at 100
 * hosts, and the answer why nothing fits at 10 hosts.
 */
async function others(): Promise<void> {
  const large = generate({ hosts: 100, vms: 2_000, racks: null, load: 0.93, seed: 1 })
  const { instance } = buildInstance(large, buildModel(large))
  const deaths = Array.from({ length: instance.targets }, (_, host) => [host])
  const standingAt = performance.now()
  const outcomes = assessSurvivability(instance, [], deaths, random(1), performance.now() + 10_000)
  const standingMs = performance.now() - standingAt

  const full = generate({ hosts: 10, vms: 100, racks: null, load: 0.97, seed: 1 })
  const [first, second] = full.hosts
  const twoDead = {
    ...full,
    hosts: full.hosts.map((host) => (host === second ? { ...host, state: 'dead' as const } : host)),
    hostIds: [first!.name, second!.name],
  }
  const broken = buildInstance(twoDead, buildModel(twoDead)).instance
  const { unplaced } = search(broken, {
    random: random(1),
    noise: 0,
    maxMigrations: 20,
    deadlineMs: performance.now() + 200,
  })
  const engine = startEngine('glpk')
  const coreAt = performance.now()
  const why = await explainInfeasibility(broken, unplaced, engine, random(1), performance.now() + 10_000)
  const coreMs = performance.now() - coreAt
  engine.stop()
  report('placement others', {
    'N-1 of 100x2000 at 93 % (ms)': Math.round(standingMs),
    'hosts whose VMs restart, move others, not found': ['restarted', 'moved', 'not_found']
      .map((word) => outcomes.filter((each) => each.outcome === word).length)
      .join(', '),
    'core of 10x100 with two dead hosts (ms)': Math.round(coreMs),
    'limits in the core': why.core.length,
    'repairs that were tried and do': why.repairs.length,
  })
}
