import { formatCount } from '../../domain/format.ts'
import type { PlacementProblem } from '../../domain/placement.ts'
import { usableCapacity } from '../../domain/usable-capacity.ts'
import { describeGroup, type Instance, type PlacementModel } from './instance.ts'

/** The capacity during a plan: places of VMs, free capacity, and members of HA groups. */
export type CapacityState = {
  instance: Instance
  hostOf: Int32Array
  freeRam: Float64Array
  freeCpu: Float64Array
  /** The VMs on each host, in no order. */
  guests: number[][]
  /**
   * Whether this VM may begin to run on this host now. The VM does not exclude itself from its
   * failure domain, but still uses capacity on its present host.
   */
  fits(vm: number, host: number): boolean
  /**
   * Returns another member of the VM's HA group in this host's failure domain, because of which the
   * VM may not start there. -1 for no member.
   */
  groupPeerIn(vm: number, host: number): number
  /** Puts a VM on a host (-1: on none), even if the VM does not fit. */
  place(vm: number, host: number): void
}

/** Builds the capacity state before the first move. */
export function buildCapacityState(instance: Instance): CapacityState {
  const { hostRam, hostCpu, domain, domains, vmRam, vmCpu, groupsOf, groups, home, rule, allows } = instance
  const hostOf = Int32Array.from(home, () => -1)
  const slot = new Int32Array(home.length)
  const freeRam = Float64Array.from(hostRam)
  const freeCpu = Float64Array.from(hostCpu)
  const guests: number[][] = hostRam.map(() => [])
  const members: number[][] = Array.from({ length: groups }, () => [])
  const counts = new Uint16Array(groups * domains)
  for (const [vm, own] of groupsOf.entries()) for (const group of own) members[group]!.push(vm)

  const capacity: CapacityState = { instance, hostOf, freeRam, freeCpu, guests, fits, groupPeerIn, place }
  for (const [vm, host] of home.entries()) place(vm, host)
  return capacity

  function fits(vm: number, host: number): boolean {
    if (vmRam[vm]! > freeRam[host]! || vmCpu[vm]! > freeCpu[host]! || hostOf[vm] === host) return false
    if (!allows[rule[vm]!]![host]) return false
    const here = domain[host]!
    const self = hostOf[vm]! >= 0 && domain[hostOf[vm]!] === here ? 1 : 0
    for (const group of groupsOf[vm]!) if (counts[group * domains + here]! > self) return false
    return true
  }

  function groupPeerIn(vm: number, host: number): number {
    const here = domain[host]!
    for (const group of groupsOf[vm]!) {
      const found = members[group]!.find(
        (other) => other !== vm && hostOf[other]! >= 0 && domain[hostOf[other]!] === here,
      )
      if (found !== undefined) return found
    }
    return -1
  }

  function place(vm: number, host: number): void {
    const from = hostOf[vm]!
    if (from >= 0) {
      freeRam[from]! += vmRam[vm]!
      freeCpu[from]! += vmCpu[vm]!
      for (const group of groupsOf[vm]!) counts[group * domains + domain[from]!]! -= 1
      const list = guests[from]!
      const last = list.pop() as number
      if (last !== vm) {
        list[slot[vm]!] = last
        slot[last] = slot[vm]!
      }
    }
    hostOf[vm] = host
    if (host < 0) return
    freeRam[host]! -= vmRam[vm]!
    freeCpu[host]! -= vmCpu[vm]!
    for (const group of groupsOf[vm]!) counts[group * domains + domain[host]!]! += 1
    slot[vm] = guests[host]!.push(vm) - 1
  }
}

/**
 * Lists VMs that break a rule: on a host over its capacity, with another member of their HA group
 * in one domain, or on a forbidden host.
 */
export function findViolations(instance: Instance, capacity = buildCapacityState(instance)): number[] {
  const { targets, home, rule, allows } = instance
  const { hostOf, freeRam, freeCpu, guests, groupPeerIn } = capacity
  const violating = new Set<number>()
  for (let host = 0; host < targets; host += 1) {
    if (freeRam[host]! < 0 || freeCpu[host]! < 0) for (const vm of guests[host]!) violating.add(vm)
  }
  for (const vm of home.keys()) {
    const host = hostOf[vm]!
    if (host < 0 || host >= targets) continue
    if (groupPeerIn(vm, host) >= 0 || !allows[rule[vm]!]![host]) violating.add(vm)
  }
  return [...violating]
}

