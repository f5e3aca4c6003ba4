import type { Engine } from '../bound/engine.ts'
import { noteCut } from '../cluster/budget.ts'
import type { Instance } from '../cluster/instance.ts'
import { isSmall } from './exhaust.ts'
import { type Incumbent, initialState, isSettled, recordMoves, remainingMs, type SearchState } from './incumbent.ts'
import { admitOneByOne, chooseUnplaced, startWithoutMigrations } from './leave-down.ts'
import {
  askSecondEngine,
  boundMigrations,
  maxStates,
  proveInfeasible,
  searchNeighbourhood,
  searchRuns,
  solveRestarts,
  startWhatFits,
  tryAllOrders,
} from './stages.ts'

type ImproveOptions = {
  deadlineMs: number
  random: () => number
  /** A sum has shown already that not all can have a place. */
  isInfeasible?: boolean
  /** Asked where the first engine and the bound leave a gap. */
  secondEngine?: Engine
  /** Called whenever something better is known. */
  report: (incumbent: Incumbent) => void
}

/** What the first search and each later one may do: a quarter of a second and six tenths, where nothing else runs. */
const firstWork = 10_000_000
const roundWork = 24_000_000

/** Recover and drain: the stages of docs/explanation/placement.md, cheapest first, until the best plan is proved or the time is up. */
export async function improve(instance: Instance, engine: Engine, options: ImproveOptions): Promise<Incumbent> {
  const { isInfeasible = false, secondEngine, ...shared } = options
  const state = initialState(instance, { engine, secondEngine, isInfeasible, ...shared })
  // What can be settled by trying everything is searched once, so that its plan does not depend on how fast this machine is.
  searchRuns(state, firstWork, { isFirst: true, maxRuns: isSmall(instance) ? 1 : Number.POSITIVE_INFINITY })
  if (!isSettled(state) && isSmall(instance)) tryAllOrders(state)
  if (!isSettled(state) && state.incumbent.provenBy !== 'exhausted') await closeGap(state)
  if (!isSettled(state)) noteCut()
  if (state.incumbent.isInfeasible) await reduceUnplaced(state)
  return state.incumbent
}

/** Better plans from above and a better bound from below, until they meet. */
async function closeGap(state: SearchState): Promise<void> {
  const { engine, secondEngine } = state
  await solveRestarts(state)
  const classBound = await boundMigrations(state)
  await startWhatFits(state)
  await proveInfeasible(state)
  // The memory that it took for the bound is not needed for small models: the next question gets a new process.
  engine.stop()
  for (let round = 0; remainingMs(state) > 300 && !isSettled(state); round += 1) {
    searchRuns(state, roundWork)
    if (isSettled(state) || remainingMs(state) < 500) break
    if (round === 1 && secondEngine) await askSecondEngine(state, secondEngine)
    else if (classBound) await searchNeighbourhood(state, classBound, round)
  }
}

/** Not all can have a place: which VMs to leave down. Never worse than what starts while nothing moves. */
async function reduceUnplaced(state: SearchState): Promise<void> {
  const { instance, incumbent, engine, random, deadlineMs } = state
  if (isSmall(instance) && instance.evacuees.length <= 10) {
    const { best, isExact } = chooseUnplaced(instance, incumbent.unplaced, maxStates, deadlineMs)
    if (best) recordMoves(state, best.moves, best.unplaced)
    if (isExact) return
  }
  recordMoves(state, ...(await startWithoutMigrations(instance, engine, deadlineMs)))
  searchRuns(state, roundWork)
  const { moves, unplaced } = admitOneByOne(instance, random, deadlineMs)
  recordMoves(state, moves, unplaced)
}
