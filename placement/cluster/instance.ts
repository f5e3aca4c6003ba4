import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { usableCapacity } from '../../domain/usable-capacity.ts'
import { failureDomainOf, listRestrictions, type PlacementRules, readRules, toRuleKey } from '../rules.ts'

/** A VM, or VMs that are kept together and go as one. */
type PlacementGroup = {
  vms: PlacementVm[]
  ramMib: number
  cpuMc: number
  priority: number
  /** Where it runs now; null when it does not. */
  host: string | null
  /** Every rule about hosts in one: which of the targets may take it. */
  mayGoTo: (host: PlacementHost) => boolean
  /** The same for all groups with the same rules. */
  rule: string
}

/** The problem in the solver's terms, in a fixed order: an inventory's order changes no plan. */
export type PlacementModel = {
  /** Hosts that may take a VM. */
  targets: PlacementHost[]
  /** Live hosts that take none: they are to be emptied, or in a region out of reach. */
  others: PlacementHost[]
  /** Must get a place: their host is dead, or is to be emptied. The most important first. */
  evacuees: PlacementGroup[]
  /** Running, and may be moved to make room. */
  movable: PlacementGroup[]
  /** Running, and nothing moves them. */
  fixed: PlacementGroup[]
  /** Failure domain of a host: itself, or its rack. */
  domainOf: Map<string, string>
}

/** Reads a valid problem by its rules (`rules.ts`). */
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

/** `vm-1 and vm-2`. */
export function describeGroup({ vms }: Pick<PlacementGroup, 'vms'>): string {
  return vms.map(({ vm }) => vm).join(' and ')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * A problem in numbers, for what reads it a million times a second and processes without names. A
 * number is a VM, or VMs that go as one. Hosts 0…targets-1 take VMs; later ones only give. -1:
 * none.
 */
export type Instance = {
  targets: number
  hostRam: number[]
  hostCpu: number[]
  /** Failure domain of a host: itself, or its rack. */
  domain: number[]
  domains: number
  vmRam: number[]
  vmCpu: number[]
  /** VMs that go as one count as so many migrations. */
  weight: number[]
  priority: number[]
  /** The priority of each VM in it: those that go as one may matter differently. */
  priorities: number[][]
  /** HA groups that it is a member of. */
  groupsOf: number[][]
  groups: number
  /** Where it runs now. */
  home: number[]
  /** Which row of `allows` is for it. */
  rule: number[]
  /** By rule and target: may it go there, room aside? */
  allows: boolean[][]
  /** What must get a place, or leave the one it has, most important first. */
  evacuees: number[]
  /** Others that may move to make room. */
  movable: boolean[]
}

/** What the numbers are called. */
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

/** VMs that run and may be moved, by number. */
export function listMovable({ movable }: Instance): number[] {
  return movable.flatMap((may, vm) => (may ? [vm] : []))
}

/** Hosts that take VMs, by number. */
export function listTargets({ targets }: Instance): number[] {
  return Array.from({ length: targets }, (_, host) => host)
}
