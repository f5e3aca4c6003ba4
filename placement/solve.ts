import type { PlacementProblem, Plan, Standing } from '../domain/placement.ts'
import type { EngineName } from './bound/engine.ts'
import { checkProblem } from './check.ts'
import { type Instance, instanceOf, type Names } from './cluster/instance.ts'
import { compareLeft } from './cluster/known.ts'
import { shortageIn } from './cluster/shortage.ts'
import { type Situation, situationOf } from './cluster/situation.ts'
import { explainDown, type Relaxed } from './down.ts'
import { obstacleOf, tellRelaxed } from './obstacle.ts'
import { planOf, unplacedOf } from './plan.ts'
import type { PlanReport } from './plan-process.ts'
import { domainNames } from './rules.ts'
import { reportsOf } from './search-process.ts'
import { verifyPlan } from './verify.ts'

export type Progress = { migrations: number | null; lowerBound: number; unplaced: number }

type SolveOptions = {
  timeoutMs?: number
  signal?: AbortSignal
  engine?: EngineName
  seed?: number
  /** Told whenever a better plan or bound is known. */
  onProgress?: (known: Progress) => void
}

/** Time to start a process, and to check what it answered. */
const reserveMs = 700

/**
 * A plan in which every stranded VM gets a place: most important first, then with the fewest live migrations. The search is a
 * separate process that streams what it finds and is killed at the bound. Nothing it says is trusted: plans are replayed by
 * `verifyPlan`, bounds are checked by `holds`. Throws InvalidProblemError.
 */
export async function solve(given: PlacementProblem, options: SolveOptions = {}): Promise<Plan> {
  const began = performance.now()
  const timeoutMs = options.timeoutMs ?? 10_000
  const problem = checkProblem(given)
  const situation = situationOf(problem)
  const isRebalance = problem.intent === 'rebalance'
  if (!isRebalance && situation.wanted.length === 0) return nothing('no_action', null)
  const shortage = isRebalance ? null : shortageIn(problem, situation)
  const { instance, names } = instanceOf(problem, situation)
  const deaths = deathsOf(problem, situation)
  const usedMs = performance.now() - began
  const limitMs = Math.max(50, timeoutMs - reserveMs - usedMs)
  const request = {
    ...{ instance, isRebalance, isImpossible: shortage !== null, deaths: deaths.map(({ hosts }) => hosts), limitMs },
    mayRelax: problem.useRackConstraints && !isRebalance,
    ...{ engine: options.engine ?? 'glpk', seed: options.seed ?? 1 },
  } as const

  let best: Plan | null = null
  let last: PlanReport | null = null
  let isImpossible = shortage !== null
  const until = timeoutMs - usedMs - reserveMs / 4
  for await (const report of reportsOf(request, until, options.signal)) {
    last = report
    isImpossible ||= report.isImpossible
    const plan = planOf(problem, instance, names, report)
    if (plan && verifyPlan(problem, plan).ok) best = plan
    options.onProgress?.({
      migrations: best?.state === 'planned' ? best.migrations : null,
      lowerBound: report.atLeast,
      unplaced: report.left.length,
    })
  }

  return planFrom({ problem, situation, instance, names, shortage, deaths }, best, last, isImpossible)
}

type Asked = {
  problem: PlacementProblem
  situation: Situation
  instance: Instance
  names: Names
  shortage: string | null
  deaths: Death[]
}

/** The answer out of the best plan that was replayed and the last that the search said. */
function planFrom(asked: Asked, best: Plan | null, last: PlanReport | null, isImpossible: boolean): Plan {
  const { problem, situation, instance, names, shortage, deaths } = asked
  const relaxed = relaxedOf(asked, best, last)
  const found = last?.impossible ?? { isContradictory: true, core: [], repairs: [] }
  const obstacle = isImpossible ? obstacleOf({ problem, names, shortage, relaxed, found }) : null
  const shared = { standing: standingOf(problem, deaths, last), isTimeUp: !last?.done || last.wasCut }
  if (best) {
    const reasons = [obstacle?.text ?? best.reason, obstacle || !relaxed ? null : tellRelaxed(problem, relaxed)]
    return {
      ...{ ...best, obstacle, ...shared },
      unplaced: explainDown(problem, best, relaxed),
      reason: best.state === 'partial' ? reasons.filter((each) => each !== null).join('. ') : null,
    }
  }
  const isIdle = problem.intent === 'rebalance' && last?.done && last.moves.length === 0
  const idle = { ...nothing('no_action', null), ...shared }
  if (isIdle && verifyPlan(problem, idle).ok) return idle
  const all = situation.wanted.map((_, index) => index)
  const notFound = last?.done ? 'no plan was found' : 'the time was up before a plan was found'
  const state = isImpossible ? 'infeasible' : 'not_found'
  const none = {
    ...{ ...nothing(state, isImpossible ? (obstacle?.text ?? null) : notFound), obstacle, ...shared },
    unplaced: unplacedOf(names, all, instance),
  }
  return { ...none, unplaced: explainDown(problem, none, relaxed) }
}

/** What would start if racks did not count, where that is the lesser harm; null otherwise. The plan for it is replayed like any other. */
function relaxedOf({ problem, names, instance }: Asked, best: Plan | null, last: PlanReport | null): Relaxed | null {
  if (!last?.relaxed) return null
  const free = { ...problem, useRackConstraints: false }
  const relaxed = instanceOf(free, situationOf(free)).instance
  const plan = planOf(free, relaxed, names, { ...last, ...last.relaxed, how: 'trivial', atLeast: 0 })
  const left = best ? last.left : instance.wanted
  if (!plan || !verifyPlan(free, plan).ok || compareLeft(instance, last.relaxed.left, left) >= 0) return null
  const isDown = new Set(unplacedOf(names, left, instance).map(({ vm }) => vm))
  const down = plan.unplaced.map(({ vm }) => vm)
  const starts = [...isDown].filter((vm) => !down.includes(vm))
  return { starts, down, migrations: plan.migrations }
}

function nothing(state: Plan['state'], reason: string | null): Plan {
  const none = { steps: [], migrations: 0, lowerBound: 0, unplaced: [], obstacle: null, standing: null }
  return { state, ...none, proof: { kind: 'trivial' }, reason }
}

type Death = { name: string; hosts: number[] }

/** What may die next: each target, or with rack constraints each rack. */
function deathsOf(problem: PlacementProblem, { targets }: Situation): Death[] {
  const index = new Map(targets.map(({ name }, at) => [name, at]))
  return domainNames(problem, targets).map(({ name, hosts }) => ({
    ...{ name, hosts: hosts.map((host) => index.get(host.name) as number) },
  }))
}

function standingOf(
  { useRackConstraints }: PlacementProblem,
  deaths: Death[],
  report: PlanReport | null,
): Standing | null {
  if (!report?.standing) return null
  const { before, after } = report.standing
  const named = (outcomes: typeof before) => outcomes.map((outcome, index) => ({ name: deaths[index]!.name, outcome }))
  return { domain: useRackConstraints ? 'rack' : 'host', before: named(before), after: named(after) }
}
