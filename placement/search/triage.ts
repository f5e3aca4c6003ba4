import type { SolverEngine } from '../bound/assignment.ts'
import { type Assignment, maxColumns, maxNodes } from '../bound/places-model.ts'
import { proveLevels } from '../bound/triage-bound.ts'
import { listMovable } from '../cluster/instance.ts'
import { askForPlan, countDown, exchange, isSameDown, wholeScope } from './exchange.ts'
import { isComplete, isSmall, maxStates, recordMoves, recordTriage, remainingMs, type SearchState } from './exhaust.ts'
import { admitOneByOne, chooseUnplaced } from './leave-down.ts'
import { orderMoves } from './order-moves.ts'
import { searchRuns } from './search-runs.ts'
import { askWhoStarts, bringHome, countColumns, startsAlone, wholeCluster } from './who-starts.ts'

/** Chooses which VMs to leave down if not all have a place. */

const startsMs = 1_000
/** The most columns of a model that decides the best starts in the complete cluster. */
const maxColumnsOfAll = 3_000
const searchWork = 4_000_000
/** The numbers of rounds that are tried. A long chain of moves may place one more VM. */
const roundsTried = [2, 3, 4, 6, 8]
/** The number of models of a few hosts that are solved. */
const exchanges = 24
const certifyMs = 1_500
const sumMs = 400

/**
 * Chooses which VMs to leave down. Cheap and certain methods come first, so that even with little
 * time, a plan is never worse than starts alone.
 */
export async function reduceUnplaced(given: SearchState): Promise<void> {
  // Keeps time for a proof by sums, which is always tried. A solver searches prices only in the
  // time that is left.
  const state = { ...given, deadlineMs: given.deadlineMs - Math.min(sumMs, remainingMs(given) * 0.05) }
  const { instance, random, mip, deadlineMs } = state
  await startWhatFits(state)
  searchRuns(state, searchWork)
  const { moves, unplaced } = admitOneByOne(instance, random, deadlineMs)
  recordMoves(state, moves, unplaced)
  if (!wholeScope(instance, 2)) await exchange(state, exchanges)
  if (await certify(given, null)) return
  if (countColumns(instance, listMovable(instance)) <= maxColumnsOfAll) await chooseAmongAll(state)
  if (isSmall(instance) && instance.evacuees.length <= 10 && !state.incumbent.triage) {
    const { best, isExact } = chooseUnplaced(instance, state.incumbent.unplaced, maxStates, deadlineMs)
    if (best) recordMoves(state, best.moves, best.unplaced)
    if (isExact) recordTriage(state, 'exhausted')
  }
  // Tries the proof by prices again. Uses the engine only if its last model ended with a claim,
  // because otherwise it may still be working on that model.
  await certify(given, state.incumbent.triage && mip)
}

/** Whether prices prove that so many VMs must stay down. Without an engine, only by sums. */
async function certify(state: SearchState, engine: SolverEngine | null): Promise<boolean> {
  const { instance, incumbent, deadlineMs } = state
  const limitMs = Math.min(certifyMs, Math.max(sumMs, remainingMs(state) * 0.2))
  const untilMs = Math.min(deadlineMs, performance.now() + limitMs)
  const levels = await proveLevels(instance, incumbent, engine, untilMs)
  if (levels.length > 0) recordTriage(state, incumbent.triage, levels)
  return (
    levels.length > 0 && levels.length === new Set(incumbent.unplaced.flatMap((vm) => instance.priorities[vm]!)).size
  )
}

/**
 * Searches the best starts with any final hosts. Then searches plans with more and more rounds,
 * until a plan reaches these starts.
 */
async function chooseAmongAll(state: SearchState): Promise<void> {
  const { instance, mip } = state
  const question = { instance, mip, limitMs: remainingMs(state) * 0.6, maxNodes }
  const choice = await askWhoStarts(question, wholeCluster(instance))
  const left = choice && instance.evacuees.filter((vm) => !choice.assignment.has(vm))
  const aim = choice?.isProved && left ? countDown(instance, left) : null
  const isBest = () => aim !== null && isSameDown(instance, state.incumbent.unplaced, aim)
  const stages = [
    ...roundsTried.map((rounds) => async () => {
      const scope = wholeScope(instance, rounds)
      if (scope) await askForPlan(state, scope, rounds, aim)
    }),
    async () => {
      if (!choice) return
      const { random } = state
      await bringHome({ instance, mip, limitMs: remainingMs(state) * 0.6 }, choice.assignment, random, (assignment) =>
        recordChoice(state, assignment, choice.started),
      )
    },
    async () => await exchange(state, exchanges),
  ]
  for (const stage of stages) {
    if (isBest() || remainingMs(state) < 300) break
    await stage()
  }
  if (isBest()) recordTriage(state, 'engine')
}

/** Searches how to start the most VMs without migrations, if VMs stay down. */
export async function startWhatFits(state: SearchState): Promise<void> {
  const { instance, mip } = state
  if (isComplete(state) || instance.evacuees.length * instance.targets > maxColumns) return
  const question = { instance, mip, limitMs: Math.min(startsMs, remainingMs(state) * 0.3), maxNodes }
  const choice = await askWhoStarts(question, startsAlone(instance))
  if (choice) recordChoice(state, choice.assignment, choice.started)
}

/** Records the starts of these evacuees if an order leads to these final hosts. */
export function recordChoice(state: SearchState, assignment: Assignment, started: readonly number[]): boolean {
  const { instance, deadlineMs } = state
  const moves = orderMoves(instance, assignment, deadlineMs)
  const starts = new Set(started)
  if (moves)
    recordMoves(
      state,
      moves,
      instance.evacuees.filter((vm) => !starts.has(vm)),
    )
  return moves !== null
}
