import type { SolverEngine } from '../bound/assignment.ts'
import type { ProvedLevel } from '../bound/triage-bound.ts'
import type { Certificate } from '../certificate.ts'
import { type Instance, listMovable } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState, findViolations, isUp } from '../cluster/size-classes.ts'
import type { Move } from './search.ts'

/**
 * `fewest`: no plan needs fewer migrations. `none`: there is no plan. `unknown`: there are too many
 * states.
 */
type ExhaustiveResult = { kind: 'fewest'; moves: Move[] } | { kind: 'none' } | { kind: 'unknown' }

/** Whether all orders of moves in the cluster can be examined within seconds. */
export function isSmall({ targets, movable, evacuees }: Instance): boolean {
  return targets <= 8 && movable.filter(Boolean).length <= 24 && evacuees.length <= 12
}

/** The most states of the cluster that the search through all orders examines. */
export const maxStates = 150_000
/**
 * The most places that are tried per state before the search is given up. One state may have very
 * many ways to start its evacuees.
 */
const triesPerState = 100
/** Number of tries between two checks of the deadline. */
const triesPerLook = 256

type ExhaustiveSearch = {
  targets: number
  capacity: CapacityState
  movers: number[]
  /** The evacuees to start, the largest first. */
  starts: number[]
  path: Move[]
  /** Failed states, by the places of the VMs, each with the number of migrations that were left. */
  tried: Map<string, number>
  states: number
  tries: number
  maxStates: number
  deadlineMs: number
  /** True if the search stopped at a state only because no migration was left. */
  isCut: boolean
  isGivenUp: boolean
}

/**
 * Tries every order of migrations, the fewest first, until the evacuees can start. A VM may move
 * any number of times. Gives up after `maxStates`, after as much work in starting VMs, or at the
 * deadline. Also gives up if an evacuee that leaves its host makes way for others, because starting
 * evacuees last is then not always best.
 */
