import { isUp } from '../cluster/clock.ts'
import type { Instance } from '../cluster/instance.ts'
import { roomOf } from '../cluster/room.ts'
import type { Move } from './search.ts'

/** `fewest`: no plan of any kind needs fewer migrations. `none`: there is no plan at all. `unknown`: too many states. */
type Exhausted = { kind: 'fewest'; moves: Move[] } | { kind: 'none' } | { kind: 'unknown' }

/** Clusters in which all orders can be looked at within seconds. */
export function isSmall({ targets, movable, wanted }: Instance): boolean {
  return targets <= 8 && movable.filter(Boolean).length <= 24 && wanted.length <= 12
}

/** Places tried, per state, before it is given up: a state may have very many ways to start what is wanted. */
const triesPerState = 100
/** The clock is read once in so many tries. */
const triesPerLook = 256

/**
 * Tries every order of migrations, a VM moving as often as it likes, fewest first, until the wanted can be started. Gives up
 * after `maxStates`, or as much work in starting VMs, or at the deadline, whatever it is at; and wherever a wanted one that leaves makes
 * way for others: then starting last is not always best.
 */
export function exhaust(instance: Instance, maxStates: number, deadlineMs: number): Exhausted {
  const { targets, movable, wanted, vmRam } = instance
  if (leavingMakesWay(instance)) return { kind: 'unknown' }
  const { at, fits, put } = roomOf(instance)
  const movers = movable.flatMap((may, vm) => (may ? [vm] : []))
  const order = [...wanted].sort((a, b) => vmRam[b]! - vmRam[a]!)
  const path: Move[] = []
  let states = 0
  let tries = 0
  let isCut = false
  let isOver = false
  // States by what runs where, and with how many migrations left they were tried without success.
  const tried = new Map<string, number>()

  for (let limit = 0; ; limit += 1) {
    isCut = false
    if (within(limit)) return { kind: 'fewest', moves: path }
    if (isOver) return { kind: 'unknown' }
    // No state was left for lack of migrations: there are no others.
    if (!isCut) return { kind: 'none' }
  }

  /** Counts a place that is tried; once it is over, it is over everywhere. */
  function isGivenUp(): boolean {
    tries += 1
    isOver ||= states > maxStates || tries > maxStates * triesPerState
    isOver ||= tries % triesPerLook === 0 && isUp(deadlineMs)
    return isOver
  }

  function within(left: number): boolean {
    const key = movers.map((vm) => String.fromCharCode(at[vm]!)).join('')
    const known = tried.get(key)
    if (known !== undefined && known >= left) return false
    states += 1
    if (known === undefined && start(0)) return true
    tried.set(key, left)
    if (left === 0) {
      isCut = true
      return false
    }
    for (const vm of movers) {
      for (let to = 0; to < targets; to += 1) {
        if (isGivenUp()) return false
        if (!fits(vm, to)) continue
        if (step(vm, to, () => within(left - 1))) return true
      }
    }
    return false
  }

  /** Starts only take room, so that they may all come last. */
  function start(index: number): boolean {
    const vm = order[index]
    if (vm === undefined) return true
    for (let to = 0; to < targets; to += 1) {
      if (isGivenUp()) return false
      if (fits(vm, to) && step(vm, to, () => start(index + 1))) return true
    }
    return false
  }

  function step(vm: number, to: number, goOn: () => boolean): boolean {
    const from = at[vm]!
    path.push({ vm, from, to })
    put(vm, to)
    if (goOn()) return true
    put(vm, from)
    path.pop()
    return false
  }
}

/** A member of a group that is drained frees its rack for the others of the group. */
function leavingMakesWay({ wanted, home, groupsOf, domain, targets }: Instance): boolean {
  const open = new Set(domain.slice(0, targets))
  return wanted.some((vm) => home[vm]! >= 0 && groupsOf[vm]!.length > 0 && open.has(domain[home[vm]!]!))
}
