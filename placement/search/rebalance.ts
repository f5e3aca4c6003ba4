import type { Loss } from '../../domain/placement.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, findViolations, isUp, type SearchBudget } from '../cluster/size-classes.ts'
import { findEndPlaces, isFewHosts } from './end-places.ts'
import { countMigrations, exhaust, type Incumbent, initialIncumbent, isSmall } from './exhaust.ts'
import { type Move, search } from './search.ts'
import { findRoomShortage } from './shortage.ts'

/** The fraction of its capacity above which a host is too full. No other host may exceed it. */
const hotFraction = 0.9
const maxRuns = 200

type RebalanceOptions = { deadlineMs: number; random: () => number; report: (incumbent: Incumbent) => void }

/**
 * Repairs broken rules with few migrations, and moves VMs away from hosts that are more than 90 %
 * full if this works for all of these hosts. `unplaced`: VMs that still break a rule. Makes no
 * moves if no rule is broken and no host is too full.
 */
export function rebalance(instance: Instance, { deadlineMs, random, report }: RebalanceOptions): Incumbent {
  const incumbent: Incumbent = {
    ...initialIncumbent(instance),
    lowerBound: countFewestMoves(instance),
    unplaced: findViolations(instance),
  }
  const halfway = performance.now() + (deadlineMs - performance.now()) / 2
  const relieved = findBest(withHeadroom(instance), random, halfway)
  const found = relieved?.unplaced.length === 0 ? relieved : findBest(instance, random, deadlineMs)
  if (!found || found.unplaced.length > incumbent.unplaced.length) return incumbent
  Object.assign(incumbent, found)
  report(incumbent)
  return incumbent
}

type RebalanceResult = { moves: Move[]; unplaced: number[] }

/**
 * Finds the run of the search after which the fewest rules are broken, and of several the run with
 * the fewest moves. Null if nothing has to be done.
 */
function findBest(instance: Instance, random: () => number, untilMs: number): RebalanceResult | null {
  if (selectEvictions(instance, random, 0).length === 0) return null
  const fewest = countFewestMoves(instance)
  let best: RebalanceResult | null = null
  for (let run = 0; run < maxRuns && !isUp(untilMs); run += 1) {
    const result = attempt(instance, random, run === 0 ? 0 : 0.3 + 0.7 * random(), untilMs)
    const isFewer = () =>
      countMigrations(instance, result.moves) < countMigrations(instance, (best as RebalanceResult).moves)
    const isBetter =
      !best ||
      result.unplaced.length < best.unplaced.length ||
      (result.unplaced.length === best.unplaced.length && isFewer())
    if (isBetter) best = result
    if (best?.unplaced.length === 0 && countMigrations(instance, best.moves) <= fewest) break
  }
  return best
}

function attempt(instance: Instance, random: () => number, noise: number, untilMs: number): RebalanceResult {
  const evacuees = selectEvictions(instance, random, noise)
  const chosen = new Set(evacuees)
  const movable = instance.movable.map((may, vm) => may && !chosen.has(vm))
  const { moves } = search(
    { ...instance, evacuees, movable },
    { random, noise, maxMigrations: 20, deadlineMs: untilMs },
  )
  const capacity = buildCapacityState(instance)
  for (const { vm, to } of moves) capacity.place(vm, to)
  return { moves, unplaced: findViolations(instance, capacity) }
}

function withHeadroom(instance: Instance): Instance {
  const max = (sizes: readonly number[]) => sizes.map((size) => Math.floor(size * hotFraction))
  return { ...instance, hostRam: max(instance.hostRam), hostCpu: max(instance.hostCpu) }
}

/** Selects VMs to move so that no rule is broken: for each broken rule the cheapest. */
function selectEvictions(instance: Instance, random: () => number, noise: number): number[] {
  const { targets, vmRam, vmCpu, hostRam, hostCpu, movable, home } = instance
  const capacity = buildCapacityState(instance)
  const chosen: number[] = []
  const take = (vm: number) => {
    capacity.place(vm, -1)
    chosen.push(vm)
  }
  const shaken = (score: number) => score * (1 + noise * (random() - 0.5))
  for (const vm of findMisplaced(instance)) if (movable[vm]) take(vm)
  for (const [vm, host] of home.entries()) {
    while (host >= 0 && capacity.hostOf[vm]! >= 0) {
      const peer = capacity.groupPeerIn(vm, host)
      const [lighter] = [vm, peer]
        .filter((each) => each >= 0 && movable[each])
        .sort((a, b) => shaken(vmRam[a]!) - shaken(vmRam[b]!))
      if (peer < 0 || lighter === undefined) break
      take(lighter)
    }
  }
  for (let host = 0; host < targets; host += 1) {
    while (capacity.freeRam[host]! < 0 || capacity.freeCpu[host]! < 0) {
      const size = (vm: number) => vmRam[vm]! / hostRam[host]! + vmCpu[vm]! / hostCpu[host]!
      const covers = (vm: number) => vmRam[vm]! >= -capacity.freeRam[host]! && vmCpu[vm]! >= -capacity.freeCpu[host]!
      const guests = capacity.guests[host]!.filter((vm) => movable[vm]).map((vm) => ({
        vm,
        size: shaken(size(vm)),
        covers: covers(vm),
      }))
      // Prefers the smallest VM that is enough for the repair, or else the largest VM.
      guests.sort((a, b) => Number(b.covers) - Number(a.covers) || (a.covers ? a.size - b.size : b.size - a.size))
      if (!guests[0]) break
      take(guests[0].vm)
    }
  }
  return chosen
}