export function exhaust(instance: Instance, maxStates: number, deadlineMs: number): ExhaustiveResult {
  const { targets, evacuees, vmRam } = instance
  if (evacueeMakesWay(instance)) return { kind: 'unknown' }
  const all: ExhaustiveSearch = {
    targets,
    capacity: buildCapacityState(instance),
    movers: listMovable(instance),
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

/** Whether a plan exists with at most this many more migrations. `path` then has the plan. */
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

/** Starts the evacuees from this index on. They come last, because starts only use capacity. */
function startFrom(all: ExhaustiveSearch, index: number): boolean {
  const vm = all.starts[index]
  if (vm === undefined) return true
  for (let to = 0; to < all.targets; to += 1) {
    if (countTry(all)) return false
    if (all.capacity.fits(vm, to) && tryMove(all, vm, to, () => startFrom(all, index + 1))) return true
  }
  return false
}

/** Makes a move, and undoes it if it leads to no plan. */
function tryMove({ capacity, path }: ExhaustiveSearch, vm: number, to: number, next: () => boolean): boolean {
  const from = capacity.hostOf[vm]!
  path.push({ vm, from, to })
  capacity.place(vm, to)
  if (next()) return true
  capacity.place(vm, from)
  path.pop()
  return false
}

/** Counts a tried place. Returns true from the time when the search is given up. */
function countTry(all: ExhaustiveSearch): boolean {
  const { maxStates, deadlineMs } = all
  all.tries += 1
  all.isGivenUp ||= all.states > maxStates || all.tries > maxStates * triesPerState
  all.isGivenUp ||= all.tries % triesPerLook === 0 && isUp(deadlineMs)
  return all.isGivenUp
}

/**
 * Whether an evacuee of a group frees, by leaving its host, the failure domain for other members of
 * the group.
 */
function evacueeMakesWay({ evacuees, home, groupsOf, domain, targets }: Instance): boolean {
  const open = new Set(domain.slice(0, targets))
  return evacuees.some((vm) => home[vm]! >= 0 && groupsOf[vm]!.length > 0 && open.has(domain[home[vm]!]!))
}

/**
 * The best plan so far and its proofs, as plain data. No plan for all VMs needs fewer migrations
 * than `lowerBound`; `provenBy` names the proof of the bound.
 */
export type Incumbent = {
  moves: Move[]
  /** Evacuees without a place after these moves. For a rebalance, VMs that still break a rule. */
  unplaced: number[]
  lowerBound: number
  provenBy: 'trivial' | 'certificate' | 'engine' | 'exhausted'
  certificate: Certificate | null
  /** True if no plan at all has a place for all VMs. */
  isInfeasible: boolean
  /** The proof that no other choice of VMs to leave down does less harm. Null without a proof. */
  triage: 'engine' | 'exhausted' | null
  /** Prices that prove the choice of VMs to leave down, for the highest priorities of these VMs. */
  levels?: ProvedLevel[]
}

/**
 * The state that all stages of one search share. `incumbent` is changed in place, and reported when
 * it gets better.
 */
export type SearchState = {
  instance: Instance
  incumbent: Incumbent
  /** Migrations of VMs on drained hosts, which every plan needs. */
  forcedMigrations: number
  /**
   * False if the first state breaks rules. A proof that no placement keeps all rules then says
   * nothing about plans.
   */
  isSound: boolean
  engine: SolverEngine
  /**
   * The engine for models with binaries. If it differs from `engine`, it is also used when the
   * bound leaves a gap.
   */
  mip: SolverEngine
  deadlineMs: number
  random: () => number
  report: (incumbent: Incumbent) => void
}

export function initialIncumbent({ evacuees, home, weight }: Instance): Incumbent {
  // Counts the VMs on hosts that have to be emptied, which move in any plan.
  const lowerBound = evacuees.reduce((sum, vm) => (home[vm]! >= 0 ? sum + weight[vm]! : sum), 0)
  return {
    moves: [],
    unplaced: [...evacuees],
    lowerBound,
    provenBy: 'trivial',
    certificate: null,
    isInfeasible: false,
    triage: null,
  }
}

export function initialState(
  instance: Instance,
  options: Omit<SearchState, 'instance' | 'incumbent' | 'forcedMigrations' | 'isSound'> & { isInfeasible: boolean },
): SearchState {
  const { isInfeasible, ...shared } = options
  const incumbent = { ...initialIncumbent(instance), isInfeasible }
  const isSound = findViolations(instance).length === 0
  return { instance, incumbent, forcedMigrations: incumbent.lowerBound, isSound, ...shared }
}

export function remainingMs({ deadlineMs }: SearchState): number {
  return deadlineMs - performance.now()
}

export function isComplete({ incumbent }: SearchState): boolean {
  return incumbent.unplaced.length === 0
}

/** Whether the plan places all VMs with the fewest possible migrations. */
export function isOptimal(state: SearchState): boolean {
  return isComplete(state) && incumbentMigrations(state) <= state.incumbent.lowerBound
}

export function isSettled(state: SearchState): boolean {
  return state.incumbent.isInfeasible || isOptimal(state)
}

export function incumbentMigrations({ instance, incumbent }: SearchState): number {
  return countMigrations(instance, incumbent.moves)
}

/** Replaces the incumbent's moves if these moves are better. */
export function recordMoves(
  { instance, incumbent, report }: SearchState,
  moves: Move[],
  unplaced: number[] = [],
): void {
  if (!isBetter(instance, { moves, unplaced }, incumbent)) return
  replacePlan(instance, incumbent, { moves, unplaced })
  report(incumbent)
}

/** Replaces the plan. Drops a proof about VMs down unless the VMs down have the same priorities. */
export function replacePlan(instance: Instance, incumbent: Incumbent, candidate: Candidate): void {
  const isOther = compareUnplaced(instance, candidate.unplaced, incumbent.unplaced) !== 0
  Object.assign(incumbent, { ...candidate, ...(isOther && { triage: null, levels: [] }) } satisfies Partial<Incumbent>)
}

export function recordBound(
  { incumbent, report }: SearchState,
  lowerBound: number,
  provenBy: Incumbent['provenBy'],
  certificate: Certificate | null = null,
): void {
  // Prefers a certificate to an engine's claim of the same bound, because it proves more.
  const isFirmer = lowerBound === incumbent.lowerBound && incumbent.provenBy === 'engine' && provenBy === 'certificate'
  if (lowerBound <= incumbent.lowerBound && !isFirmer) return
  Object.assign(incumbent, { lowerBound, provenBy, certificate } satisfies Partial<Incumbent>)
  report(incumbent)
}

export function recordInfeasible({ incumbent, report }: SearchState, provenBy: Incumbent['provenBy']): void {
  Object.assign(incumbent, { isInfeasible: true, provenBy } satisfies Partial<Incumbent>)
  report(incumbent)
}

export function recordTriage(
  { incumbent, report }: SearchState,
  triage: Incumbent['triage'],
  levels: ProvedLevel[] = [],
): void {
  Object.assign(incumbent, { triage, levels } satisfies Partial<Incumbent>)
  report(incumbent)
}

export function countMigrations({ weight }: Instance, moves: readonly Move[]): number {
  return moves.reduce((sum, { vm, from }) => (from >= 0 ? sum + weight[vm]! : sum), 0)
}

function sumMovedRam({ vmRam }: Instance, moves: readonly Move[]): number {
  return moves.reduce((sum, { vm, from }) => (from >= 0 ? sum + vmRam[vm]! : sum), 0)
}

type Candidate = Pick<Incumbent, 'moves' | 'unplaced'>

/**
 * Whether the first plan is better, compared in this order: fewer VMs of the highest priority down,
 * and so on through the priorities; fewer migrations; less memory moved.
 */
export function isBetter(instance: Instance, one: Candidate, than: Candidate): boolean {
  const order = compareUnplaced(instance, one.unplaced, than.unplaced)
  if (order !== 0) return order < 0
  const migrations = countMigrations(instance, one.moves) - countMigrations(instance, than.moves)
  if (migrations !== 0) return migrations < 0
  return sumMovedRam(instance, one.moves) < sumMovedRam(instance, than.moves)
}

/**
 * Compares two choices of VMs to leave down. Below 0 if the first choice does less harm. VMs that
 * move as one count singly, each with its own priority.
 */
export function compareUnplaced({ priorities }: Instance, one: readonly number[], two: readonly number[]): number {
  const classes = [...new Set([...one, ...two].flatMap((vm) => priorities[vm]!))].sort((a, b) => b - a)
  for (const each of classes) {
    const difference = countWithPriority(priorities, one, each) - countWithPriority(priorities, two, each)
    if (difference !== 0) return difference
  }
  return 0
}

function countWithPriority(priorities: number[][], vms: readonly number[], priority: number): number {
  return vms.reduce((sum, vm) => sum + priorities[vm]!.filter((each) => each === priority).length, 0)
}
