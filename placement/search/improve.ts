import type { Engine } from '../bound/assignment.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, isUp, noteCut, type Work } from '../cluster/size-classes.ts'
import {
  countMigrations,
  type Incumbent,
  initialState,
  isBetter,
  isSettled,
  isSmall,
  recordMoves,
  remainingMs,
  type SearchState,
} from './exhaust.ts'
import { admitOneByOne, chooseUnplaced, startWithoutMigrations } from './leave-down.ts'
import { type Move, search } from './search.ts'
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

const lighterRuns = 300
/** What both may do at most, some tenths of a second each: in hosts looked at, and in VMs put somewhere. */
const lighterWork = 12_000_000
const levelWork = 900_000

/** With as many migrations: less memory moved, then hosts that are filled more evenly. What comes out can be carried out too. */
export function refine(instance: Instance, moves: Move[], random: () => number, deadlineMs: number): Move[] {
  return evenOut(instance, reduceMovedRam(instance, moves, random, deadlineMs), deadlineMs)
}

function reduceMovedRam(instance: Instance, moves: Move[], random: () => number, deadlineMs: number): Move[] {
  const movedOthers = moves.filter(({ vm, from }) => from >= 0 && instance.movable[vm]).length
  if (movedOthers === 0) return moves
  let best = moves
  const work: Work = { left: lighterWork }
  for (let run = 0; run < lighterRuns && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const found = search(instance, {
      random,
      noise: 0.3 + 0.7 * random(),
      maxMigrations: movedOthers,
      deadlineMs,
      work,
    })
    const isWhole =
      found.unplaced.length === 0 && countMigrations(instance, found.moves) === countMigrations(instance, moves)
    if (isWhole && isBetter(instance, { moves: found.moves, unplaced: [] }, { moves: best, unplaced: [] }))
      best = found.moves
  }
  return best
}

/** Lets each move end elsewhere, as long as that makes the hosts more even and every step can still begin. */
function evenOut(instance: Instance, moves: Move[], deadlineMs: number): Move[] {
  const { targets } = instance
  let best = moves
  let least = unevenness(instance, best)
  let left = levelWork
  const lastOf = new Map(moves.map(({ vm }, index) => [vm, index]))
  for (let isBetter = true; isBetter; ) {
    isBetter = false
    for (const index of lastOf.values()) {
      for (let to = 0; to < targets; to += 1) {
        left -= instance.home.length
        if ((left <= 0 && !isSmall(instance)) || isUp(deadlineMs)) return best
        const { vm, from } = best[index] as Move
        // Back to where it came from would be no move.
        if (to === from || to === best[index]!.to) continue
        const changed = best.with(index, { vm, from, to })
        const value = unevenness(instance, changed)
        if (value === null || least === null || value >= least - 1e-9) continue
        best = changed
        least = value
        isBetter = true
      }
    }
  }
  return best
}

/** The squares of how full the hosts are at the end; null when the moves cannot be made one after the other. */
function unevenness(instance: Instance, moves: readonly Move[]): number | null {
  const { targets, hostRam, hostCpu } = instance
  const { hostOf, fits, place, freeRam, freeCpu } = buildCapacityState(instance)
  for (const { vm, from, to } of moves) {
    if (hostOf[vm] !== from || !fits(vm, to)) return null
    place(vm, to)
  }
  let sum = 0
  for (let host = 0; host < targets; host += 1) {
    sum += (1 - freeRam[host]! / hostRam[host]!) ** 2 + (1 - freeCpu[host]! / hostCpu[host]!) ** 2
  }
  return sum
}
