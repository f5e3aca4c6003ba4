import { assignmentModel, readAssignment, type SolveAnswer, type SolverEngine } from '../bound/assignment.ts'
import { buildMaster, type LowerBound, likelyMovers, lowerBound } from '../bound/lower-bound.ts'
import type { Certificate } from '../certificate.ts'
import type { Instance } from '../cluster/instance.ts'
import {
  buildCapacityState,
  buildSizeClasses,
  isUp,
  noteCut,
  type SearchBudget,
  type SizeClasses,
} from '../cluster/size-classes.ts'
import { findEndPlaces, isFewHosts } from './end-places.ts'
import {
  countMigrations,
  exhaust,
  type Incumbent,
  incumbentMigrations,
  initialState,
  isBetter,
  isComplete,
  isOptimal,
  isSettled,
  isSmall,
  recordBound,
  recordInfeasible,
  recordMoves,
  remainingMs,
  type SearchState,
} from './exhaust.ts'
import { admitOneByOne, chooseUnplaced, orderMoves, startWithoutMigrations } from './leave-down.ts'
import { type Move, search } from './search.ts'

/**
 * The search for a plan, stage by stage. Each stage reads the incumbent and replaces it by what it
 * finds or proves.
 */

/** More VMs than this that make room are too many to try every set of them. */
const maxOthers = 8
/** Some hundredths of a second, in hosts looked at. */
const endPlacesWork = 1_500_000
/** States that the search for all orders may look at. */
const maxStates = 150_000
const slackCosts = [30, 60]
/** Models with more columns than this only take the time that a search would use better. */
const maxColumns = 40_000
/** An engine can prove a model of so many columns infeasible in a second or two. */
const maxColumnsToProve = 3_000
/** So many are still a matter of seconds for an engine that cuts. */
const maxColumnsToClose = 8_000
/** From so many VMs on a solver holds much memory after the bound, which small models do not need: it begins again. */
const manyVms = 500
/** Prices of a certificate are whole. */
const scale = 1_000_000

/** Runs of the search in the order of execution, each with other noise, until the work is used up. */
function searchRuns(
  state: SearchState,
  amount: number,
  { isFirst = false, maxRuns = Number.POSITIVE_INFINITY } = {},
): void {
  const { instance, deadlineMs, random, forcedMigrations } = state
  const work: SearchBudget = { left: amount }
  for (let run = 0; run < maxRuns && work.left > 0 && !isOptimal(state) && !isUp(deadlineMs); run += 1) {
    const noise = isFirst && run === 0 ? 0 : 0.3 + 0.7 * random()
    const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : 60
    // While some stay down: of the small ones more may start.
    const first = !isComplete(state) && run % 3 === 2 ? 'smallest' : 'largest'
    const { moves, unplaced } = search(instance, { random, noise, maxMigrations, deadlineMs, work, first })
    recordMoves(state, moves, unplaced)
  }
}

/**
 * Up to twelve hosts: all end places, fewest migrations first, which mostly settles the question in some milliseconds. On others only whether
 * starts alone do: there the bound has a certificate, which says more than that all was tried.
 */
function tryEndPlaces(state: SearchState, amount: number): void {
  const { instance, deadlineMs, forcedMigrations } = state
  const isFew = isFewHosts(instance)
  const work: SearchBudget = { left: amount }
  for (let others = isFew ? state.incumbent.lowerBound - forcedMigrations : 0; others <= maxOthers; others += 1) {
    if (isSettled(state) || (isComplete(state) && incumbentMigrations(state) <= forcedMigrations + others)) return
    const result = findEndPlaces(instance, others, { work, deadlineMs })
    if (result.kind === 'found') recordMoves(state, result.moves)
    if (result.kind !== 'none' || !isFew) return
    recordBound(state, forcedMigrations + others + 1, 'exhausted')
  }
}

