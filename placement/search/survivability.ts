import { isUp, type Work } from '../cluster/budget.ts'
import type { Instance } from '../cluster/instance.ts'
import { exhaust, isSmall } from './exhaust.ts'
import { type Move, search } from './search.ts'

/** See `loss` in domain/placement.ts. */
export type FailureOutcome = 'restarted' | 'moved' | 'not_found'

const triesWithout = 4
const triesWithMoves = 400
/** Some hundredths of a second for each death and some tenths for all, in hosts and VMs looked at. */
const workPerFailure = 2_400_000
const workInAll = 12_000_000

/**
 * What still stands after these moves (N-1): for each set of targets that die together, here by number, what becomes of the VMs
 * on them. What is not looked at before the time is up is `not_found`.
 */
export function assessSurvivability(
  instance: Instance,
  moves: readonly Move[],
  failureDomains: readonly number[][],
  random: () => number,
  deadlineMs: number,
): FailureOutcome[] {
  const home = [...instance.home]
  for (const { vm, to } of moves) home[vm] = to
  const pool: Work = { left: workInAll }
  return failureDomains.map((hosts) =>
    isUp(deadlineMs)
      ? 'not_found'
      : assessFailure(withoutHosts(instance, home, new Set(hosts)), random, pool, deadlineMs),
  )
}

function assessFailure(instance: Instance, random: () => number, pool: Work, deadlineMs: number): FailureOutcome {
  if (instance.evacuees.length === 0) return 'restarted'
  if (isSmall(instance)) {
    const tried = exhaust(instance, 5_000, deadlineMs)
    if (tried.kind === 'none') return 'not_found'
    if (tried.kind === 'fewest') return tried.moves.every(({ from }) => from < 0) ? 'restarted' : 'moved'
  }
  for (let run = 0; run < triesWithout; run += 1) {
    const options = { random, noise: run === 0 ? 0 : 0.5, maxMigrations: 0, deadlineMs: Number.POSITIVE_INFINITY }
    if (search(instance, options).unplaced.length === 0) return 'restarted'
  }
  const most = Math.min(workPerFailure, pool.left)
  const work: Work = { left: most }
  let isFound = false
  for (let run = 0; run < triesWithMoves && !isFound && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const options = { random, noise: run === 0 ? 0 : 0.6, maxMigrations: 20, deadlineMs, work }
    isFound = search(instance, options).unplaced.length === 0
  }
  pool.left -= most - work.left
  return isFound ? 'moved' : 'not_found'
}

/** The same cluster without some targets, whose VMs become evacuees. Those that were evacuees before are as movable as the others. */
function withoutHosts(instance: Instance, home: readonly number[], dead: ReadonlySet<number>): Instance {
  const { targets, hostRam, movable, evacuees } = instance
  const number = new Map<number, number>()
  for (let host = 0; host < hostRam.length; host += 1) if (!dead.has(host)) number.set(host, number.size)
  const keep = <T>(list: readonly T[]): T[] => list.filter((_, host) => !dead.has(host))
  const before = new Set(evacuees)
  return {
    ...instance,
    targets: targets - dead.size,
    hostRam: keep(hostRam),
    hostCpu: keep(instance.hostCpu),
    domain: keep(instance.domain),
    allows: instance.allows.map(keep),
    home: home.map((host) => number.get(host) ?? -1),
    evacuees: home.flatMap((host, vm) => (dead.has(host) ? [vm] : [])),
    movable: movable.map((may, vm) => (may || before.has(vm)) && home[vm]! >= 0 && !dead.has(home[vm]!)),
  }
}
