import type { SolveAnswer, SolverEngine } from '../bound/assignment.ts'
import { buildMaster, type LowerBound, likelyMovers, lowerBound } from '../bound/lower-bound.ts'
import { buildWholeModel, maxColumns, maxNodes, type PlacesModel, readPlaces } from '../bound/places-model.ts'
import type { Certificate } from '../certificate.ts'
import { type Instance, listMovable } from '../cluster/instance.ts'
import { buildSizeClasses, isUp, noteCut, type SearchBudget, type SizeClasses } from '../cluster/size-classes.ts'
import { findEndPlaces, isFewHosts, maxOthers } from './end-places.ts'
import { askForPlan, exchange, wholeScope } from './exchange.ts'
import {
  countMigrations,
  exhaust,
  type Incumbent,
  incumbentMigrations,
  initialState,
  isComplete,
  isSettled,
  isSmall,
  maxStates,
  recordBound,
  recordInfeasible,
  recordMoves,
  remainingMs,
  type SearchState,
} from './exhaust.ts'
import { orderMoves } from './order-moves.ts'
import { searchRuns } from './search-runs.ts'
import { recordChoice, reduceUnplaced, startWhatFits } from './triage.ts'
import { bringHome, countColumns } from './who-starts.ts'

/**
 * Searches a plan, stage by stage. Each stage reads the best plan so far, and replaces it with a
 * better plan or proof.
 */

/** Most hosts that the search for final hosts examines, which takes some hundredths of a second. */
const endPlacesWork = 1_500_000
const slackCosts = [30, 60]
/**
 * The most units on each side of a packing table. The coarse table comes first, because it is fast
 * and usually enough.
 */
const tableUnits = [300, 2_000]
/**
 * Number of models of a few hosts while VMs stay down. Below: the number for each round, and for
 * the first search.
 */
const exchangesWhileDown = 24
const exchangesPerRound = 4
const firstExchanges = 5
const placeAllMs = 3_000
const shortenMs = 2_500
/** The most columns of a model that an engine can prove infeasible within a second or two. */
const maxColumnsToProve = 3_000
/** The most columns of a model for which an engine with cuts needs only seconds. */
const maxColumnsToClose = 8_000
/**
 * Number of VMs from which a solver is restarted after the bound, to free memory that small models
 * do not need.
 */
const manyVms = 500
/** The factor by which a certificate's prices become whole numbers. */
const scale = 1_000_000

/**
 * Tries all final hosts on up to twelve hosts, with the fewest migrations first, which usually
 * takes milliseconds. On more hosts, only tries whether starts without migrations are enough: the
 * bound there has a certificate, which proves more than a full search.
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

/** Tries every order of migrations, the fewest first. Used only for small clusters. */
function tryAllOrders(state: SearchState): void {
  const { instance, incumbent, deadlineMs } = state
  const result = exhaust(instance, maxStates, Math.min(deadlineMs, performance.now() + 2_000))
  if (result.kind === 'none') recordInfeasible(state, 'exhausted')
  if (result.kind !== 'fewest') return
  recordMoves(state, result.moves)
  recordBound(state, countMigrations(instance, result.moves), 'exhausted')
  incumbent.provenBy = 'exhausted'
}

/**
 * Finds out whether starts without migrations are enough: by a plan, or by an engine's claim that
 * no such plan exists.
 */
async function solveRestarts(state: SearchState): Promise<void> {
  const { instance, mip, forcedMigrations, isSound } = state
  if (forcedMigrations > 0) return
  const built = buildWholeModel(instance, [], 0)
  if (!built) return recordBound(state, 1, 'engine')
  if (built.columns.length > maxColumns) return
  const answer = await mip.solve(built.model, Math.min(1_500, remainingMs(state) * 0.3), maxNodes)
  if (answer.status === 'infeasible' && isSound) return recordBound(state, 1, 'engine')
  recordAnswer(state, built, answer)
}

/** A bound over size classes, with its patterns. */
type ClassBound = { sizeClasses: SizeClasses; bound: LowerBound }

/**
 * Computes a lower bound on migrations by column generation. Null if the sizes do not allow a
 * bound, or no VM needs a place.
 */
