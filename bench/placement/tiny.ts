import type { PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { random } from '../../placement/cluster/budget.ts'

/**
 * A small cluster that keeps its rules and in which one host has died, by seed: two to four hosts, up to ten VMs of one to six
 * GiB, groups, at times racks, pins, overcommitted CPU. Small enough to try everything.
 */
export function tiny(seed: number): PlacementProblem {
  const next = random(seed)
  const upTo = (most: number) => Math.floor(next() * (most + 1))
  const pick = <T>(...all: T[]): T => all[upTo(all.length - 1)] as T
  const useRackConstraints = next() < 0.3
  const hosts = Array.from({ length: 3 + upTo(1) }, (_, index) => ({
    name: `h${index}`,
    ramMib: (4 + upTo(6)) * 1_024,
    cpuMc: (4 + upTo(6)) * 1_000,
    rack: useRackConstraints ? `r${index % 3}` : null,
    region: null,
    state: index === 0 ? ('dead' as const) : ('live' as const),
  }))
  const overcommit = pick(100, 100, 150)
  const free = hosts.map(({ ramMib, cpuMc }) => ({ ramMib, cpuMc: Math.floor((cpuMc * overcommit) / 100) }))
  const taken = new Set<string>()
  const vms: PlacementVm[] = []
  for (let index = 0; index < 3 + upTo(7); index += 1) {
    const gib = 1 + upTo(5)
    const haGroup = pick(null, null, 'g', 'k')
    const at = upTo(hosts.length - 1)
    const host = hosts[at]!
    const vm: PlacementVm = {
      vm: `v${index}`,
      ramMib: gib * 1_024,
      cpuMc: Math.max(1, gib - 1 + upTo(2)) * 1_000,
      haGroup,
      host: host.name,
      running: at > 0,
      priority: 0,
      pinnedTo: [],
      forbiddenHosts: next() < 0.1 ? ['h1'] : [],
      affinityGroup: null,
    }
    const key = `${haGroup} ${host.rack ?? host.name}`
    const room = free[at]!
    if (room.ramMib < vm.ramMib || room.cpuMc < vm.cpuMc || (haGroup && taken.has(key))) continue
    if (vm.forbiddenHosts.includes(host.name)) continue
    room.ramMib -= vm.ramMib
    room.cpuMc -= vm.cpuMc
    taken.add(key)
    vms.push(vm)
  }
  const limits = { cpuOvercommitPercent: overcommit, ramReservePercent: 0 }
  return { intent: 'recover', hostIds: ['h0'], vmIds: null, useRackConstraints, limits, hosts, vms }
}
