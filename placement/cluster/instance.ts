import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { usableCapacity } from '../../domain/usable-capacity.ts'
import { failureDomainOf, listRestrictions, type PlacementRules, readRules, toRuleKey } from '../rules.ts'

/** A VM, or several VMs that are kept together and move as one. */
type PlacementGroup = {
  vms: PlacementVm[]
  ramMib: number
  cpuMc: number
  priority: number
  /** The present host. Null if the VM does not run. */
  host: string | null
  /** Whether a host may take the VM, by all rules about hosts. */
  mayGoTo: (host: PlacementHost) => boolean
  /** A key that is equal for all VMs with equal rules. */
  rule: string
}

/**
 * The problem in the solver's terms. The order is fixed, so that the order of an inventory changes
 * no plan.
 */
export type PlacementModel = {
  /** Hosts that may take a VM. */
  targets: PlacementHost[]
  /** Live hosts that take no VM, because they have to be emptied or are in another region. */
  others: PlacementHost[]
  /**
   * VMs that must get a place, because their host is dead or has to be emptied. The most important
   * VMs come first.
   */
  evacuees: PlacementGroup[]
  /** Running VMs that may be moved to make room. */
  movable: PlacementGroup[]
  /** Running VMs that never move. */
  fixed: PlacementGroup[]
  /** Failure domain of each host: the host itself, or its rack. */
  domainOf: Map<string, string>
}

/** Reads a valid problem with the rules in `rules.ts`. */
export function buildModel(problem: PlacementProblem): PlacementModel {
  const rules = readRules(problem)
  const hosts = [...problem.hosts].sort((a, b) => compare(a.name, b.name))
  const vms = [...problem.vms].sort((a, b) => compare(a.vm, b.vm))
  const alone = vms.filter(({ vm, affinityGroup }) => rules.stranded.has(vm) && affinityGroup === null)
  const evacuees = [...alone.map((vm) => [vm]), ...rules.coLocated].map((members) => toPlacementGroup(rules, members))
  evacuees.sort((a, b) => b.priority - a.priority || compare(describeGroup(a), describeGroup(b)))
  const others = vms.filter(({ vm }) => rules.place.has(vm) && !rules.stranded.has(vm))
  return {
    targets: hosts.filter(({ name }) => rules.targets.has(name)),
    others: hosts.filter(({ name, state }) => state !== 'dead' && !rules.targets.has(name)),
    evacuees,
    movable: others.filter(({ vm }) => rules.movable.has(vm)).map((vm) => toPlacementGroup(rules, [vm])),
    fixed: others.filter(({ vm }) => !rules.movable.has(vm)).map((vm) => toPlacementGroup(rules, [vm])),
    domainOf: new Map(hosts.map((host) => [host.name, failureDomainOf(problem, host)])),
  }
}

function toPlacementGroup(rules: PlacementRules, members: PlacementVm[]): PlacementGroup {
  return {
    vms: members,
    ramMib: members.reduce((sum, { ramMib }) => sum + ramMib, 0),
    cpuMc: members.reduce((sum, { cpuMc }) => sum + cpuMc, 0),
    priority: Math.max(...members.map(({ priority }) => priority)),
    host: rules.place.get((members[0] as PlacementVm).vm) ?? null,
    mayGoTo: (host) => members.every((vm) => listRestrictions(rules, vm, host).length === 0),
    rule: JSON.stringify(members.map((vm) => toRuleKey(rules, vm))),
  }
}

