import type { PlacementProblem } from '../../domain/placement.ts'
import { type Situation, type Unit, usable } from './situation.ts'

/**
 * A problem in numbers, for what reads it a million times a second and for processes that know no names. A number stands for a
 * VM, or for VMs that go as one. Hosts 0…targets-1 take VMs; those behind them only have some to give. -1 stands for none.
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
  wanted: number[]
  /** Others that may move to make room. */
  movable: boolean[]
}

/** What the numbers are called. */
export type Names = { hosts: string[]; units: Unit[]; groups: string[] }

export function instanceOf(problem: PlacementProblem, situation: Situation): { instance: Instance; names: Names } {
  const { targets, others, wanted, movable, fixed, domainOf } = situation
  const hosts = [...targets, ...others]
  const units = [...wanted, ...movable, ...fixed]
  const hostIndex = indexOf(hosts.map(({ name }) => name))
  const domainIndex = indexOf(hosts.map(({ name }) => domainOf.get(name) as string))
  const haGroups = units.map(({ vms }) => vms.flatMap(({ haGroup }) => haGroup ?? []))
  const groupIndex = indexOf(haGroups.flat())
  const ruleIndex = indexOf(units.map(({ rule }) => rule))
  const firstOf = new Map(units.map((unit) => [unit.rule, unit]).reverse() as [string, Unit][])
  const room = hosts.map((host) => usable(problem, host))
  return {
    instance: {
      targets: targets.length,
      hostRam: room.map(({ ramMib }) => ramMib),
      hostCpu: room.map(({ cpuMc }) => cpuMc),
      domain: hosts.map(({ name }) => domainIndex.get(domainOf.get(name) as string) as number),
      domains: domainIndex.size,
      vmRam: units.map(({ ramMib }) => ramMib),
      vmCpu: units.map(({ cpuMc }) => cpuMc),
      weight: units.map(({ vms }) => vms.length),
      priority: units.map(({ priority }) => priority),
      priorities: units.map(({ vms }) => vms.map(({ priority }) => priority)),
      groupsOf: haGroups.map((names) => names.map((name) => groupIndex.get(name) as number)),
      groups: groupIndex.size,
      home: units.map(({ host }) => (host === null ? -1 : (hostIndex.get(host) ?? -1))),
      rule: units.map(({ rule }) => ruleIndex.get(rule) as number),
      allows: [...ruleIndex.keys()].map((rule) => targets.map((host) => (firstOf.get(rule) as Unit).mayGoTo(host))),
      wanted: wanted.map((_, index) => index),
      movable: units.map((_, index) => index >= wanted.length && index < wanted.length + movable.length),
    },
    names: { hosts: hosts.map(({ name }) => name), units, groups: [...groupIndex.keys()] },
  }
}

function indexOf(keys: string[]): Map<string, number> {
  const index = new Map<string, number>()
  for (const key of keys) if (!index.has(key)) index.set(key, index.size)
  return index
}
