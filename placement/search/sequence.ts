import type { Assignment } from '../bound/assignment.ts'
import { isUp } from '../cluster/budget.ts'
import { buildCapacityState } from '../cluster/capacity.ts'
import type { Instance } from '../cluster/instance.ts'
import type { Move } from './search.ts'

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
