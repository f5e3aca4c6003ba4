import type { Certificate } from '../certificate.ts'
import type { Move } from '../search/search.ts'
import type { Instance } from './instance.ts'

/**
 * What is known of an instance so far, as plain data. `atLeast`: no plan for all needs fewer migrations, and `how` says what
 * shows it.
 */
export type Known = {
  moves: Move[]
  /** What is wanted and has no place in these moves. */
  left: number[]
  atLeast: number
  how: 'trivial' | 'certificate' | 'engine' | 'exhausted'
  certificate: Certificate | null
  /** There is no plan for all, of any kind. */
  isImpossible: boolean
}

export function nothingKnown({ wanted, home, weight }: Instance): Known {
  // What leaves a host that is to be emptied is moved in any plan.
  const atLeast = wanted.reduce((sum, vm) => (home[vm]! >= 0 ? sum + weight[vm]! : sum), 0)
  return { moves: [], left: [...wanted], atLeast, how: 'trivial', certificate: null, isImpossible: false }
}

export function migrationsOf({ weight }: Instance, moves: readonly Move[]): number {
  return moves.reduce((sum, { vm, from }) => (from >= 0 ? sum + weight[vm]! : sum), 0)
}

function movedRam({ vmRam }: Instance, moves: readonly Move[]): number {
  return moves.reduce((sum, { vm, from }) => (from >= 0 ? sum + vmRam[vm]! : sum), 0)
}

type Candidate = Pick<Known, 'moves' | 'left'>

/**
 * Is this the better plan? In this order: fewer of the most important stay down, and so on through the priorities; fewer
 * migrations; less memory moved.
 */
export function isBetter(instance: Instance, one: Candidate, than: Candidate): boolean {
  const order = compareLeft(instance, one.left, than.left)
  if (order !== 0) return order < 0
  const migrations = migrationsOf(instance, one.moves) - migrationsOf(instance, than.moves)
  if (migrations !== 0) return migrations < 0
  return movedRam(instance, one.moves) < movedRam(instance, than.moves)
}

/** Below 0: leaving the first ones down is the lesser harm. Every VM counts, those that go as one each with its own priority. */
export function compareLeft({ priorities }: Instance, one: readonly number[], two: readonly number[]): number {
  const classes = [...new Set([...one, ...two].flatMap((vm) => priorities[vm]!))].sort((a, b) => b - a)
  for (const each of classes) {
    const difference = countOf(priorities, one, each) - countOf(priorities, two, each)
    if (difference !== 0) return difference
  }
  return 0
}

function countOf(priorities: number[][], vms: readonly number[], priority: number): number {
  return vms.reduce((sum, vm) => sum + priorities[vm]!.filter((each) => each === priority).length, 0)
}
