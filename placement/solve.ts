import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { PlacementProblem, Plan, Standing } from '../domain/placement.ts'
import { type EngineName, nodeFlags } from './bound/assignment.ts'
import { checkProblem } from './certificate.ts'
import { buildInstance, buildModel, type Instance, type Names, type PlacementModel } from './cluster/instance.ts'
import { findShortage } from './cluster/size-classes.ts'
import { describeObstacle, describeWithoutRacks } from './obstacle.ts'
import { listUnplaced, toPlan } from './plan.ts'
import type { PlanReport, PlanRequest } from './plan-process.ts'
import { nameFailureDomains } from './rules.ts'
import { compareUnplaced } from './search/exhaust.ts'
import { explainUnplaced, type PlanWithoutRacks } from './unplaced.ts'
import { verifyPlan } from './verify.ts'

export type SolveProgress = { migrations: number | null; lowerBound: number; unplaced: number }

type SolveOptions = {
  timeoutMs?: number
  signal?: AbortSignal
  engine?: EngineName
  seed?: number
  /** Told whenever a better plan or bound is known. */
  onProgress?: (known: SolveProgress) => void
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
  const situation = buildModel(problem)
  const isRebalance = problem.intent === 'rebalance'
  if (!isRebalance && situation.evacuees.length === 0) return nothing('no_action', null)
  const shortage = isRebalance ? null : findShortage(problem, situation)
  const { instance, names } = buildInstance(problem, situation)
  const failureDomains = listFailureDomains(problem, situation)
  const usedMs = performance.now() - began
  const limitMs = Math.max(50, timeoutMs - reserveMs - usedMs)
  const request = {
    instance,
    isRebalance,
    isInfeasible: shortage !== null,
    failureDomains: failureDomains.map(({ hosts }) => hosts),
    limitMs,
    mayRelax: problem.useRackConstraints && !isRebalance,
    engine: options.engine ?? 'glpk',
    seed: options.seed ?? 1,
  } as const

  let best: Plan | null = null
  let last: PlanReport | null = null
  let isInfeasible = shortage !== null
  const until = timeoutMs - usedMs - reserveMs / 4
  for await (const report of streamReports(request, until, options.signal)) {
    last = report
    isInfeasible ||= report.isInfeasible
    const plan = toPlan(problem, instance, names, report)
    if (plan && verifyPlan(problem, plan).ok) best = plan
    options.onProgress?.({
      migrations: best?.state === 'planned' ? best.migrations : null,
      lowerBound: report.lowerBound,
      unplaced: report.unplaced.length,
    })
  }

  return planFrom({ problem, situation, instance, names, shortage, failureDomains }, best, last, isInfeasible)
}

type SolveContext = {
  problem: PlacementProblem
  situation: PlacementModel
  instance: Instance
  names: Names
  shortage: string | null
  failureDomains: NamedDomain[]
}

/** The answer out of the best plan that was replayed and the last that the search said. */
function planFrom(asked: SolveContext, best: Plan | null, last: PlanReport | null, isInfeasible: boolean): Plan {
  const { problem, situation, instance, names, shortage, failureDomains } = asked
  const relaxed = verifyWithoutRacks(asked, best, last)
  const found = last?.infeasibility ?? { isContradictory: true, core: [], repairs: [] }
  const obstacle = isInfeasible ? describeObstacle({ problem, names, shortage, relaxed, found }) : null
  const shared = { standing: toStanding(problem, failureDomains, last), isTimeUp: !last?.done || last.wasCut }
  if (best) {
    const reasons = [
      obstacle?.text ?? best.reason,
      obstacle || !relaxed ? null : describeWithoutRacks(problem, relaxed),
    ]
    return {
      ...best,
      obstacle,
      ...shared,
      unplaced: explainUnplaced(problem, best, relaxed),
      reason: best.state === 'partial' ? reasons.filter((each) => each !== null).join('. ') : null,
    }
  }
  const isIdle = problem.intent === 'rebalance' && last?.done && last.moves.length === 0
  const idle = { ...nothing('no_action', null), ...shared }
  if (isIdle && verifyPlan(problem, idle).ok) return idle
  const all = situation.evacuees.map((_, index) => index)
  const notFound = last?.done ? 'no plan was found' : 'the time was up before a plan was found'
  const state = isInfeasible ? 'infeasible' : 'not_found'
  const none = {
    ...nothing(state, isInfeasible ? (obstacle?.text ?? null) : notFound),
    obstacle,
    ...shared,
    unplaced: listUnplaced(names, all, instance),
  }
  return { ...none, unplaced: explainUnplaced(problem, none, relaxed) }
}

