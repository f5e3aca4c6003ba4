import { isUp, type Work } from '../cluster/clock.ts'
import type { Instance } from '../cluster/instance.ts'
import { type Room, roomOf } from '../cluster/room.ts'

export type Move = { vm: number; from: number; to: number }

/** `moves` can be made one after the other as they stand. `left`: what is wanted and has no place. */
export type Ordered = { moves: Move[]; left: number[] }

export type SearchOptions = {
  random: () => number
  /** How far scores are shaken: 0 for the greedy run. */
  noise: number
  /** A run that moves more others than this is of no use. */
  maxMigrations: number
  deadlineMs: number
  /** What all runs together may still do; without it only time ends a run. */
  work?: Work
  /** Of VMs that matter alike, which comes first: the largest, which is the hardest to place, or the smallest, of which most fit. */
  first?: 'largest' | 'smallest'
}

/** Evictions that one VM may cost: few first, so that the cheap ways are all tried before an expensive one. */
const evictionLimits = [1, 2, 3, 5]
const maxDepth = 3
/** What a run takes to begin, beside one look at a host: so that work takes as long on clusters of any size, 40,000 in a millisecond. */
const workPerRun = 2_000
const workPerVm = 8
/** How many hosts, and how many VMs of a host, are tried where trying all takes too long. */
const hostsTried = { first: Number.POSITIVE_INFINITY, deep: 8, inner: 3 }
const vmsTried = { first: 14, inner: 6 }

/**
 * One run through the wanted VMs in execution order: each partial state can be carried out, so that what comes out has an
 * order by construction. A VM that fits nowhere makes others move, which may make others move in turn.
 */
