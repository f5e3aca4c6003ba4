import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'

/** A VM, or VMs that are kept together and go as one. */
export type Unit = {
  vms: PlacementVm[]
  ramMib: number
  cpuMc: number
  priority: number
  /** Where it runs now; null when it does not. */
  host: string | null
  /** Every rule about hosts in one: which of the targets may take it. */
  mayGoTo: (host: PlacementHost) => boolean
  /** The same for all units with the same rules. */
  rule: string
}

/** The problem in the solver's terms, in an order of its own, so that the order of an inventory changes no plan. */
export type Situation = {
  /** Hosts that may take a VM. */
  targets: PlacementHost[]
  /** Hosts that are not dead and take none: they are to be emptied, or stand in another region. */
  others: PlacementHost[]
  /** Must get a place: their host is dead, or is to be emptied. The most important first. */
  wanted: Unit[]
  /** Running, and may be moved to make room. */
  movable: Unit[]
  /** Running, and nothing moves them. */
  fixed: Unit[]
  /** Failure domain of a host: itself, or its rack. */
  domainOf: Map<string, string>
}

/** Reads a valid problem. */
export function situationOf(problem: PlacementProblem): Situation {
  const hosts = [...problem.hosts].sort((a, b) => compare(a.name, b.name))
  const vms = [...problem.vms].sort((a, b) => compare(a.vm, b.vm))
  const hostOf = new Map(hosts.map((host) => [host.name, host]))
  const named = new Set(problem.hostIds)
  const mayMove = problem.vmIds === null ? null : new Set(problem.vmIds)
  const isRebalance = problem.intent === 'rebalance'
  const isUp = (vm: PlacementVm) => vm.running && vm.host !== null && hostOf.get(vm.host)?.state !== 'dead'
  const mayTouch = (vm: PlacementVm) => mayMove === null || mayMove.has(vm.vm)
  const wantedVms = new Set(isRebalance ? [] : vms.filter((vm) => mayTouch(vm) && isStranded(vm)))

  const regions = new Set([...wantedVms].map((vm) => regionOf(vm)))
  const isNear = ({ region }: PlacementHost) =>
    isRebalance || regions.has(null) || region === null || regions.has(region)
  const targets = hosts.filter(
    (host) => host.state === 'live' && (isRebalance || !named.has(host.name)) && isNear(host),
  )
  const isTarget = new Set(targets.map(({ name }) => name))
  const others = hosts.filter(({ name, state }) => state !== 'dead' && !isTarget.has(name))
  const mates = matesOf(vms.filter((vm) => isUp(vm) && !wantedVms.has(vm)))
  const sought = new Set([...wantedVms].map(({ affinityGroup }) => affinityGroup))

  const wanted: Unit[] = []
  const together = Map.groupBy(wantedVms, (vm) =>
    vm.affinityGroup === null ? `vm ${vm.vm}` : `group ${isUp(vm) ? vm.host : ''} ${vm.affinityGroup}`,
  )
  for (const members of together.values()) wanted.push(unitOf(members))
  wanted.sort((a, b) => b.priority - a.priority)
  const movable: Unit[] = []
  const fixed: Unit[] = []
  for (const vm of vms) {
    if (!isUp(vm) || wantedVms.has(vm)) continue
    const own = vm.affinityGroup === null ? null : mates.get(vm.affinityGroup)
    // VMs that are together, or that others are to come to, stay: making room is no reason to move them all.
    const isSettled = own != null && own.hosts.size === 1 && (own.count > 1 || sought.has(vm.affinityGroup))
    ;(mayTouch(vm) && isTarget.has(vm.host as string) && !isSettled ? movable : fixed).push(unitOf([vm]))
  }
  const domainOf = new Map(
    hosts.map(({ name, rack, region }) => [
      name,
      problem.useRackConstraints && rack !== null ? `rack ${region ?? ''} ${rack}` : `host ${name}`,
    ]),
  )
  return { targets, others, wanted, movable, fixed, domainOf }

  function isStranded(vm: PlacementVm): boolean {
    // Never placed: only on request.
    if (vm.host === null) return mayMove !== null
    if (!named.has(vm.host)) return false
    return hostOf.get(vm.host)?.state === 'dead' || (problem.intent === 'drain' && vm.running)
  }

  function regionOf({ host }: PlacementVm): string | null {
    return host === null ? null : (hostOf.get(host)?.region ?? null)
  }

  function unitOf(members: PlacementVm[]): Unit {
    const first = members[0] as PlacementVm
    const region = regionOf(first)
    const pins = members.filter(({ pinnedTo }) => pinnedTo.length > 0).map(({ pinnedTo }) => new Set(pinnedTo))
    const forbidden = new Set(members.flatMap(({ forbiddenHosts }) => forbiddenHosts))
    const near = first.affinityGroup === null ? undefined : mates.get(first.affinityGroup)
    const beside = near && !(near.count === 1 && near.hosts.has(first.host ?? '') && isUp(first)) ? near : undefined
    return {
      vms: members,
      ramMib: members.reduce((sum, { ramMib }) => sum + ramMib, 0),
      cpuMc: members.reduce((sum, { cpuMc }) => sum + cpuMc, 0),
      priority: Math.max(...members.map(({ priority }) => priority)),
      host: isUp(first) ? first.host : null,
      mayGoTo: (host) =>
        (region === null || host.region === null || host.region === region) &&
        pins.every((names) => names.has(host.name)) &&
        !forbidden.has(host.name) &&
        (beside === undefined || beside.best === host.name),
      rule: JSON.stringify([region, members.map(({ pinnedTo }) => pinnedTo), [...forbidden], beside?.best ?? null]),
    }
  }
}

type Mates = { hosts: Set<string>; count: number; best: string }

/** Of each affinity group that runs: where, and the host that has most of it. */
function matesOf(running: PlacementVm[]): Map<string, Mates> {
  const groups = Map.groupBy(
    running.filter(({ affinityGroup }) => affinityGroup !== null),
    ({ affinityGroup }) => affinityGroup as string,
  )
  return new Map(
    [...groups].map(([group, members]) => {
      const byHost = Map.groupBy(members, ({ host }) => host as string)
      const [best] = [...byHost].sort(([a, one], [b, two]) => two.length - one.length || compare(a, b))[0] as [
        string,
        unknown,
      ]
      return [group, { hosts: new Set(byHost.keys()), count: members.length, best }]
    }),
  )
}

/** What of a host may be used, in whole MiB and thousandths of a CPU. */
export function usable({ limits }: PlacementProblem, host: PlacementHost): { ramMib: number; cpuMc: number } {
  return {
    ramMib: Math.floor((host.ramMib * (100 - limits.ramReservePercent)) / 100),
    cpuMc: Math.floor((host.cpuMc * limits.cpuOvercommitPercent) / 100),
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
