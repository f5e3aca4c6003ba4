import type { PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { random } from '../../placement/cluster/budget.ts'

/**
 * A tiny cluster by seed with whatever an inventory may hold: hosts without a region or a rack, hosts that are draining unasked, VMs that
 * were never placed, states that break a rule already, priorities, pins, affinity, requests for some VMs only.
 */
export function odd(seed: number): PlacementProblem {
  const next = random(seed * 31 + 7)
  const upTo = (most: number) => Math.floor(next() * (most + 1))
  const pick = <T>(...all: T[]): T => all[upTo(all.length - 1)] as T
  const intent = pick<PlacementProblem['intent']>('recover', 'recover', 'drain')
  const hasRegions = next() < 0.5
  const isSound = next() < 0.7
  const hosts = Array.from({ length: 3 + upTo(1) }, (_, index) => ({
    name: `h${index}`,
    ramMib: (3 + upTo(5)) * 1_024,
    cpuMc: 16_000,
    rack: pick(null, 'r1', 'r2'),
    region: hasRegions ? pick(null, 'osl', 'ams') : null,
    state:
      index === 0
        ? intent === 'recover'
          ? 'dead'
          : pick('draining', 'live', 'dead')
        : pick('live', 'live', 'live', 'live', 'live', 'draining'),
  })) as PlacementProblem['hosts']
  const used = new Map<string, number>()
  const vms: PlacementVm[] = []
  for (let index = 0; index < 3 + upTo(3); index += 1) {
    const isPlaced = next() < 0.93
    const host = pick(hosts[0]!, ...hosts)
    const ramMib = (1 + upTo(4)) * 1_024
    const vm: PlacementVm = {
      vm: `v${index}`,
      ramMib,
      cpuMc: 1_000,
      host: isPlaced ? host.name : null,
      running: isPlaced && host.state !== 'dead' && next() < 0.95,
      haGroup: pick(null, null, 'g', 'k'),
      priority: pick(0, 0, 5, 9),
      pinnedTo: next() < 0.05 ? [pick(...hosts).name] : [],
      forbiddenHosts: next() < 0.1 ? [pick(...hosts).name] : [],
      affinityGroup: null,
    }
    if (vm.haGroup === null && next() < 0.3) vm.affinityGroup = pick('app', 'web')
    const after = (used.get(host.name) ?? 0) + ramMib
    if (vm.running && isSound && (after > host.ramMib || vm.haGroup !== null)) continue
    if (vm.running) used.set(host.name, after)
    vms.push(vm)
  }
  const vmIds = next() < 0.2 ? vms.filter(() => next() < 0.7).map(({ vm }) => vm) : null
  const limits = { cpuOvercommitPercent: 100, ramReservePercent: 0 }
  return { intent, hostIds: ['h0'], vmIds, useRackConstraints: next() < 0.5, limits, hosts, vms }
}
