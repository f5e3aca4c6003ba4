import type { Engine } from '../bound/engine.ts'
import type { Certificate } from '../certificate.ts'
import { findViolations } from '../cluster/capacity.ts'
import type { Instance } from '../cluster/instance.ts'
import type { Move } from './search.ts'

/**
 * The best plan so far and what is proved about it, as plain data. `lowerBound`: no plan for all needs fewer migrations, and
 * `provenBy` says what shows it.
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
}

/** What the stages of one search share. `incumbent` is replaced in place, and reported whenever it gets better. */
export type SearchState = {
  instance: Instance
  incumbent: Incumbent
  /** Migrations that every plan needs: what runs on a drained host. */
  forcedMigrations: number
  /** In a state that violates rules already, "no placement keeps them all" says nothing about the plan. */
  isSound: boolean
  engine: Engine
  /** A second engine, for where the first one and the bound leave a gap. */
  secondEngine: Engine | undefined
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
  Object.assign(incumbent, { moves, unplaced } satisfies Partial<Incumbent>)
  report(incumbent)
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

export function countMigrations({ weight }: Instance, moves: readonly Move[]): number {
  return moves.reduce((sum, { vm, from }) => (from >= 0 ? sum + weight[vm]! : sum), 0)
}

function sumMovedRam({ vmRam }: Instance, moves: readonly Move[]): number {
  return moves.reduce((sum, { vm, from }) => (from >= 0 ? sum + vmRam[vm]! : sum), 0)
}

type Candidate = Pick<Incumbent, 'moves' | 'unplaced'>

/**
 * Is this the better plan? In this order: fewer of the most important stay down, and so on through the priorities; fewer
 * migrations; less memory moved.
 */
export function isBetter(instance: Instance, one: Candidate, than: Candidate): boolean {
  const order = compareUnplaced(instance, one.unplaced, than.unplaced)
  if (order !== 0) return order < 0
  const migrations = countMigrations(instance, one.moves) - countMigrations(instance, than.moves)
  if (migrations !== 0) return migrations < 0
  return sumMovedRam(instance, one.moves) < sumMovedRam(instance, than.moves)
}

/** Below 0: leaving the first ones down is the lesser harm. VMs of a placement group count one by one, each with its priority. */
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
