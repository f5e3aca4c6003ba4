import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, isUp, type SearchBudget } from '../cluster/size-classes.ts'
import { findEndPlaces, isFewHosts, maxOthers } from './end-places.ts'
import { countMigrations, isBetter, isSmall } from './exhaust.ts'
import { canBeMade } from './order-moves.ts'
import { type Move, search } from './search.ts'

/** Work of some hundredths of a second, in examined hosts. */
const endPlacesWork = 1_500_000
const lighterRuns = 300
/**
 * The most work for each step of the refinement, in examined hosts and in placed VMs. A step takes
 * some tenths of a second.
 */
const lighterWork = 12_000_000
const levelWork = 900_000

/**
 * Improves a plan without more migrations: first moves less memory, then fills hosts more evenly.
 * The result can still be executed.
 */
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

/**
 * Changes the final hosts of moves as long as this fills hosts more evenly and every step can
 * begin.
 */
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
        // Leaves out the origin, because returning there would be no move.
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

/** Returns how the sum of squares of both hosts' fullness changes if the VM ends on `to`. */
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
