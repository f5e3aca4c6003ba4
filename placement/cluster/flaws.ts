import type { Instance } from './instance.ts'
import { type Room, roomOf } from './room.ts'

/** VMs that are where their rules do not let them be. */
export function misplacedIn({ home, rule, allows, targets }: Instance): number[] {
  return home.flatMap((host, vm) => (host >= 0 && host < targets && !allows[rule[vm]!]![host] ? [vm] : []))
}

/** VMs that stand against a rule: on a host that is too full, beside another of their group, or where they must not be. */
export function standAgainstRules(
  { targets, home, rule, allows }: Instance,
  { at, freeRam, freeCpu, on, rival }: Room,
): number[] {
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
 * So many have to move at least: from each host as many as it takes at best to free what is too much, of each group all but one
 * in a domain, and VMs that are where they must not be. One move may fix several flaws, so the largest of the three counts.
 */
export function fewestToMend(instance: Instance): number {
  return Math.max(crowded(instance), together(instance), misplacedIn(instance).length)
}

function crowded(instance: Instance): number {
  const { targets, vmRam, vmCpu } = instance
  const { freeRam, freeCpu, on } = roomOf(instance)
  let sum = 0
  for (let host = 0; host < targets; host += 1) {
    const ram = largestToCover(
      on[host]!.map((vm) => vmRam[vm]!),
      -freeRam[host]!,
    )
    const cpu = largestToCover(
      on[host]!.map((vm) => vmCpu[vm]!),
      -freeCpu[host]!,
    )
    sum += Math.max(ram, cpu)
  }
  return sum
}

function largestToCover(sizes: number[], excess: number): number {
  let [count, left] = [0, excess]
  for (const size of sizes.sort((a, b) => b - a)) {
    if (left <= 0) break
    left -= size
    count += 1
  }
  return count
}

function together({ home, groupsOf, domain }: Instance): number {
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