/** Small clusters only: every order of migrations, fewest first. */
function tryAllOrders(state: SearchState): void {
  const { instance, incumbent, deadlineMs } = state
  const result = exhaust(instance, maxStates, Math.min(deadlineMs, performance.now() + 2_000))
  if (result.kind === 'none') recordInfeasible(state, 'exhausted')
  if (result.kind !== 'fewest') return
  recordMoves(state, result.moves)
  recordBound(state, countMigrations(instance, result.moves), 'exhausted')
  incumbent.provenBy = 'exhausted'
}

/** Are restarts enough? A plan without migrations, or the engine's word that there is none. */
async function solveRestarts(state: SearchState): Promise<void> {
  const { instance, engine, forcedMigrations, isSound } = state
  if (forcedMigrations > 0) return
  const built = assignmentModel(instance, [], 0)
  if (!built) return recordBound(state, 1, 'engine')
  if (built.columns.length > maxColumns) return
  const answer = await engine.solve(built.model, Math.min(1_500, remainingMs(state) * 0.3))
  if (answer.status === 'infeasible' && isSound) return recordBound(state, 1, 'engine')
  recordAnswer(state, built, answer)
}

/** A bound over size classes, with the patterns that it rests on. */
type ClassBound = { sizeClasses: SizeClasses; bound: LowerBound }

/** A lower bound on migrations by column generation; null where the sizes allow none, or nothing is open. */
async function boundMigrations(state: SearchState): Promise<ClassBound | null> {
  const { instance, engine, deadlineMs, forcedMigrations } = state
  const sizeClasses = buildSizeClasses(instance)
  if (!sizeClasses || (isSettled(state) && state.incumbent.provenBy !== 'engine')) return null
  const upTo = isComplete(state) ? incumbentMigrations(state) - forcedMigrations : 8
  let best: LowerBound | null = null
  for (const slackCost of slackCosts) {
    const untilMs = performance.now() + Math.min(3_000, remainingMs(state) * 0.4)
    const bound = await lowerBound(sizeClasses, buildMaster(sizeClasses, engine, slackCost, untilMs), upTo, untilMs)
    if (bound.proof) {
      const certificate = toCertificate(sizeClasses, bound.proof)
      recordBound(state, forcedMigrations + bound.atLeast, 'certificate', certificate)
    }
    if (!best || bound.atLeast > best.atLeast) best = bound
    if (isSettled(state) || bound.atLeast >= upTo || isUp(deadlineMs - 4_000)) break
  }
  return best && { sizeClasses, bound: best }
}

/** While some stay down: the most that can start while nothing moves. */
async function startWhatFits(state: SearchState): Promise<void> {
  if (isComplete(state)) return
  recordMoves(state, ...(await startWithoutMigrations(state.instance, state.engine, state.deadlineMs)))
}

/** While some stay down: not even end places exist, whatever is moved. An engine's word, and only asked where it can tell. */
async function proveInfeasible(state: SearchState): Promise<void> {
  const { instance, engine, isSound } = state
  if (isComplete(state)) return
  const movers = listMovable(state)
  if (!isSound || countColumns(state, movers) > maxColumnsToProve) return
  const built = assignmentModel(instance, movers, movers.length)
  if (!built) return recordInfeasible(state, 'engine')
  const answer = await engine.solve(built.model, Math.min(2_000, remainingMs(state) * 0.5))
  if (answer.status === 'infeasible') return recordInfeasible(state, 'engine')
  recordAnswer(state, built, answer)
}

/** One migration fewer than is known, where only VMs of sizes that the bound's patterns evict may move. */
async function searchNeighbourhood(
  state: SearchState,
  { sizeClasses, bound }: ClassBound,
  round: number,
): Promise<void> {
  const { instance, engine, forcedMigrations, isSound } = state
  const movers = likelyMovers(instance, sizeClasses, bound, [20, 60, 150][round % 3] as number)
  const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : 12
  const built = assignmentModel(instance, movers, maxMigrations)
  if (!built || built.columns.length > maxColumns) return
  const answer = await engine.solve(built.model, Math.min(1_500, remainingMs(state) - 300))
  const isWhole = movers.length === instance.movable.filter(Boolean).length
  if (answer.status === 'infeasible' && isWhole && isSound && isComplete(state))
    recordBound(state, incumbentMigrations(state), 'engine')
  recordAnswer(state, built, answer)
}

