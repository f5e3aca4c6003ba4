import type { Instance } from '../cluster/instance.ts'
import { isUp, type SearchBudget } from '../cluster/size-classes.ts'
import { compareUnplaced, exhaust, isBetter } from './exhaust.ts'
import { type Move, type SearchResult, search } from './search.ts'

/** Chooses which VMs to leave down if not all have a place, without a solver. */

/** Most work of the search to start one more VM, and of all such searches together. */
const workPerVm = 1_000_000
const workInAll = 12_000_000
const runsPerVm = 60

/**
 * Finds the first choice of VMs to leave down that has a plan, of the choices that are no worse
 * than the given one, and of equals the one with the fewest migrations. `isExact`: each choice was
 * decided, so that there is no better one.
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
    // Keeps the plan with the fewest migrations among equally good choices.
    if (result.kind === 'fewest' && (!best || isBetter(instance, { moves: result.moves, unplaced }, best)))
      best = { moves: result.moves, unplaced }
    if (result.kind === 'unknown') isExact = false
  }
  return { best, isExact }
}

/**
 * Adds one VM after the other, the most important first, and the smallest first among equals. A VM
 * stays in the plan if it gets a place and all earlier VMs keep theirs.
 */
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
