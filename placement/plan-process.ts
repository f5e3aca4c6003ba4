// A process of its own, started by `placement/search-process.ts`: it searches and prices, which burns whole seconds of CPU, and
// can be killed at any moment. One JSON line in; one line out for everything better that becomes known, the last with `done`.
import { createInterface } from 'node:readline'
import { type EngineName, lazyEngine, startEngine } from './bound/engine.ts'
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
  isImpossible: boolean
  /** Targets that die together, for what still stands afterwards. */
  deaths: number[][]
  engine: EngineName
  limitMs: number
  seed: number
}
export type PlanReport = Known & {
  impossible: Impossible | null
  standing: { before: Outcome[]; after: Outcome[] } | null
  done: boolean
}

/** Parts of the time that are kept for what comes after the plan. */
const refineMs = 500
const explainMs = 3_000
const standingMs = 900

for await (const line of createInterface({ input: process.stdin })) {
  const began = performance.now()
  const request = JSON.parse(line) as PlanRequest
  const { instance, isRebalance, isImpossible, deaths, limitMs, seed } = request
  const endMs = began + limitMs
  // What comes after the plan takes at most a quarter of the time, however short that is.
  const part = Math.min(1, limitMs / 4 / (refineMs + standingMs))
  const next = random(seed)
  const engine = startEngine(request.engine)
  const closer = lazyEngine('highs')
  const report = (known: Known, more: Partial<PlanReport> = {}) => {
    const line: PlanReport = { ...known, impossible: null, standing: null, done: false, ...more }
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
  const impossible = known.isImpossible
    ? await explain(
        instance,
        known.left,
        engine,
        next,
        Math.min(endMs - standingMs * part, performance.now() + explainMs),
      )
    : null
  // What an engine called impossible has no end places, whether or not there was time to say which limits are at odds.
  if (impossible && known.how === 'engine') impossible.isContradictory = true
  engine.stop()
  closer.stop()
  const until = () => Math.min(endMs, performance.now() + (standingMs * part) / 2)
  const before = standing(instance, [], deaths, next, until())
  const after = known.moves.length === 0 ? before : standing(instance, known.moves, deaths, next, until())
  report(known, { impossible, standing: { before, after }, done: true })
  break
}
process.exit(0)
