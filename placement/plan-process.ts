// A separate process, started by `placement/search-process.ts`: it searches and prices, which burns whole seconds of CPU, and
// can be killed at any moment. One JSON line in; one line out for everything better that becomes known, the last with `done`.
import { createInterface } from 'node:readline'
import { type Engine, type EngineName, lazyEngine, startEngine } from './bound/engine.ts'
import { wasCut } from './cluster/clock.ts'
import type { Instance } from './cluster/instance.ts'
import { isBetter, type Known } from './cluster/known.ts'
import { random } from './cluster/random.ts'
import { explain, type Impossible } from './search/impossible.ts'
import { improve } from './search/improve.ts'
import { mend } from './search/mend.ts'
import { refine } from './search/refine.ts'
import { type Outcome, standing } from './search/standing.ts'

export type PlanRequest = {
  instance: Instance
  isRebalance: boolean
  /** Whether to look what would start if racks did not count, should not all have a place. */
  mayRelax: boolean
  isImpossible: boolean
  /** Targets that die together, for what still stands afterwards. */
  deaths: number[][]
  engine: EngineName
  limitMs: number
  seed: number
}
export type PlanReport = Known & {
  impossible: Impossible | null
  /** What would start if racks did not count; null where that was not asked, or not needed. */
  relaxed: Pick<Known, 'moves' | 'left'> | null
  standing: { before: Outcome[]; after: Outcome[] } | null
  done: boolean
  /** Time ended a search: another machine may find something else. */
  wasCut: boolean
}

/** Parts of the time that are kept for what comes after the plan. */
const refineMs = 500
const relaxMs = 1_500
const explainMs = 3_000
const standingMs = 900

const nothingMore = { impossible: null, relaxed: null, standing: null, done: false }

for await (const line of createInterface({ input: process.stdin })) {
  const began = performance.now()
  const request = JSON.parse(line) as PlanRequest
  const { instance, isRebalance, mayRelax, isImpossible, deaths, limitMs, seed } = request
  const endMs = began + limitMs
  // What comes after the plan takes at most a quarter of the time, however short that is.
  const part = Math.min(1, limitMs / 4 / (refineMs + standingMs))
  const next = random(seed)
  const engine = startEngine(request.engine)
  const closer = lazyEngine('highs')
  const report = (known: Known, more: Partial<PlanReport> = {}) => {
    const line: PlanReport = { ...known, ...nothingMore, wasCut: wasCut(), ...more }
    process.stdout.write(`${JSON.stringify(line)}\n`)
  }
  const deadlineMs = endMs - (refineMs + standingMs) * part
  const known = isRebalance
    ? mend(instance, { deadlineMs, random: next, report })
    : await improve(instance, engine, { deadlineMs, random: next, isImpossible, closer, report })
  if (!isRebalance && known.left.length === 0) {
    const moves = refine(instance, known.moves, next, endMs - standingMs * part)
    if (isBetter(instance, { moves, left: [] }, known) || moves !== known.moves) report(Object.assign(known, { moves }))
  }
  const restMs = endMs - standingMs * part
  const relaxed =
    mayRelax && known.left.length > 0
      ? await withoutRacks(instance, engine, next, Math.min(restMs, performance.now() + relaxMs))
      : null
  const impossible = known.isImpossible
    ? await explain(instance, known.left, engine, next, Math.min(restMs, performance.now() + explainMs))
    : null
  // A repair that leaves one VM down is a plan, and may be a better one.
  for (const { kind, index, moves } of impossible?.repairs ?? []) {
    const candidate = { moves, left: [index] }
    if (kind === 'vm' && isBetter(instance, candidate, known)) report(Object.assign(known, candidate))
  }
  // What an engine called impossible has no end places, whether or not there was time to say which limits are at odds.
  if (impossible && known.how === 'engine') impossible.isContradictory = true
  engine.stop()
  closer.stop()
  // Work bounds both; of the time that is left the first look takes half at most.
  const before = standing(instance, [], deaths, next, (performance.now() + endMs) / 2)
  const after = known.moves.length === 0 ? before : standing(instance, known.moves, deaths, next, endMs)
  report(known, { impossible, relaxed, standing: { before, after }, done: true })
  break
}
process.exit(0)

/** The best plan if only hosts are kept apart. All that is claimed of it is that it can be carried out. */
async function withoutRacks(instance: Instance, engine: Engine, random: () => number, deadlineMs: number) {
  const hosts = instance.domain.map((_, host) => host)
  const relaxed = { ...instance, domain: hosts, domains: hosts.length }
  const { moves, left } = await improve(relaxed, engine, { deadlineMs, random, isImpossible: true, report: () => {} })
  return { moves, left }
}