export function search(instance: Instance, options: SearchOptions): Ordered {
  const { random, noise, maxMigrations, deadlineMs, first = 'largest' } = options
  const work = options.work ?? { left: Number.POSITIVE_INFINITY }
  const { targets, vmRam, vmCpu, hostRam, hostCpu, home, movable, wanted, priority, rule, allows } = instance
  const room = roomOf(instance)
  work.left -= workPerRun + workPerVm * home.length
  const { at, freeRam, freeCpu, fits } = room
  const weight = scarcity(instance, room)
  const sizeOf = (vm: number) => vmRam[vm]! * weight.ram + vmCpu[vm]! * weight.cpu
  const shaken = (score: number) => (noise === 0 ? score : score * (1 + noise * (random() - 0.5)))
  const log: Move[] = []
  /** Hosts that room is being made on: nothing may go there meanwhile. */
  const closed = new Uint8Array(targets)
  let migrations = 0

  const left: number[] = []
  const order = wanted.map((vm) => ({ vm, size: shaken(sizeOf(vm)) }))
  const bySize = first === 'largest' ? -1 : 1
  order.sort((a, b) => priority[b.vm]! - priority[a.vm]! || (a.size - b.size) * bySize)
  for (const { vm } of order) {
    const host = tightest(vm)
    if (host >= 0) move(vm, host)
    else if (!makeWay(vm)) left.push(vm)
  }
  return { moves: log, left }

  function move(vm: number, to: number): void {
    const from = at[vm]!
    log.push({ vm, from, to })
    room.put(vm, to)
    if (from >= 0 && movable[vm]) migrations += 1
  }

  function undo(mark: number): void {
    while (log.length > mark) {
      const { vm, from } = log.pop() as Move
      room.put(vm, from)
      if (from >= 0 && movable[vm]) migrations -= 1
    }
  }

  /** The host that this VM fills best; -1: it fits nowhere. */
  function tightest(vm: number): number {
    let best = -1
    let least = Number.POSITIVE_INFINITY
    work.left -= targets
    for (let host = 0; host < targets; host += 1) {
      if (closed[host] || !fits(vm, host)) continue
      const rest = shaken((freeRam[host]! - vmRam[vm]!) * weight.ram + (freeCpu[host]! - vmCpu[vm]!) * weight.cpu)
      if (rest < least) {
        least = rest
        best = host
      }
    }
    return best
  }

  function missing(vm: number, host: number): number {
    const ram = Math.max(0, vmRam[vm]! - freeRam[host]!) * weight.ram
    const cpu = Math.max(0, vmCpu[vm]! - freeCpu[host]!) * weight.cpu
    return ram + cpu
  }

  /** Hosts that could ever take it, least missing room first. */
  function nearest(vm: number, most: number): number[] {
    const found: { host: number; short: number }[] = []
    work.left -= targets
    for (let host = 0; host < targets; host += 1) {
      if (closed[host] || at[vm] === host || !allows[rule[vm]!]![host]) continue
      if (vmRam[vm]! > hostRam[host]! || vmCpu[vm]! > hostCpu[host]!) continue
      found.push({ host, short: shaken(missing(vm, host)) })
    }
    found.sort((a, b) => a.short - b.short)
    return (found.length > most ? found.slice(0, most) : found).map(({ host }) => host)
  }

  function makeWay(vm: number): boolean {
    for (const limit of evictionLimits) {
      const most = Math.min(migrations + limit, maxMigrations)
      if (most <= migrations) return false
      for (let depth = 1; depth <= Math.min(limit, maxDepth); depth += 1) {
        for (const host of nearest(vm, depth === 1 ? hostsTried.first : hostsTried.deep)) {
          if (work.left <= 0 || isUp(deadlineMs)) return false
          const mark = log.length
          if (makeRoom(vm, host, depth, most, vmsTried.first)) {
            move(vm, host)
            return true
          }
          undo(mark)
        }
      }
    }
    return false
  }

  /** Moves others until this VM fits here, with at most so many migrations in all. What was tried without success is not undone. */
  function makeRoom(vm: number, host: number, depth: number, most: number, breadth: number): boolean {
    closed[host] = 1
    try {
      while (!fits(vm, host)) {
        if (migrations >= most || !evictOne(vm, host, depth, most, breadth)) return false
      }
      return true
    } finally {
      closed[host] = 0
    }
  }

  function evictOne(vm: number, host: number, depth: number, most: number, breadth: number): boolean {
    const candidates = evictable(vm, host, breadth)
    for (const other of candidates) {
      const to = tightestFor(other, vm, host)
      if (to >= 0) {
        move(other, to)
        return true
      }
    }
    if (depth <= 1 || migrations + 1 >= most) return false
    for (const other of candidates) {
      for (const to of nearest(other, hostsTried.inner)) {
        const mark = log.length
        if (makeRoom(other, to, depth - 1, most - 1, vmsTried.inner)) {
          move(other, to)
          if (room.rival(vm, host) !== other) return true
        }
        undo(mark)
      }
    }
    return false
  }

  /** A rival has to leave the domain, not only its host. */
  function tightestFor(other: number, vm: number, host: number): number {
    const to = tightest(other)
    if (to < 0 || room.rival(vm, host) !== other) return to
    const { domain } = instance
    if (domain[to] !== domain[host]) return to
    for (let away = 0; away < targets; away += 1) {
      if (domain[away] !== domain[host] && !closed[away] && fits(other, away)) return away
    }
    return -1
  }

  /** VMs to move from here, best first: a rival, else the one that alone makes enough room and wastes least, else the largest. */
  function evictable(vm: number, host: number, most: number): number[] {
    const rival = room.rival(vm, host)
    if (rival >= 0) return movable[rival] && at[rival] === home[rival] ? [rival] : []
    const ram = Math.max(0, vmRam[vm]! - freeRam[host]!)
    const cpu = Math.max(0, vmCpu[vm]! - freeCpu[host]!)
    const scored: { other: number; score: number }[] = []
    work.left -= room.on[host]!.length
    for (const other of room.on[host]!) {
      if (!movable[other] || at[other] !== home[other]) continue
      const covers = vmRam[other]! >= ram && vmCpu[other]! >= cpu
      const size = sizeOf(other)
      const cover = Math.min(vmRam[other]!, ram) * weight.ram + Math.min(vmCpu[other]!, cpu) * weight.cpu
      if (cover === 0) continue
      scored.push({ other, score: covers ? -1e9 + shaken(size) : -shaken(cover) + size * 1e-3 })
    }
    scored.sort((a, b) => a.score - b.score)
    return (scored.length > most ? scored.slice(0, most) : scored).map(({ other }) => other)
  }
}

/** What a unit of each resource is worth: the less of it is free in the cluster, the more. */
function scarcity({ targets }: Instance, { freeRam, freeCpu }: Room): { ram: number; cpu: number } {
  let [ram, cpu] = [1, 1]
  for (let host = 0; host < targets; host += 1) {
    ram += Math.max(0, freeRam[host]!)
    cpu += Math.max(0, freeCpu[host]!)
  }
  return { ram: 1 / ram, cpu: 1 / cpu }
}
