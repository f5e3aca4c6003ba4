// A thread, started by `planner.ts`: its searches and prices take seconds of CPU, and can be ended
// at any moment. One request in; a report out for everything better, the last with `done`. Then it
// waits for the next.
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
  /** Whether to look what would start if racks did not count, should not all have a place. */
  mayRelax: boolean
  isInfeasible: boolean
  /** Targets that die together, for what still stands afterwards. */
  failureDomains: number[][]
  engine: EngineName
  limitMs: number
  seed: number
}
export type PlanReport = Incumbent & {
  infeasibility: Infeasibility | null
  /** What would start if racks did not count; null where that was not asked, or not needed. */
  relaxed: Pick<Incumbent, 'moves' | 'unplaced'> | null
  survivability: { before: FailureOutcome[]; after: FailureOutcome[] } | null
  done: boolean
  /** Time ended a search: another machine may find something else. */
  wasCut: boolean
}

/** Parts of the time that are kept for what comes after the plan. */
const refineMs = 500
const relaxMs = 1_500
const explainMs = 3_000
const survivabilityMs = 900

const nothingMore = { infeasibility: null, relaxed: null, survivability: null, done: false }

// Solvers stay warm between questions. Their process numbers are written where the other thread
// reads them when it ends this one.
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
  // What comes after the plan takes at most a quarter of the time, however short that is.
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
  // A repair that leaves one VM down is a plan, and may be a better one.
  for (const { kind, index, moves } of why.infeasibility?.repairs ?? []) {
    const candidate = { moves, unplaced: [index] }
    if (kind !== 'vm' || !isBetter(instance, candidate, incumbent)) continue
    replacePlan(instance, incumbent, candidate)
    report(incumbent)
  }
  // Work bounds both; of the time that is left the first look takes half at most.
  const before = assessSurvivability(instance, [], failureDomains, next, (performance.now() + endMs) / 2)
  const after =
    incumbent.moves.length === 0 ? before : assessSurvivability(instance, incumbent.moves, failureDomains, next, endMs)
  report(incumbent, { ...why, survivability: { before, after }, done: true })
}

/** Why not all have a place, and who would start if racks did not count. */
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
  // What an engine called impossible has no ends, even without time to name the limits.
  if (infeasibility && provenBy === 'engine') infeasibility.isContradictory = true
  return { relaxed, infeasibility }
}

/** The best plan if only hosts are kept apart. Claims only that it can be carried out. */
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