/** Where the whole model is small enough, a second engine says whether one migration fewer does, or any number. Its word. */
async function askSecondEngine(state: SearchState, secondEngine: SolverEngine): Promise<void> {
  const { instance, forcedMigrations, isSound } = state
  const movers = listMovable(state)
  if (!isSound || countColumns(state, movers) > maxColumnsToClose) return
  const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : movers.length
  const built = assignmentModel(instance, movers, maxMigrations)
  if (!built) return
  const answer = await secondEngine.solve(built.model, Math.min(4_500, remainingMs(state) - 500))
  if (answer.status === 'infeasible') {
    if (isComplete(state)) recordBound(state, incumbentMigrations(state), 'engine')
    else recordInfeasible(state, 'engine')
  }
  recordAnswer(state, built, answer)
}

/** End places become a plan where there is an order that leads to them. */
function recordAnswer(
  state: SearchState,
  built: NonNullable<ReturnType<typeof assignmentModel>>,
  answer: SolveAnswer,
): void {
  if (answer.status !== 'optimal' && answer.status !== 'feasible') return
  const moves = orderMoves(state.instance, readAssignment(built, answer.values), state.deadlineMs)
  if (moves) recordMoves(state, moves)
}

function listMovable({ instance }: SearchState): number[] {
  return instance.movable.flatMap((may, vm) => (may ? [vm] : []))
}

function countColumns({ instance }: SearchState, movers: readonly number[]): number {
  return (movers.length + instance.evacuees.length) * instance.targets
}

function toCertificate({ classes }: SizeClasses, { k, price }: NonNullable<LowerBound['proof']>): Certificate {
  const whole = classes.flatMap(({ key }, index): [string, number][] => {
    const value = Math.floor((price[index] as number) * scale)
    return value > 0 ? [[key, value]] : []
  })
  return { k, scale, price: Object.fromEntries(whole) }
}

type ImproveOptions = {
  deadlineMs: number
  random: () => number
  /** A sum has shown already that not all can have a place. */
  isInfeasible?: boolean
  /** Asked where the first engine and the bound leave a gap. */
  secondEngine?: SolverEngine
  /** Called whenever something better is known. */
  report: (incumbent: Incumbent) => void
}

/** What the first search and each later one may do: a quarter of a second and six tenths, where nothing else runs. */
const firstWork = 10_000_000
const roundWork = 24_000_000

/** Recover and drain: the stages of docs/explanation/placement.md, cheapest first, until the best plan is proved or the time is up. */
export async function improve(instance: Instance, engine: SolverEngine, options: ImproveOptions): Promise<Incumbent> {
  const { isInfeasible = false, secondEngine, ...shared } = options
  const state = initialState(instance, { engine, secondEngine, isInfeasible, ...shared })
  // What can be settled by trying everything is searched once, so that its plan does not depend on how fast this machine is.
  searchRuns(state, firstWork, { isFirst: true, maxRuns: 1 })
  if (!isInfeasible) tryEndPlaces(state, endPlacesWork)
  if (!isSettled(state) && isSmall(instance)) tryAllOrders(state)
  if (!isSettled(state) && !isSmall(instance)) searchRuns(state, firstWork)
  if (!isSettled(state)) await closeGap(state)
  if (!isSettled(state)) noteCut()
  if (state.incumbent.isInfeasible) await reduceUnplaced(state)
  return state.incumbent
}

