// A separate process, started by `solve.ts`: it searches and prices, which burns whole seconds of CPU, and
// can be killed at any moment. One JSON line in; one line out for everything better that becomes known, the last with `done`.
import { createInterface } from 'node:readline'
import { type EngineName, lazyEngine, type SolverEngine, startEngine } from './bound/assignment.ts'
import type { Instance } from './cluster/instance.ts'
import { hasTimeEndedSearch, random } from './cluster/size-classes.ts'
import { type Incumbent, isBetter } from './search/exhaust.ts'
import { improve, refine } from './search/improve.ts'
import { explainInfeasibility, type Infeasibility } from './search/infeasibility.ts'
import { assessSurvivability, type FailureOutcome, rebalance } from './search/rebalance.ts'

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

for await (const line of createInterface({ input: process.stdin })) {
  const began = performance.now()
  const request = JSON.parse(line) as PlanRequest
  const { instance, isRebalance, mayRelax, isInfeasible, failureDomains, limitMs, seed } = request
  const endMs = began + limitMs
  // What comes after the plan takes at most a quarter of the time, however short that is.
  const part = Math.min(1, limitMs / 4 / (refineMs + survivabilityMs))
  const next = random(seed)
  const engine = startEngine(request.engine)
  const secondEngine = lazyEngine('highs')
  const report = (incumbent: Incumbent, more: Partial<PlanReport> = {}) => {
    const line: PlanReport = { ...incumbent, ...nothingMore, wasCut: hasTimeEndedSearch(), ...more }
    process.stdout.write(`${JSON.stringify(line)}\n`)
  }
  const deadlineMs = endMs - (refineMs + survivabilityMs) * part
  const incumbent = isRebalance
    ? rebalance(instance, { deadlineMs, random: next, report })
    : await improve(instance, engine, { deadlineMs, random: next, isInfeasible, secondEngine, report })
  if (!isRebalance && incumbent.unplaced.length === 0) {
    const moves = refine(instance, incumbent.moves, next, endMs - survivabilityMs * part)
    if (isBetter(instance, { moves, unplaced: [] }, incumbent) || moves !== incumbent.moves)
      report(Object.assign(incumbent, { moves }))
  }
  const restMs = endMs - survivabilityMs * part
  const relaxed =
    mayRelax && incumbent.unplaced.length > 0
      ? await withoutRacks(instance, engine, next, Math.min(restMs, performance.now() + relaxMs))
      : null
  const infeasibility = incumbent.isInfeasible
    ? await explainInfeasibility(
        instance,
        incumbent.unplaced,
        engine,
        next,
        Math.min(restMs, performance.now() + explainMs),
      )
    : null
  // A repair that leaves one VM down is a plan, and may be a better one.
  for (const { kind, index, moves } of infeasibility?.repairs ?? []) {
    const candidate = { moves, unplaced: [index] }
    if (kind === 'vm' && isBetter(instance, candidate, incumbent)) report(Object.assign(incumbent, candidate))
  }
  // What an engine called impossible has no end places, whether or not there was time to say which limits are at odds.
  if (infeasibility && incumbent.provenBy === 'engine') infeasibility.isContradictory = true
  engine.stop()
  secondEngine.stop()
  // Work bounds both; of the time that is left the first look takes half at most.
  const before = assessSurvivability(instance, [], failureDomains, next, (performance.now() + endMs) / 2)
  const after =
    incumbent.moves.length === 0 ? before : assessSurvivability(instance, incumbent.moves, failureDomains, next, endMs)
  report(incumbent, { infeasibility, relaxed, survivability: { before, after }, done: true })
  break
}
process.exit(0)

/** The best plan if only hosts are kept apart. All that is claimed of it is that it can be carried out. */
async function withoutRacks(instance: Instance, engine: SolverEngine, random: () => number, deadlineMs: number) {
  const hosts = instance.domain.map((_, host) => host)
  const relaxed = { ...instance, domain: hosts, domains: hosts.length }
  const { moves, unplaced } = await improve(relaxed, engine, {
    deadlineMs,
    random,
    isInfeasible: true,
    report: () => {},
  })
  return { moves, unplaced }
}
