import { assignmentOf, startsModel } from '../bound/assignment.ts'
import type { Engine } from '../bound/engine.ts'
import { isUp, type Work } from '../cluster/clock.ts'
import type { Instance } from '../cluster/instance.ts'
import { compareLeft, isBetter } from '../cluster/known.ts'
import { exhaust } from './exhaust.ts'
import { type Move, type Ordered, search } from './search.ts'
import { sequenceOf } from './sequence.ts'

/** Whom to leave down where not all have a place. */

const startsMs = 1_000
/** Models with more columns than this only take the time that a search would use better. */
const columnsAtMost = 40_000
/** What is tried for one VM more, and for all of them. */
const workPerVm = 2_000_000
const workInAll = 60_000_000
const runsPerVm = 60

/**
 * Of every choice that is no more harm than the given one the first that has a plan, with the fewest migrations. `isExact`: each of them was
 * settled, so that there is no better one.
 */
export function leastOf(
  instance: Instance,
  known: readonly number[],
  statesAtMost: number,
  deadlineMs: number,
): { best: Ordered | null; isExact: boolean } {
  const { wanted } = instance
  const choices = subsetsOf(wanted).sort((a, b) => compareLeft(instance, a, b) || a.length - b.length)
  let best: Ordered | null = null
  let isExact = true
  for (const left of choices) {
    if (left.length === wanted.length || compareLeft(instance, left, best?.left ?? known) > 0) break
    if (isUp(deadlineMs - 200)) return { best, isExact: false }
    const without = { ...instance, wanted: wanted.filter((vm) => !left.includes(vm)) }
    const tried = exhaust(without, statesAtMost, Math.min(deadlineMs, performance.now() + 1_000))
    // Of choices that are as good, the one with the fewest migrations.
    if (tried.kind === 'fewest' && (!best || isBetter(instance, { moves: tried.moves, left }, best)))
      best = { moves: tried.moves, left }
    if (tried.kind === 'unknown') isExact = false
  }
  return { best, isExact }
}

/**
 * The most that can start while nothing else moves: of the highest priority, then of the next. What the engine finds in time; its answers
 * are placed one after the other, so that the moves can be made as they stand.
 */
export async function startsAlone(
  instance: Instance,
  engine: Engine,
  deadlineMs: number,
): Promise<[moves: Move[], left: number[]]> {
  const { wanted, priorities, targets } = instance
  const nothing: [Move[], number[]] = [[], [...wanted]]
  if (wanted.length * targets > columnsAtMost) return nothing
  const classes = [...new Set(wanted.flatMap((vm) => priorities[vm]!))].sort((a, b) => b - a)
  const before: Parameters<typeof startsModel>[2][number][] = []
  const untilMs = Math.min(deadlineMs, performance.now() + startsMs)
  let best = nothing
  for (const priority of classes) {
    const worth = (vm: number) => priorities[vm]!.filter((each) => each === priority).length
    const built = startsModel(instance, worth, before)
    const answer = built.columns.length === 0 ? null : await engine.solve(built.model, untilMs - performance.now())
    if (answer?.status !== 'optimal' && answer?.status !== 'feasible') break
    const assignment = assignmentOf(built, answer.values)
    const moves = sequenceOf(instance, assignment, deadlineMs)
    if (moves) best = [moves, wanted.filter((vm) => !assignment.has(vm))]
    before.push({ worth, reached: [...assignment.keys()].reduce((sum, vm) => sum + worth(vm), 0) })
  }
  return best
}

/** One VM after the other, the most important and of these the smallest first: it joins those that have a place if all of them have one. */
export function oneByOne(instance: Instance, random: () => number, deadlineMs: number): Ordered {
  const { wanted, priority, vmRam, hostRam, vmCpu, hostCpu, targets } = instance
  const all = (sizes: readonly number[]) => sizes.slice(0, targets).reduce((sum, size) => sum + size, 1)
  const [ram, cpu] = [all(hostRam), all(hostCpu)]
  const size = (vm: number) => vmRam[vm]! / ram + vmCpu[vm]! / cpu
  const order = [...wanted].sort((a, b) => priority[b]! - priority[a]! || size(a) - size(b))
  const left: number[] = []
  let best: Ordered = { moves: [], left: [...wanted] }
  let spent = 0
  for (const vm of order) {
    const kept = order.slice(0, order.indexOf(vm) + 1).filter((each) => !left.includes(each))
    const work: Work = { left: Math.min(workPerVm, workInAll - spent) }
    const had = work.left
    const moves = planFor({ ...instance, wanted: kept }, random, work, deadlineMs)
    spent += had - work.left
    if (moves) best = { moves, left: wanted.filter((each) => !kept.includes(each)) }
    else left.push(vm)
  }
  return best
}

function planFor(instance: Instance, random: () => number, work: Work, deadlineMs: number): Move[] | null {
  for (let run = 0; run < runsPerVm && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const noise = run === 0 ? 0 : 0.3 + 0.7 * random()
    const found = search(instance, { random, noise, maxMigrations: 60, deadlineMs, work })
    if (found.left.length === 0) return found.moves
  }
  return null
}

function subsetsOf(vms: readonly number[]): number[][] {
  const subsets: number[][] = [[]]
  for (const vm of vms) subsets.push(...subsets.map((subset) => [...subset, vm]))
  return subsets
}
