import type { PlacementProblem, PlacementVm, Plan, PlanStep } from '../domain/placement.ts'
import { type Assignment, buildModel } from './build-model.ts'
import { checkProblem, plainObstacle } from './check.ts'
import { type Glpk, startGlpk } from './glpk.ts'
import { orderMoves } from './order.ts'
import { isRunning, type Situation, situationOf } from './situation.ts'
import { verifyPlan } from './verify.ts'

export type SolveOptions = { timeoutMs?: number; signal?: AbortSignal }

/** A program of more yes-or-no columns is not worth the memory: GLPK would not get anywhere in the time. */
const maxColumns = 60_000
/** Placements without an order that are tried before giving up. */
const maxCuts = 200
/** The balance is a tie-break: near the best, soon. */
const balanceGap = 0.01
const balanceLimitMs = 2_000

/**
 * A plan in which every stranded VM gets a place, with the fewest live migrations, then the least utilisation of the fullest
 * host; the same problem gives the same plan unless time runs out. The answer has been replayed by `verifyPlan`. Throws
 * InvalidProblemError. Never longer than `timeoutMs` by more than the time to end a process.
 */
export async function solve(given: PlacementProblem, options: SolveOptions = {}): Promise<Plan> {
  const deadlineMs = performance.now() + (options.timeoutMs ?? 10_000)
  const problem = checkProblem(given)
  const situation = situationOf(problem)
  const idle: Plan = { state: 'no_action', steps: [], migrations: 0, reason: null }
  if (situation.stranded.length === 0 && verifyPlan(problem, idle).ok) return idle
  const obstacle = plainObstacle(situation)
  if (obstacle) return without('infeasible', obstacle)

  const glpk = startGlpk()
  const stop = () => glpk.stop()
  options.signal?.addEventListener('abort', stop, { once: true })
  if (options.signal?.aborted) stop()
  try {
    const plan = await search(situation, glpk, deadlineMs)
    const verified = verifyPlan(problem, plan)
    if (verified.ok) return plan
    return without('not_found', `the plan did not stand up to its replay at step ${verified.step}: ${verified.reason}`)
  } finally {
    options.signal?.removeEventListener('abort', stop)
    stop()
  }
}

/** Restarts alone first: nearly always enough, and much smaller. Only when they are not may others move. */
async function search(situation: Situation, glpk: Glpk, deadlineMs: number): Promise<Plan> {
  const rebalances = situation.problem.intent === 'rebalance'
  // A restart that is hard to find is not worth all the time: moving one VM may make it easy.
  const aloneLimitMs = (deadlineMs - performance.now()) * 0.4
  const alone = rebalances ? null : await place(situation, [], glpk, deadlineMs, aloneLimitMs)
  if (alone?.state === 'planned') return alone
  if (situation.movable.length === 0) {
    return alone ?? without('infeasible', 'a rule is broken and no running VM may move')
  }
  return place(situation, situation.movable, glpk, deadlineMs)
}

async function place(
  situation: Situation,
  movable: PlacementVm[],
  glpk: Glpk,
  deadlineMs: number,
  limitMs?: number,
): Promise<Plan> {
  const extent = movable.length > 0 ? 'even when running VMs may move to make room' : 'and no running VM may move'
  const cuts: Assignment[] = []
  while (cuts.length < maxCuts) {
    const built = buildModel(situation, movable, cuts)
    if (built && built.columns.length > maxColumns) {
      return without('not_found', `${built.columns.length} possible places are too many to search`)
    }
    const first = built
      ? await glpk.solve({ model: built.fewest, relativeGap: 0 }, deadlineMs, limitMs)
      : { status: 'infeasible' as const }
    if (first.status === 'unknown') return without('not_found', 'the time was up before a placement was found')
    if (first.status === 'infeasible' || !built) {
      if (cuts.length === 0) return without('infeasible', `no placement keeps every rule, ${extent}`)
      // A VM that moves twice might still do it, so this proves nothing.
      return without('not_found', 'placements exist, but no order of single moves reaches one')
    }
    const model = built.balanced(built.migrationsOf(first.values))
    const second = await glpk.solve({ model, relativeGap: balanceGap }, deadlineMs, balanceLimitMs)
    for (const answer of [second, first]) {
      if (answer.status === 'unknown' || answer.status === 'infeasible') continue
      const ordered = orderMoves(situation, assignmentOf(built.columns, answer.values))
      if (ordered.kind === 'order') return planned(situation, ordered.steps, first.status === 'optimal')
      cuts.push(ordered.moves)
    }
  }
  return without('not_found', `of ${maxCuts} placements none can be reached in an order of single moves`)
}

function assignmentOf(columns: [string, string][], values: number[]): Assignment {
  return new Map(columns.filter((_, column) => values[column] === 1))
}

function planned(situation: Situation, steps: PlanStep[], isOptimal: boolean): Plan {
  const migrations = steps.filter((step) => step.action === 'migrate').length
  const needed = situation.stranded.filter((vm) => isRunning(situation, vm)).length
  const isProved = isOptimal || migrations === needed
  const reason = isProved ? null : 'the time was up before it was proved that fewer migrations do not suffice'
  return { state: 'planned', steps, migrations, reason }
}

function without(state: 'infeasible' | 'not_found', reason: string): Plan {
  return { state, steps: [], migrations: 0, reason }
}
