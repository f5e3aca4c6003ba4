import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'

/**
 * Describes a cluster in numbers, by the bench's own reading of the rules. Uses no code of
 * `placement/`, so that it does not repeat a misreading of the rules there. Supports only the
 * features of the generated clusters: affinity groups that are on one host as a whole, and no
 * `vmIds`.
 */

/** A VM, or VMs that move as one. */
export type GoingUnit = {
  vms: PlacementVm[]
  ram: number
  cpu: number
  stranded: boolean
  /**
   * The number of the unit's present host; -1 if the unit is down, or on a host that takes no VM.
   */
  home: number
  may: number[]
  groups: string[]
  weight: number
  priorities: number[]
}

export type World = {
  hosts: PlacementHost[]
  /** The RAM for movable VMs on each host that takes VMs. */
  ram: number[]
  cpu: number[]
  domain: string[]
  /** VMs that have to start or to leave their host, and VMs that may move, as units. */
  units: GoingUnit[]
  /** Groups, each with a domain in which one of its VMs stays. */
  taken: [group: string, domain: string][]
}

export function readWorld(problem: PlacementProblem): World {
  const named = new Set(problem.hostIds)
  const all = new Map(problem.hosts.map((host) => [host.name, host]))
  const hosts = problem.hosts.filter(({ name, state }) => state === 'live' && !named.has(name))
  const number = new Map(hosts.map(({ name }, index) => [name, index]))
  const ram = hosts.map((host) => roomOf(problem, host).ram)
  const cpu = hosts.map((host) => roomOf(problem, host).cpu)
  const domainOf = (host: PlacementHost) => nameDomain(problem, host)
  const units: GoingUnit[] = []
  const taken: World['taken'] = []
  for (const vms of [...Map.groupBy(problem.vms, ({ vm, affinityGroup }) => affinityGroup ?? `alone ${vm}`).values()]) {
    const first = vms[0] as PlacementVm
    const on = first.host === null ? undefined : all.get(first.host)
    const runs = first.running && on !== undefined && on.state !== 'dead'
    const stranded = on !== undefined && named.has(on.name) && (!runs || problem.intent === 'drain')
    if (!runs && !stranded) continue
    const unit = {
      vms,
      ram: vms.reduce((sum, vm) => sum + vm.ramMib, 0),
      cpu: vms.reduce((sum, vm) => sum + vm.cpuMc, 0),
      stranded,
      home: runs ? (number.get(first.host as string) ?? -1) : -1,
      may: hosts.flatMap((host, index) => (vms.every((vm) => mayRunOn(vm, on, host)) ? [index] : [])),
      groups: vms.flatMap(({ haGroup }) => haGroup ?? []),
      weight: vms.length,
      priorities: vms.map(({ priority }) => priority),
    }
    const stays =
      !stranded &&
      (unit.home < 0 || vms.length > 1 || first.affinityGroup !== null || unit.may.every((host) => host === unit.home))
    if (!stays) units.push(unit)
    else {
      for (const group of unit.groups) taken.push([group, domainOf(on as PlacementHost)])
      if (unit.home >= 0) ram[unit.home]! -= unit.ram
      if (unit.home >= 0) cpu[unit.home]! -= unit.cpu
    }
  }
  return { hosts, ram, cpu, domain: hosts.map(domainOf), units, taken }
}

/** Returns the RAM and CPU that a host has for VMs, in whole MiB and thousandths of a CPU. */
export function roomOf({ limits }: PlacementProblem, host: PlacementHost): { ram: number; cpu: number } {
  const kept = host.ramReserveMib ?? Math.ceil((host.ramMib * limits.ramReservePercent) / 100)
  const cpu = Math.floor(((host.cpuMc - (host.cpuReserveMc ?? 0)) * limits.cpuOvercommitPercent) / 100)
  return { ram: host.ramMib - kept, cpu }
}

/** Returns the name of a failure domain: a rack of a region, or a host. */
export function nameDomain({ useRackConstraints }: PlacementProblem, { name, rack, region }: PlacementHost): string {
  return useRackConstraints && rack !== null ? `rack ${region ?? '-'} ${rack}` : `host ${name}`
}

/** Checks pins, forbidden hosts, and that the VM's disks stay in their region. */
export function mayRunOn(
  { pinnedTo, forbiddenHosts }: PlacementVm,
  from: PlacementHost | undefined,
  to: PlacementHost,
): boolean {
  const isNear = !from || from.region === null || to.region === null || from.region === to.region
  return isNear && !forbiddenHosts.includes(to.name) && (pinnedTo.length === 0 || pinnedTo.includes(to.name))
}
