import { isUp, type Work } from '../cluster/budget.ts'
import { buildCapacityState } from '../cluster/capacity.ts'
import type { Instance } from '../cluster/instance.ts'
import { isSmall } from './exhaust.ts'
import { countMigrations, isBetter } from './incumbent.ts'
import { type Move, search } from './search.ts'

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