/** What would start if racks did not count, where that is the lesser harm; null otherwise. The plan for it is replayed like any other. */
function verifyWithoutRacks(
  { problem, names, instance }: SolveContext,
  best: Plan | null,
  last: PlanReport | null,
): PlanWithoutRacks | null {
  if (!last?.relaxed) return null
  const free = { ...problem, useRackConstraints: false }
  const relaxed = buildInstance(free, buildModel(free)).instance
  const plan = toPlan(free, relaxed, names, { ...last, ...last.relaxed, provenBy: 'trivial', lowerBound: 0 })
  const unplaced = best ? last.unplaced : instance.evacuees
  if (!plan || !verifyPlan(free, plan).ok || compareUnplaced(instance, last.relaxed.unplaced, unplaced) >= 0)
    return null
  const isDown = new Set(listUnplaced(names, unplaced, instance).map(({ vm }) => vm))
  const down = plan.unplaced.map(({ vm }) => vm)
  const starts = [...isDown].filter((vm) => !down.includes(vm))
  return { starts, down, migrations: plan.migrations }
}

function nothing(state: Plan['state'], reason: string | null): Plan {
  const none = { steps: [], migrations: 0, lowerBound: 0, unplaced: [], obstacle: null, standing: null }
  return { state, ...none, proof: { kind: 'trivial' }, reason }
}

type NamedDomain = { name: string; hosts: number[] }

/** What may die next: each target, or with rack constraints each rack. */
function listFailureDomains(problem: PlacementProblem, { targets }: PlacementModel): NamedDomain[] {
  const index = new Map(targets.map(({ name }, at) => [name, at]))
  return nameFailureDomains(problem, targets).map(({ name, hosts }) => ({
    name,
    hosts: hosts.map((host) => index.get(host.name) as number),
  }))
}

function toStanding(
  { useRackConstraints }: PlacementProblem,
  failureDomains: NamedDomain[],
  report: PlanReport | null,
): Standing | null {
  if (!report?.survivability) return null
  const { before, after } = report.survivability
  const named = (outcomes: typeof before) =>
    outcomes.map((outcome, index) => ({ name: failureDomains[index]!.name, outcome }))
  return { domain: useRackConstraints ? 'rack' : 'host', before: named(before), after: named(after) }
}

const file = fileURLToPath(new URL('./plan-process.ts', import.meta.url))

/**
 * What the search says until it is done, `killAfterMs` are over, or nobody wants it any more. Then it and its solver are dead.
 * Nothing of our environment goes with it: it needs none, and crashes may print it.
 */
async function* streamReports(
  request: PlanRequest,
  killAfterMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<PlanReport> {
  // A separate group, so that the solver it starts dies with it.
  const child = spawn(process.execPath, [...nodeFlags, file], {
    env: {},
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  })
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
  const timer = setTimeout(kill, killAfterMs)
  signal?.addEventListener('abort', kill, { once: true })
  process.once('exit', kill)
  if (signal?.aborted) kill()
  child.on('error', kill)
  child.stdin.on('error', () => {})
  try {
    child.stdin.write(`${JSON.stringify(request)}\n`)
    for await (const line of createInterface({ input: child.stdout })) {
      let report: PlanReport
      try {
        report = JSON.parse(line)
      } catch {
        // Killed in the middle of a line.
        break
      }
      yield report
      if (report.done) break
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', kill)
    process.removeListener('exit', kill)
    kill()
  }
}