/** Finds VMs on hosts that the VMs' rules forbid. */
function findMisplaced({ home, rule, allows, targets }: Instance): number[] {
  return home.flatMap((host, vm) => (host >= 0 && host < targets && !allows[rule[vm]!]![host] ? [vm] : []))
}

/**
 * Computes a lower bound on moves: from each host as many as free the excess, of each HA group all
 * members but one in a domain, and all VMs on forbidden hosts. One move may repair several broken
 * rules, so the bound is the largest of these numbers.
 */
function countFewestMoves(instance: Instance): number {
  return Math.max(countFromFullHosts(instance), countFromGroups(instance), findMisplaced(instance).length)
}

function countFromFullHosts(instance: Instance): number {
  const { targets, vmRam, vmCpu } = instance
  const { freeRam, freeCpu, guests } = buildCapacityState(instance)
  let sum = 0
  for (let host = 0; host < targets; host += 1) {
    const ram = countLargestToCover(
      guests[host]!.map((vm) => vmRam[vm]!),
      -freeRam[host]!,
    )
    const cpu = countLargestToCover(
      guests[host]!.map((vm) => vmCpu[vm]!),
      -freeCpu[host]!,
    )
    sum += Math.max(ram, cpu)
  }
  return sum
}

function countLargestToCover(sizes: number[], excess: number): number {
  let [count, rest] = [0, excess]
  for (const size of sizes.sort((a, b) => b - a)) {
    if (rest <= 0) break
    rest -= size
    count += 1
  }
  return count
}

function countFromGroups({ home, groupsOf, domain }: Instance): number {
  const seen = new Set<string>()
  let sum = 0
  for (const [vm, host] of home.entries()) {
    if (host < 0) continue
    for (const group of groupsOf[vm]!) {
      const key = `${group} ${domain[host]}`
      if (seen.has(key)) sum += 1
      seen.add(key)
    }
  }
  return sum
}

/** The outcome of the failure of one domain: see `loss` in domain/placement.ts. */
export type FailureOutcome = Omit<Loss, 'name'>

/**
 * Limits for few hosts: the most VMs that make room after a failure, of which every set is tried,
 * and the work for each number of VMs.
 */
const othersTried = 3
const workPerCount = 30_000
const triesWithout = 4
const triesWithMoves = 400
/** Work for each failure (hundredths of a second) and for all (tenths): examined hosts and VMs. */
const workPerFailure = 2_400_000
/** Work per failure in clusters of few hosts, for which every set of VMs was already tried. */
const workPerSmallFailure = 40_000
const workInAll = 12_000_000

/**
 * Assesses the N-1 state after these moves: what happens to the VMs if a set of targets fails, for
 * each set. A set that was not examined in time is `not_found`.
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
  const pool: SearchBudget = { left: workInAll }
  return failureDomains.map((hosts) =>
    isUp(deadlineMs)
      ? { outcome: 'not_found' as const }
      : assessFailure(withoutHosts(instance, home, new Set(hosts)), random, pool, deadlineMs),
  )
}

function assessFailure(
  instance: Instance,
  random: () => number,
  pool: SearchBudget,
  deadlineMs: number,
): FailureOutcome {
  if (instance.evacuees.length === 0) return { outcome: 'restarted' }
  const short = findRoomShortage(instance)
  if (short) {
    const { ramMib, cpuMc, hosts } = short
    // Leaves out a shortage of only some hosts: it would seem to describe the whole cluster, in
    // which more capacity elsewhere would not help.
    return { outcome: 'not_found', ...(hosts.length === instance.targets && { lacks: { ramMib, cpuMc } }) }
  }
  for (let others = 0; others <= othersTried && isFewHosts(instance); others += 1) {
    const work: SearchBudget = { left: Math.min(workPerCount, pool.left) }
    const max = work.left
    const tried = findEndPlaces(instance, others, { work, deadlineMs })
    pool.left -= max - work.left
    if (tried.kind === 'found') return { outcome: others === 0 ? 'restarted' : 'moved' }
  }
  if (isSmall(instance)) {
    const tried = exhaust(instance, 100, deadlineMs)
    if (tried.kind === 'none') return { outcome: 'not_found' }
    if (tried.kind === 'fewest') return { outcome: 'moved' }
  }
  if (!isFewHosts(instance) && canRestart(instance, random)) return { outcome: 'restarted' }
  return { outcome: searchWithMoves(instance, random, pool, deadlineMs) ? 'moved' : 'not_found' }
}

function canRestart(instance: Instance, random: () => number): boolean {
  for (let run = 0; run < triesWithout; run += 1) {
    const options = { random, noise: run === 0 ? 0 : 0.5, maxMigrations: 0, deadlineMs: Number.POSITIVE_INFINITY }
    if (search(instance, options).unplaced.length === 0) return true
  }
  return false
}

function searchWithMoves(instance: Instance, random: () => number, pool: SearchBudget, deadlineMs: number): boolean {
  const max = Math.min(isFewHosts(instance) ? workPerSmallFailure : workPerFailure, pool.left)
  const work: SearchBudget = { left: max }
  let isFound = false
  for (let run = 0; run < triesWithMoves && !isFound && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const options = { random, noise: run === 0 ? 0 : 0.6, maxMigrations: 20, deadlineMs, work }
    isFound = search(instance, options).unplaced.length === 0
  }
  pool.left -= max - work.left
  return isFound
}

/**
 * Returns the cluster without some targets, whose VMs become evacuees. Former evacuees with a place
 * can then be moved like other VMs.
 */
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
