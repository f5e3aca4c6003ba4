import { assignmentModel, type Engine, readAssignment, type SolveAnswer } from '../bound/assignment.ts'
import { type Bound, buildMaster, likelyMovers, lowerBound } from '../bound/lower-bound.ts'
import type { Certificate } from '../certificate.ts'
import { buildSizeClasses, isUp, type SizeClasses, type Work } from '../cluster/size-classes.ts'
import {
  countMigrations,
  exhaust,
  incumbentMigrations,
  isComplete,
  isOptimal,
  isSettled,
  recordBound,
  recordInfeasible,
  recordMoves,
  remainingMs,
  type SearchState,
} from './exhaust.ts'
import { orderMoves, startWithoutMigrations } from './leave-down.ts'
import { search } from './search.ts'

/** The stages of `improve`. Each reads the incumbent and replaces it by what it finds or proves. */

/** States that the search for all orders may look at. */
export const maxStates = 150_000
const slackCosts = [30, 60]
/** Models with more columns than this only take the time that a search would use better. */
const maxColumns = 40_000
/** An engine can prove a model of so many columns infeasible in a second or two. */
const maxColumnsToProve = 3_000
/** So many are still a matter of seconds for an engine that cuts. */
const maxColumnsToClose = 8_000
/** Prices of a certificate are whole. */
const scale = 1_000_000

/** Runs of the search in the order of execution, each with other noise, until the work is used up. */
export function searchRuns(
  state: SearchState,
  amount: number,
  { isFirst = false, maxRuns = Number.POSITIVE_INFINITY } = {},
): void {
  const { instance, deadlineMs, random, forcedMigrations } = state
  const work: Work = { left: amount }
  for (let run = 0; run < maxRuns && work.left > 0 && !isOptimal(state) && !isUp(deadlineMs); run += 1) {
    const noise = isFirst && run === 0 ? 0 : 0.3 + 0.7 * random()
    const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : 60
    // While some stay down: of the small ones more may start.
    const first = !isComplete(state) && run % 3 === 2 ? 'smallest' : 'largest'
    const { moves, unplaced } = search(instance, { random, noise, maxMigrations, deadlineMs, work, first })
    recordMoves(state, moves, unplaced)
  }
}

/** Small clusters only: every order of migrations, fewest first. */
export function tryAllOrders(state: SearchState): void {
  const { instance, incumbent, deadlineMs } = state
  const result = exhaust(instance, maxStates, Math.min(deadlineMs, performance.now() + 2_000))
  if (result.kind === 'none') recordInfeasible(state, 'exhausted')
  if (result.kind !== 'fewest') return
  recordMoves(state, result.moves)
  recordBound(state, countMigrations(instance, result.moves), 'exhausted')
  incumbent.provenBy = 'exhausted'
}

/** Are restarts enough? A plan without migrations, or the engine's word that there is none. */
export async function solveRestarts(state: SearchState): Promise<void> {
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
export type ClassBound = { sizeClasses: SizeClasses; bound: Bound }

/** A lower bound on migrations by column generation; null where the sizes allow none, or nothing is open. */
export async function boundMigrations(state: SearchState): Promise<ClassBound | null> {
  const { instance, engine, deadlineMs, forcedMigrations } = state
  const sizeClasses = buildSizeClasses(instance)
  if (!sizeClasses || (isSettled(state) && state.incumbent.provenBy !== 'engine')) return null
  const upTo = isComplete(state) ? incumbentMigrations(state) - forcedMigrations : 8
  let best: Bound | null = null
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
export async function startWhatFits(state: SearchState): Promise<void> {
  if (isComplete(state)) return
  recordMoves(state, ...(await startWithoutMigrations(state.instance, state.engine, state.deadlineMs)))
}

/** While some stay down: not even end places exist, whatever is moved. An engine's word, and only asked where it can tell. */
export async function proveInfeasible(state: SearchState): Promise<void> {
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
export async function searchNeighbourhood(
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
export async function askSecondEngine(state: SearchState, secondEngine: Engine): Promise<void> {
  const { instance, engine, forcedMigrations, isSound } = state
  const movers = listMovable(state)
  if (!isSound || countColumns(state, movers) > maxColumnsToClose) return
  const maxMigrations = isComplete(state) ? incumbentMigrations(state) - forcedMigrations - 1 : movers.length
  const built = assignmentModel(instance, movers, maxMigrations)
  if (!built) return
  engine.stop()
  const answer = await secondEngine.solve(built.model, Math.min(4_500, remainingMs(state) - 500))
  secondEngine.stop()
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

function toCertificate({ classes }: SizeClasses, { k, price }: NonNullable<Bound['proof']>): Certificate {
  const whole = classes.flatMap(({ key }, index): [string, number][] => {
    const value = Math.floor((price[index] as number) * scale)
    return value > 0 ? [[key, value]] : []
  })
  return { k, scale, price: Object.fromEntries(whole) }
}
