import type { Instance } from './instance.ts'
import { type Known, migrationsOf, nothingKnown } from './known.ts'
import { type Room, roomOf } from './room.ts'
import { type Move, search } from './search.ts'

/** Hosts fuller than this are relieved, and nobody is brought over it to do so. */
const hotFraction = 0.9

export type MendOptions = { deadlineMs: number; random: () => number; report: (known: Known) => void }

/**
 * Rebalancing: broken rules are mended with few migrations, and hosts that are over nine tenths full are relieved where that can
 * be done for all of them. `left`: what still stands against a rule. No moves where nothing is broken and nothing is too full.
 */
export function mend(instance: Instance, { deadlineMs, random, report }: MendOptions): Known {
  const known: Known = {
    ...nothingKnown(instance),
    atLeast: fewest(instance),
    left: flawed(instance, roomOf(instance)),
  }
  const relieved = {
    ...instance,
    hostRam: instance.hostRam.map((ram) => Math.floor(ram * hotFraction)),
    hostCpu: instance.hostCpu.map((cpu) => Math.floor(cpu * hotFraction)),
  }
  const half = performance.now() + Math.max(0, deadlineMs - performance.now()) / 2
  const isDone = (within: Instance, until: number) => {
    const first = victims(within, random, 0)
    if (first.length === 0) return known.left.length === 0
    let isMended = false
    for (let run = 0; run < 200 && performance.now() < until; run += 1) {
      const noise = run === 0 ? 0 : 0.3 + 0.7 * random()
      const moves = attempt(within, run === 0 ? first : victims(within, random, noise), random, noise, until)
      const left = flawed(within, after(within, moves))
      const isFewer = migrationsOf(instance, moves) < migrationsOf(instance, known.moves)
      if (left.length > 0 ? isMended || left.length >= known.left.length : isMended && !isFewer) continue
      if (left.length > 0 && within !== instance) continue
      isMended ||= left.length === 0
      Object.assign(known, { moves, left })
      report(known)
      if (isMended && migrationsOf(instance, moves) <= fewest(within)) break
    }
    return isMended
  }
  if (!isDone(relieved, half)) isDone(instance, deadlineMs)
  return known
}

function attempt(instance: Instance, wanted: number[], random: () => number, noise: number, untilMs: number): Move[] {
  const chosen = new Set(wanted)
  const movable = instance.movable.map((may, vm) => may && !chosen.has(vm))
  const found = search({ ...instance, wanted, movable }, { random, noise, maxMigrations: 20, deadlineMs: untilMs })
  return found.moves
}

function after(instance: Instance, moves: readonly Move[]): Room {
  const room = roomOf(instance)
  for (const { vm, to } of moves) room.put(vm, to)
  return room
}

/** Whom to take away so that no rule is broken any more: of each flaw the one whose going wastes least. */
function victims(instance: Instance, random: () => number, noise: number): number[] {
  const { targets, vmRam, vmCpu, movable } = instance
  const room = roomOf(instance)
  const chosen: number[] = []
  const take = (vm: number | undefined) => {
    if (vm === undefined) return false
    room.put(vm, -1)
    chosen.push(vm)
    return true
  }
  const shaken = (score: number) => score * (1 + noise * (random() - 0.5))
  for (const vm of misplaced(instance)) if (movable[vm]) take(vm)
  for (const [vm, host] of instance.home.entries()) {
    if (host < 0 || room.at[vm]! < 0) continue
    for (let rival = room.rival(vm, host); rival >= 0; rival = room.rival(vm, host)) {
      const pair = [vm, rival].filter((each) => movable[each])
      if (!take(pair.sort((a, b) => shaken(vmRam[a]!) - shaken(vmRam[b]!))[0]) || chosen.at(-1) === vm) break
    }
  }
  for (let host = 0; host < targets; host += 1) {
    while (room.freeRam[host]! < 0 || room.freeCpu[host]! < 0) {
      const [ram, cpu] = [-room.freeRam[host]!, -room.freeCpu[host]!]
      const covers = (vm: number) => vmRam[vm]! >= ram && vmCpu[vm]! >= cpu
      const score = (vm: number) => shaken(vmRam[vm]! / instance.hostRam[host]! + vmCpu[vm]! / instance.hostCpu[host]!)
      const candidates = room.on[host]!.filter((vm) => movable[vm]).map((vm) => ({
        vm,
        score: score(vm) - (covers(vm) ? 1e6 : 0),
      }))
      const enough = candidates.filter(({ score }) => score < -1e5)
      const pick =
        enough.length > 0
          ? enough.sort((a, b) => a.score - b.score)[0]
          : candidates.sort((a, b) => b.score - a.score)[0]
      if (!take(pick?.vm)) break
    }
  }
  return chosen
}

function misplaced({ home, rule, allows, targets }: Instance): number[] {
  return home.flatMap((host, vm) => (host >= 0 && host < targets && !allows[rule[vm]!]![host] ? [vm] : []))
}

/** VMs that stand against a rule: on a host that is too full, beside another of their group, or where they must not be. */
function flawed({ targets, home, rule, allows }: Instance, { at, freeRam, freeCpu, on, rival }: Room): number[] {
  const wrong = new Set<number>()
  for (let host = 0; host < targets; host += 1) {
    if (freeRam[host]! < 0 || freeCpu[host]! < 0) for (const vm of on[host]!) wrong.add(vm)
  }
  for (const vm of home.keys()) {
    const host = at[vm]!
    if (host < 0 || host >= targets) continue
    if (rival(vm, host) >= 0 || !allows[rule[vm]!]![host]) wrong.add(vm)
  }
  return [...wrong]
}

/**
 * So many have to move at least: as many from each host as it takes at best to free what is too much, of each group all but one
 * in a domain, and whoever is where it must not be. One move may mend several, so the largest of the three counts.
 */
function fewest(instance: Instance): number {
  const { targets, vmRam, vmCpu, groupsOf, domain } = instance
  const { freeRam, freeCpu, on, at } = roomOf(instance)
  let crowded = 0
  for (let host = 0; host < targets; host += 1) {
    const needed = (sizes: number[], free: number) => {
      let [count, left] = [0, -free]
      for (const size of sizes.sort((a, b) => b - a)) {
        if (left <= 0) break
        left -= size
        count += 1
      }
      return count
    }
    const ram = needed(
      on[host]!.map((vm) => vmRam[vm]!),
      freeRam[host]!,
    )
    crowded += Math.max(
      ram,
      needed(
        on[host]!.map((vm) => vmCpu[vm]!),
        freeCpu[host]!,
      ),
    )
  }
  const members = new Map<string, number>()
  let together = 0
  for (const [vm, host] of at.entries()) {
    if (host < 0) continue
    for (const group of groupsOf[vm]!) {
      const key = `${group} ${domain[host]}`
      const count = members.get(key) ?? 0
      if (count > 0) together += 1
      members.set(key, count + 1)
    }
  }
  return Math.max(crowded, together, misplaced(instance).length)
}
