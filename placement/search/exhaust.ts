import type { SolverEngine } from '../bound/assignment.ts'
import type { ProvedLevel } from '../bound/triage-bound.ts'
import type { Certificate } from '../certificate.ts'
import { type Instance, listMovable } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState, findViolations, isUp } from '../cluster/size-classes.ts'
import type { Move } from './search.ts'

/**
 * `fewest`: no plan of any kind needs fewer migrations. `none`: there is no plan. `unknown`: too
 * many states.
 */
type ExhaustiveResult = { kind: 'fewest'; moves: Move[] } | { kind: 'none' } | { kind: 'unknown' }

/** Clusters in which all orders can be looked at within seconds. */
export function isSmall({ targets, movable, evacuees }: Instance): boolean {
  return targets <= 8 && movable.filter(Boolean).length <= 24 && evacuees.length <= 12
}

/** States that the search for all orders may look at. */
export const maxStates = 150_000
/** Places tried per state before giving up: a state may start evacuees in very many ways. */
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
  /** States by what runs where, and with how many migrations left they failed. */
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
 * Tries every order of migrations, a VM moving as often as it likes, fewest first, until the
 * evacuees can start. Gives up after `maxStates`, after as much work in starting VMs, or at the
 * deadline; and where a leaving evacuee makes way for others: then starting last is not always
 * best.
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

/**
 * The best plan so far and its proofs, as plain data. `lowerBound`: no plan for all needs fewer
 * migrations; `provenBy` names the proof.
 */
export type Incumbent = {
  moves: Move[]
  /** Evacuees without a place after these moves; for a rebalance, VMs that still violate a rule. */
  unplaced: number[]
  lowerBound: number
  provenBy: 'trivial' | 'certificate' | 'engine' | 'exhausted'
  certificate: Certificate | null
  /** There is no plan for all, of any kind. */
  isInfeasible: boolean
  /** What shows that no choice of who stays down is less harm; null where nothing does. */
  triage: 'engine' | 'exhausted' | null
  /** Prices that show it, of the highest priorities of which somebody stays down. */
  levels?: ProvedLevel[]
}

/** One search's shared state. `incumbent` is replaced in place, and reported when better. */
export type SearchState = {
  instance: Instance
  incumbent: Incumbent
  /** Migrations that every plan needs: what runs on a drained host. */
  forcedMigrations: number
  /** In a state with violated rules, "no placement keeps them all" says nothing of the plan. */
  isSound: boolean
  engine: SolverEngine
  /**
   * The engine for yes or no questions. One other than `engine` is also asked where the bound
   * leaves a gap.
   */
  mip: SolverEngine
  deadlineMs: number
  random: () => number
  report: (incumbent: Incumbent) => void
}

export function initialIncumbent({ evacuees, home, weight }: Instance): Incumbent {
  // What leaves a host that is to be emptied is moved in any plan.
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

/** Does the plan place all, with as few migrations as any plan can? */
export function isOptimal(state: SearchState): boolean {
  return isComplete(state) && incumbentMigrations(state) <= state.incumbent.lowerBound
}

export function isSettled(state: SearchState): boolean {
  return state.incumbent.isInfeasible || isOptimal(state)
}

export function incumbentMigrations({ instance, incumbent }: SearchState): number {
  return countMigrations(instance, incumbent.moves)
}

/** Replaces the incumbent's moves by better ones. */
export function recordMoves(
  { instance, incumbent, report }: SearchState,
  moves: Move[],
  unplaced: number[] = [],
): void {
  if (!isBetter(instance, { moves, unplaced }, incumbent)) return
  replacePlan(instance, incumbent, { moves, unplaced })
  report(incumbent)
}

/** A proof about who stays down holds only where as many do. */
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
  // A certificate says more than an engine's word.
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
 * Whether this is the better plan, in this order: fewer of the most important down, and so on
 * through the priorities; fewer migrations; less memory moved.
 */
export function isBetter(instance: Instance, one: Candidate, than: Candidate): boolean {
  const order = compareUnplaced(instance, one.unplaced, than.unplaced)
  if (order !== 0) return order < 0
  const migrations = countMigrations(instance, one.moves) - countMigrations(instance, than.moves)
  if (migrations !== 0) return migrations < 0
  return sumMovedRam(instance, one.moves) < sumMovedRam(instance, than.moves)
}

/**
 * Below 0: leaving the first ones down is the lesser harm. A placement group's VMs count singly,
 * each with its priority.
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
