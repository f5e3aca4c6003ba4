import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'

/** `host('a', 8)`: a live host with 8 GiB and as many CPUs. */
export function host(name: string, gib: number, more: Partial<PlacementHost> = {}): PlacementHost {
  return { name, ramMib: gib * 1_024, cpuMc: gib * 1_000, rack: null, region: null, state: 'live', ...more }
}

/** `vm('v', 2, 'a')`: a VM of 2 GiB that runs on host a. */
export function vm(name: string, gib: number, on: string | null, more: Partial<PlacementVm> = {}): PlacementVm {
  return {
    vm: name,
    ramMib: gib * 1_024,
    cpuMc: gib * 1_000,
    haGroup: null,
    host: on,
    running: on !== null,
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    affinityGroup: null,
    ...more,
  }
}

export function problem(
  hosts: PlacementHost[],
  vms: PlacementVm[],
  more: Partial<PlacementProblem> = {},
): PlacementProblem {
  const hostIds = hosts.filter((one) => one.state === 'dead').map((one) => one.name)
  const limits = { cpuOvercommitPercent: 100, ramReservePercent: 0 }
  return { intent: 'recover', hostIds, vmIds: null, useRackConstraints: false, limits, hosts, vms, ...more }
}

export const dead = { state: 'dead' as const }
export const down = { running: false }
