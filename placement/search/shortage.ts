import type { Loss } from '../../domain/placement.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState } from '../cluster/size-classes.ts'

/** Hosts that together lack capacity, whichever VMs move, and the amount that they lack. */
type RoomShortage = NonNullable<Loss['lacks']> & { hosts: number[] }

/** The most comparisons between sets of hosts. More would take longer than the result is worth. */
const maxLooks = 400_000

/**
 * Finds a sum that proves that no plan places all VMs: evacuees that may go only to some hosts need
 * more capacity than those hosts have free and can free by moving VMs away. Tries all hosts, and
 * each set of hosts that a rule names. Null if no sum proves it.
 */
export function findRoomShortage(instance: Instance): RoomShortage | null {
  const { targets, allows, evacuees, vmRam, vmCpu, rule, home, movable } = instance
  const { freeRam, freeCpu } = buildCapacityState(instance)
  const all = Array.from({ length: targets }, () => true)
  const rules = [...new Set(evacuees.map((vm) => rule[vm]!))]
  const isCheap = rules.length * (allows.length * targets + home.length) <= maxLooks
  const isWithin = (one: readonly boolean[], hosts: readonly boolean[]) => one.every((may, host) => !may || hosts[host])
  for (const hosts of [all, ...(isCheap ? rules.map((each) => allows[each]!) : [])]) {
    const staysWithin = allows.map((one) => isWithin(one, hosts))
    let [ramMib, cpuMc] = [0, 0]
    const count = (vm: number, sign: 1 | -1) => {
      ramMib += sign * vmRam[vm]!
      cpuMc += sign * vmCpu[vm]!
    }
    for (const vm of evacuees) if (staysWithin[rule[vm]!]) count(vm, 1)
    for (const [vm, host] of home.entries()) if (movable[vm] && hosts[host] && !staysWithin[rule[vm]!]) count(vm, -1)
    for (let host = 0; host < targets; host += 1) {
      if (!hosts[host]) continue
      // Counts no free capacity for a host over its capacity.
      ramMib -= Math.max(0, freeRam[host]!)
      cpuMc -= Math.max(0, freeCpu[host]!)
    }
    if (ramMib > 0 || cpuMc > 0) {
      const named = hosts.flatMap((may, host) => (may ? [host] : []))
      return { ramMib: Math.max(0, ramMib), cpuMc: Math.max(0, cpuMc), hosts: named }
    }
  }
  return null
}
