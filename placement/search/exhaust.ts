import { buildCapacityState, type CapacityState, isUp } from '../cluster/capacity.ts'
import type { Instance } from '../cluster/instance.ts'
import type { Move } from './search.ts'

/** `fewest`: no plan of any kind needs fewer migrations. `none`: there is no plan at all. `unknown`: too many states. */
type ExhaustiveResult = { kind: 'fewest'; moves: Move[] } | { kind: 'none' } | { kind: 'unknown' }

/** Clusters in which all orders can be looked at within seconds. */
export function isSmall({ targets, movable, evacuees }: Instance): boolean {
  return targets <= 8 && movable.filter(Boolean).length <= 24 && evacuees.length <= 12
}

/** Places tried, per state, before it is given up: a state may have very many ways to start the evacuees. */
const triesPerState = 100
/** The clock is read once in so many tries. */
const triesPerLook = 256

type ExhaustiveSearch = {
  targets: number
  capacity: CapacityState
  movers: number[]
  /** Evacuees, the largest first. */
  starts: number[]
  path: Move[]
  /** States by what runs where, and with how many migrations left they were tried without success. */
  tried: Map<string, number>
  states: number
  tries: number
  maxStates: number
  deadlineMs: number
  /** A state was left for lack of migrations: with more there may be others. */
  isCut: boolean
  isGivenUp: boolean
}

/**
 * Tries every order of migrations, a VM moving as often as it likes, fewest first, until the evacuees can be started. Gives up
 * after `maxStates`, or as much work in starting VMs, or at the deadline, whatever it is at; and wherever an evacuee that leaves
 * makes way for others: then starting last is not always best.
 */
export function exhaust(instance: Instance, maxStates: number, deadlineMs: number): ExhaustiveResult {
  const { targets, movable, evacuees, vmRam } = instance
  if (evacueeMakesWay(instance)) return { kind: 'unknown' }
  const all: ExhaustiveSearch = {
    targets,
    capacity: buildCapacityState(instance),
    movers: movable.flatMap((may, vm) => (may ? [vm] : [])),
    starts: [...evacuees].sort((a, b) => vmRam[b]! - vmRam[a]!),
    path: [],
    tried: new Map(),
    states: 0,
    tries: 0,
    maxStates,
    deadlineMs,
    isCut: false,
    isGivenUp: false,
  }
  for (let limit = 0; ; limit += 1) {
    all.isCut = false
    if (solveWithin(all, limit)) return { kind: 'fewest', moves: all.path }
    if (all.isGivenUp) return { kind: 'unknown' }
    if (!all.isCut) return { kind: 'none' }
  }
}

/** Is there a plan from this state with at most so many migrations more? Then `path` holds it. */
function solveWithin(all: ExhaustiveSearch, migrations: number): boolean {
  const { capacity, movers, tried, targets } = all
  const key = movers.map((vm) => String.fromCharCode(capacity.hostOf[vm]!)).join('')
  const before = tried.get(key)
  if (before !== undefined && before >= migrations) return false
  all.states += 1
  if (before === undefined && startFrom(all, 0)) return true
  tried.set(key, migrations)
  if (migrations === 0) {
    all.isCut = true
    return false
  }
  for (const vm of movers) {
    for (let to = 0; to < targets; to += 1) {
      if (countTry(all)) return false
      if (capacity.fits(vm, to) && tryMove(all, vm, to, () => solveWithin(all, migrations - 1))) return true
    }
  }
  return false
}

/** Starts only take capacity, so that they may all come last. */
function startFrom(all: ExhaustiveSearch, index: number): boolean {
  const vm = all.starts[index]
  if (vm === undefined) return true
  for (let to = 0; to < all.targets; to += 1) {
    if (countTry(all)) return false
    if (all.capacity.fits(vm, to) && tryMove(all, vm, to, () => startFrom(all, index + 1))) return true
  }
  return false
}

/** Makes a move and takes it back where nothing comes of it. */
function tryMove({ capacity, path }: ExhaustiveSearch, vm: number, to: number, next: () => boolean): boolean {
  const from = capacity.hostOf[vm]!
  path.push({ vm, from, to })
  capacity.place(vm, to)
  if (next()) return true
  capacity.place(vm, from)
  path.pop()
  return false
}

/** Counts a place that is tried. True once the search is given up, and from then on everywhere. */
function countTry(all: ExhaustiveSearch): boolean {
  const { maxStates, deadlineMs } = all
  all.tries += 1
  all.isGivenUp ||= all.states > maxStates || all.tries > maxStates * triesPerState
  all.isGivenUp ||= all.tries % triesPerLook === 0 && isUp(deadlineMs)
  return all.isGivenUp
}

/** A member of a group that is drained frees its rack for the others of the group. */
function evacueeMakesWay({ evacuees, home, groupsOf, domain, targets }: Instance): boolean {
  const open = new Set(domain.slice(0, targets))
  return evacuees.some((vm) => home[vm]! >= 0 && groupsOf[vm]!.length > 0 && open.has(domain[home[vm]!]!))
}
