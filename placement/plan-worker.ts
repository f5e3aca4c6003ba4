// Runs as a thread that `planner.ts` starts, because searches take seconds of CPU and must be
// stoppable at any time. Takes one request and posts a report for each improvement; the last report
// has `done`. Then waits for the next request.
import { parentPort, workerData } from 'node:worker_threads'
import { type EngineName, engineNames, type SolverEngine, startEngine } from './bound/assignment.ts'
import type { Instance } from './cluster/instance.ts'
import { beginQuestion, hasTimeEndedSearch, random } from './cluster/size-classes.ts'
import { type Incumbent, isBetter, replacePlan } from './search/exhaust.ts'
import { improve } from './search/improve.ts'
import { explainInfeasibility, type Infeasibility } from './search/infeasibility.ts'
import { assessSurvivability, type FailureOutcome, rebalance } from './search/rebalance.ts'
import { refine } from './search/refine.ts'

export type PlanRequest = {
  instance: Instance
  isRebalance: boolean
  /** Whether to find out which VMs would start without rack constraints, if some have no place. */
  mayRelax: boolean
  isInfeasible: boolean
  /** Sets of targets that may fail together, to compute the outcome of each failure. */
  failureDomains: number[][]
  engine: EngineName
  limitMs: number
  seed: number
}
export type PlanReport = Incumbent & {
  infeasibility: Infeasibility | null
  /** The plan without rack constraints. Null if it was not requested, or not needed. */
  relaxed: Pick<Incumbent, 'moves' | 'unplaced'> | null
  survivability: { before: FailureOutcome[]; after: FailureOutcome[] } | null
  done: boolean
  /** True if the time limit ended a search. Another machine may then find another plan. */
  wasCut: boolean
}

/** Milliseconds that are kept for the work after the plan. */
const refineMs = 500
const relaxMs = 1_500
const explainMs = 3_000
const survivabilityMs = 900

const nothingMore = { infeasibility: null, relaxed: null, survivability: null, done: false }

// The process ids of solvers, which keep running between requests. The starting thread shares the
// ids, so that it can kill the solvers when it ends this thread.
const solverPids = new Int32Array(workerData as SharedArrayBuffer)
const engines = Object.fromEntries(
  engineNames.map((name, index) => [name, startEngine(name, (pid) => Atomics.store(solverPids, index, pid))]),
) as Record<EngineName, SolverEngine>

const port = parentPort
port?.on('message', async (request: PlanRequest) => {
  beginQuestion()
  await answer(request, (report) => port.postMessage(report))
})

async function answer(request: PlanRequest, send: (report: PlanReport) => void): Promise<void> {
  const began = performance.now()
  const { instance, isRebalance, isInfeasible, failureDomains, limitMs, seed } = request
  const endMs = began + limitMs
  // Limits the work after the plan to a quarter of the time, even if there is little time.
  const part = Math.min(1, limitMs / 4 / (refineMs + survivabilityMs))
  const next = random(seed)
  const engine = engines[request.engine]
  const report = (incumbent: Incumbent, more: Partial<PlanReport> = {}) =>
    send({ ...incumbent, ...nothingMore, wasCut: hasTimeEndedSearch(), ...more })
  const deadlineMs = endMs - (refineMs + survivabilityMs) * part
  const incumbent = isRebalance
    ? rebalance(instance, { deadlineMs, random: next, report })
    : await improve(instance, engine, { deadlineMs, random: next, isInfeasible, mip: engines.highs, report })
  if (!isRebalance && incumbent.unplaced.length === 0) {
    const moves = refine(instance, incumbent.moves, next, endMs - survivabilityMs * part)
    if (isBetter(instance, { moves, unplaced: [] }, incumbent) || moves !== incumbent.moves)
      report(Object.assign(incumbent, { moves }))
  }
  const restMs = endMs - survivabilityMs * part
  const why = await explainIncomplete(request, incumbent, { engine, next, restMs })
  // Takes the plan of a repair that leaves one VM down, if that plan is better.
  for (const { kind, index, moves } of why.infeasibility?.repairs ?? []) {
    const candidate = { moves, unplaced: [index] }
    if (kind !== 'vm' || !isBetter(instance, candidate, incumbent)) continue
    replacePlan(instance, incumbent, candidate)
    report(incumbent)
  }
  // Limits both checks by work. The first check also takes at most half of the remaining time.
  const before = assessSurvivability(instance, [], failureDomains, next, (performance.now() + endMs) / 2)
  const after =
    incumbent.moves.length === 0 ? before : assessSurvivability(instance, incumbent.moves, failureDomains, next, endMs)
  report(incumbent, { ...why, survivability: { before, after }, done: true })
}

/** Explains why not all VMs have a place, and which VMs would start without rack constraints. */
async function explainIncomplete(
  { instance, mayRelax }: PlanRequest,
  incumbent: Incumbent,
  { engine, next, restMs }: { engine: SolverEngine; next: () => number; restMs: number },
): Promise<Pick<PlanReport, 'relaxed' | 'infeasibility'>> {
  const { unplaced, isInfeasible, provenBy } = incumbent
  const until = (ms: number) => Math.min(restMs, performance.now() + ms)
  const relaxed = mayRelax && unplaced.length > 0 ? await withoutRacks(instance, engine, next, until(relaxMs)) : null
  const infeasibility = isInfeasible
    ? await explainInfeasibility(instance, unplaced, engine, next, until(explainMs))
    : null
  // Reports a proof of an engine that no final hosts keep every rule, even without time to find the
  // limits that conflict.
  if (infeasibility && provenBy === 'engine') infeasibility.isContradictory = true
  return { relaxed, infeasibility }
}

/**
 * Finds the best plan with only hosts as failure domains. Claims only that the plan can be
 * executed.
 */
async function withoutRacks(instance: Instance, engine: SolverEngine, random: () => number, deadlineMs: number) {
  const hosts = instance.domain.map((_, host) => host)
  const relaxed = { ...instance, domain: hosts, domains: hosts.length }
  const { moves, unplaced } = await improve(relaxed, engine, {
    deadlineMs,
    random,
    isInfeasible: true,
    mip: engines.highs,
    report: () => {},
  })
  return { moves, unplaced }
}
