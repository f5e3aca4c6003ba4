import { formatList } from '../domain/format.ts'
import { formatTriage, toTriageTold } from '../domain/format-plan.ts'
import type { PlacementProblem, Plan, Standing } from '../domain/placement.ts'
import type { EngineName } from './bound/assignment.ts'
import { checkProblem } from './certificate.ts'
import { buildInstance, buildModel, type Instance, type Names, type PlacementModel } from './cluster/instance.ts'
import { findShortage } from './cluster/size-classes.ts'
import { describeObstacle, describeWithoutRacks } from './obstacle.ts'
import { listUnplaced, toPlan } from './plan.ts'
import type { PlanReport } from './plan-worker.ts'
import { askPlanner } from './planner.ts'
import { nameFailureDomains } from './rules.ts'
import { compareUnplaced } from './search/exhaust.ts'
import { findRoomShortage } from './search/shortage.ts'
import { toTriage } from './triage-proof.ts'
import { explainUnplaced, type PlanWithoutRacks } from './unplaced.ts'
import { verifyPlan } from './verify.ts'

export type SolveProgress = { migrations: number | null; lowerBound: number; unplaced: number }

type SolveOptions = {
  timeoutMs?: number
  signal?: AbortSignal
  engine?: EngineName
  seed?: number
  /** Called for each better plan and each better bound. */
  onProgress?: (known: SolveProgress) => void
}

const maxHostsTold = 6

/** Milliseconds that are kept at the end to check the plan. */
const reserveMs = 700

/**
 * Finds a plan with a place for every stranded VM. The most important VMs come first, then the
 * fewest live migrations. The search is a thread that is ended at the time limit. The search's
 * claims are not trusted: `verifyPlan` replays plans, and `certificateHolds` checks bounds. Throws
 * InvalidProblemError.
 */
export async function solve(given: PlacementProblem, options: SolveOptions = {}): Promise<Plan> {
  const began = performance.now()
  const timeoutMs = options.timeoutMs ?? 10_000
  const problem = checkProblem(given)
  const situation = buildModel(problem)
  const isRebalance = problem.intent === 'rebalance'
  if (!isRebalance && situation.evacuees.length === 0) return nothing('no_action', null)
  const { instance, names } = buildInstance(problem, situation)
  const shortage = isRebalance ? null : (findShortage(problem, situation) ?? describeRoomShortage(instance, names))
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
  const until = Math.max(1, timeoutMs - usedMs - reserveMs / 4)
  for await (const report of askPlanner(request, until, options.signal)) {
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

/** Builds the final plan from the best replayed plan and the last report of the search. */
function planFrom(asked: SolveContext, best: Plan | null, last: PlanReport | null, isInfeasible: boolean): Plan {
  const { problem, situation, instance, names, shortage, failureDomains } = asked
  const relaxed = verifyWithoutRacks(asked, best, last)
  const found = last?.infeasibility ?? { isContradictory: true, core: [], repairs: [] }
  const obstacle = isInfeasible ? describeObstacle({ problem, names, shortage, relaxed, found }) : null
  const all = situation.evacuees.map((_, index) => index)
  const down = best?.unplaced ?? listUnplaced(names, all, instance)
  const triage = last && toTriage(problem, instance, names, { known: last, down })
  const shared = {
    standing: toStanding(problem, failureDomains, last),
    isTimeUp: !last?.done || last.wasCut,
    ...(triage && { triage }),
  }
  if (best) {
    const reasons = [
      obstacle?.text ?? (triage ? formatTriage(down, toTriageTold(triage)) : best.reason),
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
  const notFound = last?.done ? 'no plan was found' : 'the time ended before a plan was found'
  const state = isInfeasible ? 'infeasible' : 'not_found'
  const none = {
    ...nothing(state, isInfeasible ? (obstacle?.text ?? null) : notFound),
    obstacle,
    ...shared,
    unplaced: down,
  }
  return { ...none, unplaced: explainUnplaced(problem, none, relaxed) }
}

/**
 * Lists which VMs would start without rack constraints, if that does less harm. Otherwise null. A
 * plan without rack constraints is replayed like any other plan.
 */
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

/**
 * Formats `RAM is short by 8192 MiB on host-1 and host-2, the only hosts for some of the VMs`. Null
 * if no sum proves this.
 */
function describeRoomShortage(instance: Instance, names: Names): string | null {
  const short = findRoomShortage(instance)
  if (!short) return null
  const { ramMib, cpuMc, hosts } = short
  const by = ramMib > 0 ? `RAM is short by ${ramMib} MiB` : `CPU is short by ${cpuMc} mCPU`
  if (hosts.length === instance.targets) return `${by} in total`
  const told = hosts.slice(0, maxHostsTold).map((host) => names.hosts[host] as string)
  if (hosts.length > told.length) told.push(`${hosts.length - told.length} more`)
  return `${by} on ${formatList(told)}, the only hosts for some of the VMs`
}

function nothing(state: Plan['state'], reason: string | null): Plan {
  const none = { steps: [], migrations: 0, lowerBound: 0, unplaced: [], obstacle: null, standing: null }
  return { state, ...none, proof: { kind: 'trivial' }, reason }
}

type NamedDomain = { name: string; hosts: number[] }

/** Lists the domains that may fail next: each target or, with rack constraints, each rack. */
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
    outcomes.map((outcome, index) => ({ name: failureDomains[index]!.name, ...outcome }))
  return { domain: useRackConstraints ? 'rack' : 'host', before: named(before), after: named(after) }
}