async function boundMigrations(state: SearchState): Promise<ClassBound | null> {
  const { instance, engine, deadlineMs, forcedMigrations } = state
  const upTo = isComplete(state) ? incumbentMigrations(state) - forcedMigrations : 8
  // Keeps time for the search if it may still find a plan for all VMs or far fewer moves, which are
  // worth more than a better bound.
  const share = isComplete(state) && !isFarFromBound(state) ? 1 : 0.15
  const endMs = performance.now() + remainingMs(state) * share
  let best: ClassBound | null = null
  let cells = 0
  for (const units of tableUnits) {
    const sizeClasses = buildSizeClasses(instance, units)
    if (!sizeClasses || (isSettled(state) && state.incumbent.provenBy !== 'engine')) return best
    // Stops if the next unit gives an equal table, as it does if the sizes have a large common
    // divisor.
    const largest = Math.max(...sizeClasses.room.map(({ ram, cpu }) => ram + cpu))
    if (largest === cells) break
    cells = largest
    for (const slackCost of slackCosts) {
      const untilMs = Math.min(endMs, performance.now() + Math.min(3_000, remainingMs(state) * 0.4))
      const bound = await lowerBound(sizeClasses, buildMaster(sizeClasses, engine, slackCost, untilMs), upTo, untilMs)
      if (bound.proof) {
        const certificate = toCertificate(sizeClasses, bound.proof)
        recordBound(state, forcedMigrations + bound.atLeast, 'certificate', certificate)
      }
      if (!best || bound.atLeast > best.bound.atLeast) best = { sizeClasses, bound }
      if (isSettled(state) || bound.atLeast >= upTo || isUp(Math.min(endMs, deadlineMs - 4_000))) return best
    }
  }
  return best
}

/**
 * Searches final hosts for all VMs, with any number of moves, if some VMs stay down. Then tries
 * fewer and fewer VMs away from home, until an order of steps exists. Records an engine's claim
 * that no final hosts exist. Does nothing if such a claim would prove nothing (`isSound`) or the
 * model is too large.
 */
async function placeAll(state: SearchState): Promise<void> {
  const { instance, mip, isSound } = state
  if (isComplete(state)) return
  const movers = listMovable(instance)
  if (!isSound || countColumns(instance, movers) > maxColumnsToProve) return
  const built = buildWholeModel(instance, movers, movers.length)
  if (!built) return recordInfeasible(state, 'engine')
  // Searches any final hosts first, which takes a tenth of the time of a search for few migrations.
  const limitMs = () => Math.min(Math.max(placeAllMs, remainingMs(state) * 0.35), remainingMs(state) * 0.5)
  const any = await mip.solve({ ...built.model, objective: [] }, limitMs(), maxNodes)
  if (any.status === 'infeasible') return recordInfeasible(state, 'engine')
  if (any.status !== 'optimal' && any.status !== 'feasible') return
  await bringHome({ instance, mip, limitMs: limitMs() }, readPlaces(built, any.values), state.random, (places) =>
    recordChoice(state, places, instance.evacuees),
  )
  if (!isComplete(state)) recordAnswer(state, built, await mip.solve(built.model, limitMs(), 1))
}

/**
 * Searches a plan with one migration fewer. Only VMs of the sizes that the bound evicts may move.
 */
async function searchNeighbourhood(
  state: SearchState,
  { sizeClasses, bound }: ClassBound,
  round: number,
): Promise<void> {
  const { instance, engine, forcedMigrations, isSound } = state
  const movers = likelyMovers(instance, sizeClasses, bound, [20, 60, 150][round % 3] as number)
  const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : 12
  const built = buildWholeModel(instance, movers, maxMigrations)
  if (!built || built.columns.length > maxColumns) return
  const answer = await engine.solve(built.model, Math.min(1_500, remainingMs(state) - 300))
  const isWhole = movers.length === instance.movable.filter(Boolean).length
  if (answer.status === 'infeasible' && isWhole && isSound && isComplete(state))
    recordBound(state, incumbentMigrations(state), 'engine')
  recordAnswer(state, built, answer)
}

/**
 * Lets an engine decide whether a plan with one migration fewer exists, or, while VMs stay down,
 * any plan. Only for a small complete model. Records the engine's claim.
 */
async function closeByOne(state: SearchState): Promise<void> {
  const { instance, mip, forcedMigrations, isSound } = state
  const movers = listMovable(instance)
  if (!isSound || countColumns(instance, movers) > maxColumnsToClose) return
  const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : movers.length
  const built = buildWholeModel(instance, movers, maxMigrations)
  if (!built) return
  const answer = await mip.solve(built.model, Math.min(4_500, remainingMs(state) - 500), maxNodes)
  if (answer.status === 'infeasible') {
    if (isComplete(state)) recordBound(state, incumbentMigrations(state), 'engine')
    else recordInfeasible(state, 'engine')
  }
  recordAnswer(state, built, answer)
}