/**
 * The remaining work of a search, in examined hosts and VMs. Work is equal on every machine, so
 * that one seed gives one plan. Time ends only long searches.
 */
export type SearchBudget = { left: number }

let hasCut = false

/**
 * Whether the deadline has passed. The caller then stops, so the result may depend on the machine.
 */
export function isUp(deadlineMs: number): boolean {
  if (performance.now() <= deadlineMs) return false
  hasCut = true
  return true
}

/** Records that the time ended a part of the search. */
export function noteCut(): void {
  hasCut = true
}

/**
 * Whether time ended any part of the search since it began. A thread has one problem at a time
 * (`plan-worker.ts`).
 */
export function hasTimeEndedSearch(): boolean {
  return hasCut
}

export function beginQuestion(): void {
  hasCut = false
}

/** Returns a generator of numbers from 0 to 1 (mulberry32). Equal seeds give equal numbers. */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export function shuffle<T>(list: readonly T[], random: () => number): T[] {
  return list
    .map((each) => ({ each, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ each }) => each)
}

/** All VMs of one size. A lower bound does not distinguish between them. */
type SizeClass = {
  ram: number
  cpu: number
  /** The capacity that one VM frees when it leaves, rounded up. */
  ramUp: number
  cpuUp: number
  count: number
  /** The size as in a certificate: `ram_mib/cpu_mc`. */
  key: string
}

/**
 * The cluster without the identities of VMs: the number of VMs by size, in all and per host, and
 * the free capacity beside them. VMs that cannot move count as part of their host. Numbers are
 * whole units, with sizes rounded down and capacity rounded up.
 */
export type SizeClasses = {
  classes: SizeClass[]
  /** The class of each VM. -1 if the VM may not move and does not count. */
  classOf: Int32Array
  /** Number of movable VMs on each target, by class. */
  has: Int32Array[]
  room: { ram: number; cpu: number }[]
}

/**
 * Builds the size classes. Null if a host is over its capacity, which a bound would have to repair
 * first. Also null if VMs move as one, because a bound cannot split such VMs. `maxUnits` limits
 * each side of a packing table. Fewer units are faster and prove less.
 */
export function buildSizeClasses(instance: Instance, maxUnits: number): SizeClasses | null {
  const { targets, hostRam, hostCpu, vmRam, vmCpu, home, movable, evacuees, weight } = instance
  if (evacuees.some((vm) => weight[vm]! > 1)) return null
  const takesPart = movable.map((may) => may)
  for (const vm of evacuees) takesPart[vm] = true
  const sizes = takesPart.flatMap((part, vm) => (part ? [vm] : []))
  const ramUnit = chooseUnit(
    sizes.map((vm) => vmRam[vm]!),
    Math.max(...hostRam.slice(0, targets)),
    maxUnits,
  )
  const cpuUnit = chooseUnit(
    sizes.map((vm) => vmCpu[vm]!),
    Math.max(...hostCpu.slice(0, targets)),
    maxUnits,
  )
  const byKey = new Map<string, number>()
  const classes: SizeClass[] = []
  const classOf = new Int32Array(home.length).fill(-1)
  for (const vm of sizes) {
    const key = `${vmRam[vm]}/${vmCpu[vm]}`
    let sizeClass = byKey.get(key)
    if (sizeClass === undefined) {
      const [ram, cpu] = [vmRam[vm]! / ramUnit, vmCpu[vm]! / cpuUnit]
      sizeClass =
        classes.push({
          ram: Math.floor(ram),
          cpu: Math.floor(cpu),
          ramUp: Math.ceil(ram),
          cpuUp: Math.ceil(cpu),
          count: 0,
          key,
        }) - 1
      byKey.set(key, sizeClass)
    }
    classes[sizeClass]!.count += 1
    classOf[vm] = sizeClass
  }
  const has = Array.from({ length: targets }, () => new Int32Array(classes.length))
  const freeRam = hostRam.slice(0, targets)
  const freeCpu = hostCpu.slice(0, targets)
  const isEvacuee = new Set(evacuees)
  for (const [vm, host] of home.entries()) {
    if (host < 0 || host >= targets) continue
    freeRam[host]! -= vmRam[vm]!
    freeCpu[host]! -= vmCpu[vm]!
    if (classOf[vm]! >= 0 && !isEvacuee.has(vm)) has[host]![classOf[vm]!]! += 1
  }
  if (freeRam.some((ram) => ram < 0) || freeCpu.some((cpu) => cpu < 0)) return null
  const room = freeRam.map((ram, host) => ({
    ram: Math.ceil(ram / ramUnit),
    cpu: Math.ceil(freeCpu[host]! / cpuUnit),
  }))
  return { classes, classOf, has, room }
}

