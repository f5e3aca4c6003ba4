import { type Assignment, buildStartModel, readAssignment, type SolverEngine } from '../bound/assignment.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, isUp, type SearchBudget } from '../cluster/size-classes.ts'
import { compareUnplaced, exhaust, isBetter } from './exhaust.ts'
import { type Move, type SearchResult, search } from './search.ts'

/** States, and steps from them, looked at before the search for an order is given up. */
const maxStates = 50_000
const maxSteps = 1_000_000

/**
 * An order in which these end places are reached, each VM straight to its own: migrations first, then the starts, which only take
 * room. Null where there is none, or none was found.
 */
export function orderMoves(instance: Instance, assignment: Assignment, deadlineMs: number): Move[] | null {
  const { home } = instance
  const room = buildCapacityState(instance)
  const migrations: Move[] = []
  const starts: Move[] = []
  for (const [vm, to] of assignment) {
    const from = home[vm]!
    if (from === to) continue
    ;(from >= 0 ? migrations : starts).push({ vm, from, to })
  }
  const done: Move[] = []
  const left = new Set(migrations)
  const dead = new Set<string>()
  let states = 0
  let steps = 0
  if (!run()) return null
  for (const move of starts) {
    if (!room.fits(move.vm, move.to)) return null
    room.place(move.vm, move.to)
    done.push(move)
  }
  return done

  function run(): boolean {
    if (left.size === 0) return true
    // What is left says which state this is.
    const key = [...left]
      .map(({ vm }) => vm)
      .sort()
      .join()
    if (dead.has(key) || states > maxStates || steps > maxSteps || isUp(deadlineMs)) return false
    states += 1
    for (const move of [...left]) {
      steps += 1
      if (!room.fits(move.vm, move.to)) continue
      room.place(move.vm, move.to)
      left.delete(move)
      done.push(move)
      if (run()) return true
      done.pop()
      room.place(move.vm, move.from)
      left.add(move)
    }
    dead.add(key)
    return false
  }
}

/** Which VMs to leave down where not all have a place. */

const startsMs = 1_000
/** Models with more columns than this only take the time that a search would use better. */
const maxColumns = 40_000
/** What is tried for one VM more, and for all of them. */
const workPerVm = 2_000_000
const workInAll = 60_000_000
const runsPerVm = 60

/**
 * Of every choice that is no more harm than the given one the first that has a plan, with the fewest migrations. `isExact`: each of them was
 * settled, so that there is no better one.
 */
export function chooseUnplaced(
  instance: Instance,
  unplacedSoFar: readonly number[],
  maxStates: number,
  deadlineMs: number,
): { best: SearchResult | null; isExact: boolean } {
  const { evacuees } = instance
  const choices = listSubsets(evacuees).sort((a, b) => compareUnplaced(instance, a, b) || a.length - b.length)
  let best: SearchResult | null = null
  let isExact = true
  for (const unplaced of choices) {
    if (unplaced.length === evacuees.length || compareUnplaced(instance, unplaced, best?.unplaced ?? unplacedSoFar) > 0)
      break
    if (isUp(deadlineMs - 200)) return { best, isExact: false }
    const without = { ...instance, evacuees: evacuees.filter((vm) => !unplaced.includes(vm)) }
    const result = exhaust(without, maxStates, Math.min(deadlineMs, performance.now() + 1_000))
    // Of choices that are as good, the one with the fewest migrations.
    if (result.kind === 'fewest' && (!best || isBetter(instance, { moves: result.moves, unplaced }, best)))
      best = { moves: result.moves, unplaced }
    if (result.kind === 'unknown') isExact = false
  }
  return { best, isExact }
}

/**
 * The most that can start while nothing else moves: of the highest priority, then of the next. What the engine finds in time; its answers
 * are placed one after the other, so that the moves can be made as they stand.
 */
export async function startWithoutMigrations(
  instance: Instance,
  engine: SolverEngine,
  deadlineMs: number,
): Promise<[moves: Move[], unplaced: number[]]> {
  const { evacuees, priorities, targets } = instance
  const nothing: [Move[], number[]] = [[], [...evacuees]]
  if (evacuees.length * targets > maxColumns) return nothing
  const classes = [...new Set(evacuees.flatMap((vm) => priorities[vm]!))].sort((a, b) => b - a)
  const before: Parameters<typeof buildStartModel>[2][number][] = []
  const untilMs = Math.min(deadlineMs, performance.now() + startsMs)
  let best = nothing
  for (const priority of classes) {
    const worth = (vm: number) => priorities[vm]!.filter((each) => each === priority).length
    const built = buildStartModel(instance, worth, before)
    const answer = built.columns.length === 0 ? null : await engine.solve(built.model, untilMs - performance.now())
    if (answer?.status !== 'optimal' && answer?.status !== 'feasible') break
    const assignment = readAssignment(built, answer.values)
    const moves = orderMoves(instance, assignment, deadlineMs)
    if (moves) best = [moves, evacuees.filter((vm) => !assignment.has(vm))]
    before.push({ worth, reached: [...assignment.keys()].reduce((sum, vm) => sum + worth(vm), 0) })
  }
  return best
}

/** One VM after the other, the most important and of these the smallest first: it joins those that have a place if all of them have one. */
export function admitOneByOne(instance: Instance, random: () => number, deadlineMs: number): SearchResult {
  const { evacuees, priority, vmRam, hostRam, vmCpu, hostCpu, targets } = instance
  const all = (sizes: readonly number[]) => sizes.slice(0, targets).reduce((sum, size) => sum + size, 1)
  const [ram, cpu] = [all(hostRam), all(hostCpu)]
  const size = (vm: number) => vmRam[vm]! / ram + vmCpu[vm]! / cpu
  const order = [...evacuees].sort((a, b) => priority[b]! - priority[a]! || size(a) - size(b))
  const rejected: number[] = []
  let best: SearchResult = { moves: [], unplaced: [...evacuees] }
  let spent = 0
  for (const vm of order) {
    const kept = order.slice(0, order.indexOf(vm) + 1).filter((each) => !rejected.includes(each))
    const work: SearchBudget = { left: Math.min(workPerVm, workInAll - spent) }
    const had = work.left
    const moves = findPlan({ ...instance, evacuees: kept }, random, work, deadlineMs)
    spent += had - work.left
    if (moves) best = { moves, unplaced: evacuees.filter((each) => !kept.includes(each)) }
    else rejected.push(vm)
  }
  return best
}

function findPlan(instance: Instance, random: () => number, work: SearchBudget, deadlineMs: number): Move[] | null {
  for (let run = 0; run < runsPerVm && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const noise = run === 0 ? 0 : 0.3 + 0.7 * random()
    const found = search(instance, { random, noise, maxMigrations: 60, deadlineMs, work })
    if (found.unplaced.length === 0) return found.moves
  }
  return null
}

function listSubsets(vms: readonly number[]): number[][] {
  const subsets: number[][] = [[]]
  for (const vm of vms) subsets.push(...subsets.map((subset) => [...subset, vm]))
  return subsets
}