/** Better plans from above and a better bound from below, until they meet. */
async function closeGap(state: SearchState): Promise<void> {
  const { instance, engine, secondEngine } = state
  await solveRestarts(state)
  const classBound = await boundMigrations(state)
  await startWhatFits(state)
  await proveInfeasible(state)
  // The memory that it took for the bound is not needed for small models: the next question gets a new process.
  if (instance.home.length > manyVms) engine.stop()
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
  if (isFewHosts(instance) && movedOthers <= maxOthers) {
    const maxRam = moves.reduce(
      (sum, { vm, from }) => (from >= 0 && instance.movable[vm] ? sum + instance.vmRam[vm]! : sum),
      0,
    )
    const lighter = findEndPlaces(instance, movedOthers, { work: { left: endPlacesWork }, deadlineMs, maxRam })
    return lighter.kind === 'found' && isLighter(instance, lighter.moves, moves) ? lighter.moves : moves
  }
  let best = moves
  const work: SearchBudget = { left: lighterWork }
  for (let run = 0; run < lighterRuns && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const found = search(instance, {
      random,
      noise: 0.3 + 0.7 * random(),
      maxMigrations: movedOthers,
      deadlineMs,
      work,
    })
    if (found.unplaced.length === 0 && isLighter(instance, found.moves, best)) best = found.moves
  }
  return best
}

function isLighter(instance: Instance, moves: Move[], than: Move[]): boolean {
  return (
    countMigrations(instance, moves) === countMigrations(instance, than) &&
    isBetter(instance, { moves, unplaced: [] }, { moves: than, unplaced: [] })
  )
}

/** Lets each move end elsewhere, as long as that makes the hosts more even and every step can still begin. */
function evenOut(instance: Instance, moves: Move[], deadlineMs: number): Move[] {
  const { targets } = instance
  let best = moves
  let left = levelWork
  const end = freeAfter(instance, moves)
  const lastOf = new Map(moves.map(({ vm }, index) => [vm, index]))
  for (let isBetter = true; isBetter; ) {
    isBetter = false
    for (const index of lastOf.values()) {
      for (let to = 0; to < targets; to += 1) {
        left -= targets
        if ((left <= 0 && !isSmall(instance)) || isUp(deadlineMs)) return best
        const { vm, from, to: now } = best[index] as Move
        // Back to where it came from would be no move.
        if (to === from || to === now || changeInUnevenness(instance, end, vm, { from: now, to }) >= -1e-9) continue
        const changed = best.with(index, { vm, from, to })
        left -= instance.home.length
        if (!canBeMade(instance, changed)) continue
        shift(instance, end, vm, now, 1)
        shift(instance, end, vm, to, -1)
        best = changed
        isBetter = true
      }
    }
  }
  return best
}

type FreeRoom = { ram: Float64Array; cpu: Float64Array }

function freeAfter(instance: Instance, moves: readonly Move[]): FreeRoom {
  const { freeRam, freeCpu, place } = buildCapacityState(instance)
  for (const { vm, to } of moves) place(vm, to)
  return { ram: freeRam, cpu: freeCpu }
}

function shift({ vmRam, vmCpu }: Instance, { ram, cpu }: FreeRoom, vm: number, host: number, sign: 1 | -1): void {
  ram[host]! += sign * vmRam[vm]!
  cpu[host]! += sign * vmCpu[vm]!
}

/** The squares of how full both hosts are, if the VM ended on the other, less what they are. */
function changeInUnevenness(
  { hostRam, hostCpu, vmRam, vmCpu }: Instance,
  { ram, cpu }: FreeRoom,
  vm: number,
  { from, to }: Pick<Move, 'from' | 'to'>,
): number {
  const square = (host: number, sign: number) =>
    (1 - (ram[host]! + sign * vmRam[vm]!) / hostRam[host]!) ** 2 +
    (1 - (cpu[host]! + sign * vmCpu[vm]!) / hostCpu[host]!) ** 2
  return square(from, 1) + square(to, -1) - square(from, 0) - square(to, 0)
}

/** Can the moves be made one after the other, as they stand? */
function canBeMade(instance: Instance, moves: readonly Move[]): boolean {
  const { hostOf, fits, place } = buildCapacityState(instance)
  for (const { vm, from, to } of moves) {
    if (hostOf[vm] !== from || !fits(vm, to)) return false
    place(vm, to)
  }
  return true
}