/** Formats `vm-1 and vm-2`. */
export function describeGroup({ vms }: Pick<PlacementGroup, 'vms'>): string {
  return vms.map(({ vm }) => vm).join(' and ')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * A problem in numbers, for code that reads it a million times a second, and for processes that
 * know no names. An index denotes one VM, or VMs that move as one. Hosts 0…targets-1 take VMs;
 * hosts with higher numbers only give VMs away. -1 means none.
 */
export type Instance = {
  targets: number
  hostRam: number[]
  hostCpu: number[]
  /** Failure domain of each host: the host itself, or its rack. */
  domain: number[]
  domains: number
  vmRam: number[]
  vmCpu: number[]
  /** Number of VMs in each entry. VMs that move as one count as one migration each. */
  weight: number[]
  priority: number[]
  /** The priorities of the VMs in each entry. VMs that move as one may have several priorities. */
  priorities: number[][]
  /** The HA groups of the VMs in each entry. */
  groupsOf: number[][]
  groups: number
  /** The present host of each entry. -1 if it does not run. */
  home: number[]
  /** The first index of `allows`, for the rule of each entry. */
  rule: number[]
  /** Whether a target may take VMs with this rule, regardless of capacity: by rule and target. */
  allows: boolean[][]
  /** VMs that must get a place, or leave their present host. The most important VMs come first. */
  evacuees: number[]
  /** Whether each entry may be moved to make room. */
  movable: boolean[]
}

/** The names of hosts, placement groups and HA groups, by their numbers in the instance. */
export type Names = { hosts: string[]; placementGroups: PlacementGroup[]; groups: string[] }

export function buildInstance(
  problem: PlacementProblem,
  situation: PlacementModel,
): { instance: Instance; names: Names } {
  const { targets, others, evacuees, movable, fixed, domainOf } = situation
  const hosts = [...targets, ...others]
  const placementGroups = [...evacuees, ...movable, ...fixed]
  const hostIndex = indexKeys(hosts.map(({ name }) => name))
  const domainIndex = indexKeys(hosts.map(({ name }) => domainOf.get(name) as string))
  const haGroups = placementGroups.map(({ vms }) => vms.flatMap(({ haGroup }) => haGroup ?? []))
  const groupIndex = indexKeys(haGroups.flat())
  const ruleIndex = indexKeys(placementGroups.map(({ rule }) => rule))
  const firstOf = new Map(placementGroups.map((unit) => [unit.rule, unit]).reverse() as [string, PlacementGroup][])
  const room = hosts.map((host) => usableCapacity(problem, host))
  return {
    instance: {
      targets: targets.length,
      hostRam: room.map(({ ramMib }) => ramMib),
      hostCpu: room.map(({ cpuMc }) => cpuMc),
      domain: hosts.map(({ name }) => domainIndex.get(domainOf.get(name) as string) as number),
      domains: domainIndex.size,
      vmRam: placementGroups.map(({ ramMib }) => ramMib),
      vmCpu: placementGroups.map(({ cpuMc }) => cpuMc),
      weight: placementGroups.map(({ vms }) => vms.length),
      priority: placementGroups.map(({ priority }) => priority),
      priorities: placementGroups.map(({ vms }) => vms.map(({ priority }) => priority)),
      groupsOf: haGroups.map((names) => names.map((name) => groupIndex.get(name) as number)),
      groups: groupIndex.size,
      home: placementGroups.map(({ host }) => (host === null ? -1 : (hostIndex.get(host) ?? -1))),
      rule: placementGroups.map(({ rule }) => ruleIndex.get(rule) as number),
      allows: [...ruleIndex.keys()].map((rule) =>
        targets.map((host) => (firstOf.get(rule) as PlacementGroup).mayGoTo(host)),
      ),
      evacuees: evacuees.map((_, index) => index),
      movable: placementGroups.map((_, index) => index >= evacuees.length && index < evacuees.length + movable.length),
    },
    names: { hosts: hosts.map(({ name }) => name), placementGroups, groups: [...groupIndex.keys()] },
  }
}

function indexKeys(keys: string[]): Map<string, number> {
  const index = new Map<string, number>()
  for (const key of keys) if (!index.has(key)) index.set(key, index.size)
  return index
}

/** Lists running VMs that may be moved, by number. */
export function listMovable({ movable }: Instance): number[] {
  return movable.flatMap((may, vm) => (may ? [vm] : []))
}

/** Lists hosts that take VMs, by number. */
export function listTargets({ targets }: Instance): number[] {
  return Array.from({ length: targets }, (_, host) => host)
}
