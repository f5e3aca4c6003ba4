import type { PlacementHost, PlacementProblem, PlacementVm } from '../domain/placement.ts'

/** The problem in the solver's terms, in an order of its own, so that the order of an inventory changes no plan. */
export type Situation = {
  problem: PlacementProblem
  /** Hosts that may take a VM. */
  targets: PlacementHost[]
  /** VMs that must get a place: their host is dead, or is to be emptied. */
  stranded: PlacementVm[]
  /** Running VMs that stay where they are unless there is no other way. */
  movable: PlacementVm[]
  /** Running VMs that nothing may move. */
  fixed: PlacementVm[]
  /** Failure domain of a host: itself, or its rack. */
  domainOf: Map<string, string>
}

/** Reads a valid problem. */
export function situationOf(problem: PlacementProblem): Situation {
  const hosts = [...problem.hosts].sort((a, b) => compare(a.name, b.name))
  const vms = [...problem.vms].sort((a, b) => compare(a.vm, b.vm))
  const state = new Map(hosts.map((host) => [host.name, host.state]))
  const named = new Set(problem.hostIds)
  const mayMove = problem.vmIds === null ? null : new Set(problem.vmIds)
  const isTarget = (host: PlacementHost) =>
    host.state === 'live' && (problem.intent === 'rebalance' || !named.has(host.name))
  const targets = hosts.filter(isTarget)
  const targetNames = new Set(targets.map((host) => host.name))

  const stranded: PlacementVm[] = []
  const movable: PlacementVm[] = []
  const fixed: PlacementVm[] = []
  for (const vm of vms) {
    const isNamed = mayMove === null || mayMove.has(vm.vm)
    if (isNamed && isStranded(vm)) stranded.push(vm)
    else if (isUp(vm)) (isNamed && targetNames.has(vm.host ?? '') ? movable : fixed).push(vm)
  }
  const domainOf = new Map(
    hosts.map((host) => [
      host.name,
      problem.useRackConstraints && host.rack !== null ? `rack ${host.rack}` : `host ${host.name}`,
    ]),
  )
  return { problem, targets, stranded, movable, fixed, domainOf }

  function isUp(vm: PlacementVm): boolean {
    return vm.running && vm.host !== null && state.get(vm.host) !== 'dead'
  }

  function isStranded(vm: PlacementVm): boolean {
    if (problem.intent === 'rebalance') return false
    // Never placed: only on request.
    if (vm.host === null) return mayMove !== null
    if (!named.has(vm.host)) return false
    return state.get(vm.host) === 'dead' || (problem.intent === 'drain' && vm.running)
  }
}

/** Does starting or moving this VM mean a live migration? */
export function isRunning(situation: Situation, vm: PlacementVm): boolean {
  const host = situation.problem.hosts.find((one) => one.name === vm.host)
  return vm.running && host !== undefined && host.state !== 'dead'
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