/**
 * Chooses the largest unit that divides every size, or a coarser unit with which a table stays
 * small enough.
 */
function chooseUnit(sizes: number[], capacity: number, maxUnits: number): number {
  const common = sizes.reduce((a, b) => gcd(a, b), 0) || 1
  return Math.max(common, Math.ceil(capacity / maxUnits))
}

export function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}

/** Describes why not all VMs can have a place, if sums prove it. Otherwise null. */
export function findShortage(problem: PlacementProblem, situation: PlacementModel): string | null {
  const { targets, evacuees } = situation
  if (evacuees.length === 0) return null
  if (targets.length === 0) return 'no live host is left to take a VM'
  return (
    findOversizedGroup(problem, situation) ??
    findTotalShortage(problem, situation) ??
    findCrowdedGroup(problem, situation)
  )
}

function findOversizedGroup(problem: PlacementProblem, { targets, evacuees }: PlacementModel): string | null {
  for (const unit of evacuees) {
    const open = targets.filter(unit.mayGoTo)
    if (open.length === 0)
      return `${describeGroup(unit)} may run on no live host: its pins, region or group exclude all`
    const rooms = open.map((host) => usableCapacity(problem, host))
    if (rooms.some(({ ramMib, cpuMc }) => ramMib >= unit.ramMib && cpuMc >= unit.cpuMc)) continue
    const [ramMib, cpuMc] = [
      Math.max(...rooms.map((room) => room.ramMib)),
      Math.max(...rooms.map((room) => room.cpuMc)),
    ]
    const needs = `${describeGroup(unit)} needs ${unit.ramMib} MiB and ${unit.cpuMc} mCPU`
    return `${needs}; no live host is that large, even empty (at most ${ramMib} MiB and ${cpuMc} mCPU)`
  }
  return null
}

function findTotalShortage(
  problem: PlacementProblem,
  { targets, evacuees, movable, fixed }: PlacementModel,
): string | null {
  for (const [size, word, unit] of [
    ['ramMib', 'RAM', 'MiB'],
    ['cpuMc', 'CPU', 'mCPU'],
  ] as const) {
    const used = new Map<string, number>()
    for (const { host, ...own } of [...movable, ...fixed]) {
      if (host !== null) used.set(host, (used.get(host) ?? 0) + own[size])
    }
    // Counts no capacity for a host over its capacity, and takes none from other hosts for it.
    const free = targets.reduce(
      (sum, host) => sum + Math.max(0, usableCapacity(problem, host)[size] - (used.get(host.name) ?? 0)),
      0,
    )
    const needed = evacuees.reduce((sum, each) => sum + each[size], 0)
    if (needed > free) return `${word} is short by ${needed - free} ${unit} in total`
  }
  return null
}

function findCrowdedGroup(
  problem: PlacementProblem,
  { targets, evacuees, movable, fixed, domainOf }: PlacementModel,
): string | null {
  const domains = new Set(targets.map(({ name }) => domainOf.get(name)))
  const running = [...movable, ...fixed].flatMap(({ vms }) => vms)
  const evacueeVms = evacuees.flatMap(({ vms }) => vms)
  for (const group of new Set(evacueeVms.map(({ haGroup }) => haGroup))) {
    if (group === null) continue
    const here = running.filter(({ haGroup }) => haGroup === group)
    const taken = new Set(here.map(({ host }) => domainOf.get(host ?? '')))
    const members = evacueeVms.filter(({ haGroup }) => haGroup === group).length + taken.size
    const available = new Set([...domains, ...taken]).size
    if (members <= available) continue
    const kind = problem.useRackConstraints ? 'live rack' : 'live host'
    const there = `there ${available === 1 ? 'is' : 'are'} ${formatCount(available, kind)}`
    return `HA group ${group} has ${members} members to keep apart and ${there}`
  }
  return null
}
