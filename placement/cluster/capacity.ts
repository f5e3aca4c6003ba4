import type { Instance } from './instance.ts'

/** Capacity while a plan is made: what runs where, what is free, and where the members of an HA group are. */
export type CapacityState = {
  instance: Instance
  hostOf: Int32Array
  freeRam: Float64Array
  freeCpu: Float64Array
  /** The VMs on a host, in no order. */
  guests: number[][]
  /** May this VM begin to run here now? Its current place does not count against it in its domain, but keeps its capacity. */
  fits(vm: number, host: number): boolean
  /** Another member of its HA group in that failure domain, which keeps it away; -1: none. */
  groupPeerIn(vm: number, host: number): number
  /** Puts a VM on a host (-1: nowhere), whether it fits or not. */
  place(vm: number, host: number): void
}

/** The capacity state as it is now. */
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

/** VMs that violate a rule: on a host that is over capacity, with a peer of their HA group in one domain, or where they must not be. */
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
 * Work that a search may still do, counted in hosts and VMs looked at: the same on every machine, so that one seed gives one plan. Time
 * only ends what would take too long.
 */
export type Work = { left: number }

let hasCut = false

/** Is this moment over? The caller stops then, so that what is found may depend on how fast this machine is. */
export function isUp(deadlineMs: number): boolean {
  if (performance.now() <= deadlineMs) return false
  hasCut = true
  return true
}

/** Notes that time ran out before something was done. */
export function noteCut(): void {
  hasCut = true
}

/** Has time ended anything since the process began? Each search has its own process (`plan-process.ts`). */
export function wasCut(): boolean {
  return hasCut
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32): a reader of a plan can reproduce it. */
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