/** Records a plan if some order of moves leads to these final hosts. */
function recordAnswer(state: SearchState, built: PlacesModel, answer: SolveAnswer): void {
  if (answer.status !== 'optimal' && answer.status !== 'feasible') return
  const moves = orderMoves(state.instance, readPlaces(built, answer.values), state.deadlineMs)
  if (moves) recordMoves(state, moves)
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
  /** True if sums have already proved that not all VMs can have a place. */
  isInfeasible?: boolean
  /** The engine for models with binaries. Default: `engine`. */
  mip?: SolverEngine
  /** Called for every improvement. */
  report: (incumbent: Incumbent) => void
}

/** Work of the first search (0.25 s on an idle machine) and of each later search (0.6 s). */
const firstWork = 10_000_000
const roundWork = 24_000_000

/**
 * Plans a recovery or drain in the stages of docs/explanation/placement.md, the cheapest first,
 * until the best plan is proved or the time is up.
 */
export async function improve(instance: Instance, engine: SolverEngine, options: ImproveOptions): Promise<Incumbent> {
  const state = initialState(instance, { isInfeasible: false, engine, mip: engine, ...options })
  // Runs the search only once before the full search, so that the plan of a small problem does not
  // depend on the machine's speed.
  searchRuns(state, firstWork, { isFirst: true, maxRuns: 1 })
  if (!state.incumbent.isInfeasible) tryEndPlaces(state, endPlacesWork)
  if (!isSettled(state) && isSmall(instance)) tryAllOrders(state)
  if (!isSettled(state) && !isSmall(instance)) searchRuns(state, firstWork)
  if (!isSettled(state)) await closeGap(state)
  if (!isSettled(state)) noteCut()
  if (state.incumbent.isInfeasible) await reduceUnplaced(state)
  return state.incumbent
}

/** Improves the plan and the bound until they meet. */
async function closeGap(state: SearchState): Promise<void> {
  const { instance, engine, mip } = state
  if (!isFewHosts(instance)) await solveRestarts(state)
  // Searches for a place for the VMs that stay down.
  if (!isComplete(state)) await findPlace(state)
  for (let turn = 0; turn < 3 && isFarFromBound(state); turn += 1) await shorten(state)
  const classBound = await boundMigrations(state)
  // Stops the process after the bound, because small models need none of the bound's memory.
  if (instance.home.length > manyVms) engine.stop()
  const scope = wholeScope(instance, 3)
  if (scope && !isSettled(state)) await askForPlan(state, scope, 3, null)
  for (let round = 0; remainingMs(state) > 300 && !isSettled(state); round += 1) {
    if (!isComplete(state)) await exchange(state, exchangesWhileDown)
    else if (isFarFromBound(state)) await shorten(state)
    searchRuns(state, roundWork)
    if (isSettled(state) || remainingMs(state) < 500) break
    if (round === 1 && mip !== engine) await closeByOne(state)
    else if (classBound) await searchNeighbourhood(state, classBound, round)
    if (round % 3 === 2 && isComplete(state)) await exchange(state, exchangesPerRound)
  }
}

/** Searches places for VMs that stay down: by exchanges between a few hosts, then on all hosts. */
async function findPlace(state: SearchState): Promise<void> {
  await startWhatFits(state)
  await exchange(state, firstExchanges)
  await placeAll(state)
}

/** Searches fewer migrations for equal starts, by final hosts of a few hosts at a time. */
async function shorten(state: SearchState): Promise<void> {
  const { instance, mip, random, forcedMigrations } = state
  if (isSettled(state) || incumbentMigrations(state) <= forcedMigrations + 1) return
  const limitMs = Math.min(shortenMs, remainingMs(state) * 0.4)
  const started = listStarted(state)
  await bringHome({ instance, mip, limitMs }, endPlacesOf(state), random, (places) =>
    recordChoice(state, places, started),
  )
}

/**
 * Whether a plan has so many more moves than the proved bound that a plan with fewer moves is
 * likely.
 */
function isFarFromBound(state: SearchState): boolean {
  return isComplete(state) && incumbentMigrations(state) > state.incumbent.lowerBound + 3
}

function endPlacesOf({ instance, incumbent }: SearchState): Map<number, number> {
  const places = new Map(listMovable(instance).map((vm) => [vm, instance.home[vm]!]))
  for (const { vm, to } of incumbent.moves) places.set(vm, to)
  return places
}

function listStarted({ instance, incumbent }: SearchState): number[] {
  return instance.evacuees.filter((vm) => !incumbent.unplaced.includes(vm))
}
