import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { barsOf, domainOf, type Rules, ruleOf, rulesOf } from '../rules.ts'

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

/** The problem in the solver's terms, in a fixed order, so that the order of an inventory changes no plan. */
export type Situation = {
  /** Hosts that may take a VM. */
  targets: PlacementHost[]
  /** Hosts that are not dead and take none: they are to be emptied, or are in a region out of reach. */
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

/** Reads a valid problem by its rules (`rules.ts`). */
export function situationOf(problem: PlacementProblem): Situation {
  const rules = rulesOf(problem)
  const hosts = [...problem.hosts].sort((a, b) => compare(a.name, b.name))
  const vms = [...problem.vms].sort((a, b) => compare(a.vm, b.vm))
  const alone = vms.filter(({ vm, affinityGroup }) => rules.stranded.has(vm) && affinityGroup === null)
  const wanted = [...alone.map((vm) => [vm]), ...rules.parties].map((members) => unitOf(rules, members))
  wanted.sort((a, b) => b.priority - a.priority || compare(nameOf(a), nameOf(b)))
  const others = vms.filter(({ vm }) => rules.place.has(vm) && !rules.stranded.has(vm))
  return {
    targets: hosts.filter(({ name }) => rules.targets.has(name)),
    others: hosts.filter(({ name, state }) => state !== 'dead' && !rules.targets.has(name)),
    wanted,
    movable: others.filter(({ vm }) => rules.movable.has(vm)).map((vm) => unitOf(rules, [vm])),
    fixed: others.filter(({ vm }) => !rules.movable.has(vm)).map((vm) => unitOf(rules, [vm])),
    domainOf: new Map(hosts.map((host) => [host.name, domainOf(problem, host)])),
  }
}

function unitOf(rules: Rules, members: PlacementVm[]): Unit {
  return {
    vms: members,
    ramMib: members.reduce((sum, { ramMib }) => sum + ramMib, 0),
    cpuMc: members.reduce((sum, { cpuMc }) => sum + cpuMc, 0),
    priority: Math.max(...members.map(({ priority }) => priority)),
    host: rules.place.get((members[0] as PlacementVm).vm) ?? null,
    mayGoTo: (host) => members.every((vm) => barsOf(rules, vm, host).length === 0),
    rule: JSON.stringify(members.map((vm) => ruleOf(rules, vm))),
  }
}

/** `vm-1 and vm-2`. */
export function nameOf({ vms }: Pick<Unit, 'vms'>): string {
  return vms.map(({ vm }) => vm).join(' and ')
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
