import type { Loss } from '../../domain/placement.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState } from '../cluster/size-classes.ts'

/** Hosts that are short of room together, whatever moves, and by how much. */
type RoomShortage = NonNullable<Loss['lacks']> & { hosts: number[] }

/** Sets of hosts are compared with each other: more than this takes longer than it is worth. */
const maxLooks = 400_000

/**
 * A sum that shows there is no plan for all: evacuees confined to some hosts need more than those
 * have free and can give by letting others go. For all hosts and each set that a rule names. Null
 * where no sum shows it.
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
      // A host that is too full already lends nothing.
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
