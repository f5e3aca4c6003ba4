import type { Instance } from './instance.ts'

/** What runs where while a plan is made: which room is left, and where the members of a group are. */
export type Room = {
  instance: Instance
  at: Int32Array
  freeRam: Float64Array
  freeCpu: Float64Array
  /** The VMs on a host, in no order. */
  on: number[][]
  /** May this VM begin to run here now? Its own old place does not count against it in its domain, but keeps its room. */
  fits(vm: number, host: number): boolean
  /** Another member of its group in that domain, which keeps it away; -1: nobody does. */
  rival(vm: number, host: number): number
  /** Puts a VM on a host (-1: nowhere), whether it fits or not. */
  put(vm: number, host: number): void
}

/** The room as it is today. */
export function roomOf(instance: Instance): Room {
  const { hostRam, hostCpu, domain, domains, vmRam, vmCpu, groupsOf, groups, home, rule, allows } = instance
  const at = Int32Array.from(home, () => -1)
  const slot = new Int32Array(home.length)
  const freeRam = Float64Array.from(hostRam)
  const freeCpu = Float64Array.from(hostCpu)
  const on: number[][] = hostRam.map(() => [])
  const members: number[][] = Array.from({ length: groups }, () => [])
  const counts = new Uint16Array(groups * domains)
  for (const [vm, own] of groupsOf.entries()) for (const group of own) members[group]!.push(vm)

  const room: Room = { instance, at, freeRam, freeCpu, on, fits, rival, put }
  for (const [vm, host] of home.entries()) put(vm, host)
  return room

  function fits(vm: number, host: number): boolean {
    if (vmRam[vm]! > freeRam[host]! || vmCpu[vm]! > freeCpu[host]! || at[vm] === host) return false
    if (!allows[rule[vm]!]![host]) return false
    const here = domain[host]!
    const self = at[vm]! >= 0 && domain[at[vm]!] === here ? 1 : 0
    for (const group of groupsOf[vm]!) if (counts[group * domains + here]! > self) return false
    return true
  }

  function rival(vm: number, host: number): number {
    const here = domain[host]!
    for (const group of groupsOf[vm]!) {
      const found = members[group]!.find((other) => other !== vm && at[other]! >= 0 && domain[at[other]!] === here)
      if (found !== undefined) return found
    }
    return -1
  }

  function put(vm: number, host: number): void {
    const from = at[vm]!
    if (from >= 0) {
      freeRam[from]! += vmRam[vm]!
      freeCpu[from]! += vmCpu[vm]!
      for (const group of groupsOf[vm]!) counts[group * domains + domain[from]!]! -= 1
      const list = on[from]!
      const last = list.pop() as number
      if (last !== vm) {
        list[slot[vm]!] = last
        slot[last] = slot[vm]!
      }
    }
    at[vm] = host
    if (host < 0) return
    freeRam[host]! -= vmRam[vm]!
    freeCpu[host]! -= vmCpu[vm]!
    for (const group of groupsOf[vm]!) counts[group * domains + domain[host]!]! += 1
    slot[vm] = on[host]!.push(vm) - 1
  }
}
