import { formatCount, formatList } from '../domain/format.ts'
import type { Obstacle, PlacementHost, PlacementProblem, PlacementVm, PlanStep } from '../domain/placement.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import { describeGroup, type Names } from './cluster/instance.ts'
import { failureDomainOf } from './rules.ts'
import type { Infeasibility, InstanceLimit, Repair } from './search/infeasibility.ts'
import type { PlanWithoutRacks } from './unplaced.ts'

/**
 * Checks that the rules hold for any steps that run at the same time. Supplements the replay in
 * order, and does not use the code that computed `needs`. Returns the first step that could find
 * too little capacity or a member of its group, or null.
 *
 * Capacity: take the steps that arrive at a host in order. Each step must have waited for every
 * departure for which an earlier step waited. Its VM must fit beside all VMs that were there or
 * arrived before, minus those departures. In any set of steps that have begun, the last one to
 * arrive has then waited for all the capacity that the set uses.
 */
export function findBadInterleaving(
  problem: PlacementProblem,
  steps: readonly PlanStep[],
): { step: number; reason: string } | null {
  const before = ancestors(steps)
  if (!before) return { step: 0, reason: 'a step needs a step that does not come before it' }
  const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
  const dead = new Set(problem.hosts.filter(({ state }) => state === 'dead').map(({ name }) => name))
  const runs = (vm: PlacementVm) => vm.running && vm.host !== null && !dead.has(vm.host)
  for (const host of problem.hosts) {
    let { ramMib: ram, cpuMc: cpu } = usableCapacity(problem, host)
    for (const vm of problem.vms) {
      if (!runs(vm) || vm.host !== host.name) continue
      ram -= vm.ramMib
      cpu -= vm.cpuMc
    }
    const given = new Set<number>()
    for (const step of steps) {
      if (step.to !== host.name) continue
      const waited = before.get(step.step) as Set<number>
      for (const departure of given) {
        if (!waited.has(departure))
          return { step: step.step, reason: `the step does not wait for step ${departure}, whose room it may need` }
      }
      for (const other of steps) {
        if (other.from !== host.name || other.action !== 'migrate' || !waited.has(other.step) || given.has(other.step))
          continue
        given.add(other.step)
        ram += vms.get(other.vm)!.ramMib
        cpu += vms.get(other.vm)!.cpuMc
      }
      const vm = vms.get(step.vm)!
      ram -= vm.ramMib
      cpu -= vm.cpuMc
      if (ram < 0) return { step: step.step, reason: `${host.name} may be short by ${-ram} MiB` }
      if (cpu < 0) return { step: step.step, reason: `${host.name} may be short by ${-cpu} mCPU` }
    }
  }
  return findBadMeeting(problem, steps, before, runs)
}

/** Finds two VMs of a group that may meet in a domain: one may arrive before the other has left. */
function findBadMeeting(
  problem: PlacementProblem,
  steps: readonly PlanStep[],
  before: Map<number, Set<number>>,
  runs: (vm: PlacementVm) => boolean,
): { step: number; reason: string } | null {
  const hosts = new Map(problem.hosts.map((host) => [host.name, host]))
  const domain = (name: string) => failureDomainOf(problem, hosts.get(name) as PlacementHost)
  /** The intervals in which each VM is in a place, by step numbers. Null for an open end. */
  const stays = new Map<string, { where: string; from: number | null; until: number | null }[]>()
  for (const vm of problem.vms) {
    if (vm.haGroup === null) continue
    const own = steps.filter((step) => step.vm === vm.vm)
    const places = runs(vm)
      ? [{ where: domain(vm.host as string), from: null as number | null, until: null as number | null }]
      : []
    for (const step of own) {
      const last = places.at(-1)
      if (last) last.until = step.step
      places.push({ where: domain(step.to), from: step.step, until: null })
    }
    stays.set(vm.vm, places)
  }
  const groups = Map.groupBy(
    problem.vms.filter(({ haGroup }) => haGroup !== null),
    ({ haGroup }) => haGroup as string,
  )
  for (const members of groups.values()) {
    for (const one of members) {
      for (const other of members) {
        if (one === other) continue
        for (const here of stays.get(one.vm) ?? []) {
          if (here.from === null) continue
          for (const there of stays.get(other.vm) ?? []) {
            if (there.where !== here.where) continue
            // Accepts two VMs in one place if one has left before the other begins to arrive.
            const otherLeft = there.until !== null && before.get(here.from)?.has(there.until)
            const oneLeft = here.until !== null && there.from !== null && before.get(there.from)?.has(here.until)
            if (!otherLeft && !oneLeft)
              return { step: here.from, reason: `the VM may run beside ${other.vm} of HA group ${other.haGroup}` }
          }
        }
      }
    }
  }
  return null
}

/**
 * Lists for each step all earlier steps that it needs, directly or through other steps. Null if a
 * step needs a step that does not come before it.
 */
function ancestors(steps: readonly PlanStep[]): Map<number, Set<number>> | null {
  const all = new Map<number, Set<number>>()
  for (const { step, needs } of steps) {
    const own = new Set<number>()
    for (const need of needs) {
      const of = all.get(need)
      if (!of) return null
      own.add(need)
      for (const each of of) own.add(each)
    }
    all.set(step, own)
  }
  return all
}

type ObstacleFacts = {
  problem: PlacementProblem
  names: Names
  /** A sentence about a shortage of capacity that sums prove. Null without a proof. */
  shortage: string | null
  found: Infeasibility
  relaxed: PlanWithoutRacks | null
}

/**
 * Describes, for the person who decides, why not all VMs can be placed: the rules that contradict
 * each other, and possible repairs.
 */
export function describeObstacle({ problem, names, shortage, found, relaxed }: ObstacleFacts): Obstacle {
  const { isContradictory, core, repairs } = found
  const named = core.map((limit) => ({ kind: kindOf[limit.kind], name: nameOfLimit(limit, names) }))
  const ways = repairs.map((repair) => toRepair(repair, names))
  const told = [
    shortage ?? describeCore(problem, named, isContradictory),
    relaxed && describeWithoutRacks(problem, relaxed),
    describeRepairs(ways),
  ]
  const withoutRacks = relaxed && {
    kind: 'drop_racks' as const,
    name: 'use_rack_constraints',
    amount: null,
    migrations: relaxed.migrations,
    text: describeWithoutRacks(problem, relaxed),
  }
  return {
    text: told.filter(Boolean).join('. '),
    core: named,
    repairs: [...(withoutRacks ? [withoutRacks] : []), ...ways],
  }
}

/**
 * Formats `With use_rack_constraints: false vm-101 (priority 100) starts, without a migration;
 * vm-103 stays down`.
 */
export function describeWithoutRacks(
  { vms }: PlacementProblem,
  { starts, down, migrations }: PlanWithoutRacks,
): string {
  const priority = new Map(vms.map((vm) => [vm.vm, vm.priority]))
  const named = (list: string[]) =>
    formatList(
      [...list]
        .sort((a, b) => (priority.get(b) ?? 0) - (priority.get(a) ?? 0))
        .map((vm) => `${vm} (priority ${priority.get(vm)})`),
    )
  const rest = down.length === 0 ? 'all have a place' : `${named(down)} would stay down`
  return `With use_rack_constraints: false ${named(starts)} would get a place, with ${formatCount(migrations, 'migration')}; ${rest}`
}

const kindOf = { ram: 'ram', cpu: 'cpu', group: 'ha_group', rule: 'pins', vm: 'vm' } as const

function nameOfLimit({ kind, index }: InstanceLimit, { hosts, placementGroups, groups }: Names): string {
  if (kind === 'ram' || kind === 'cpu') return hosts[index] as string
  if (kind === 'group') return groups[index] as string
  if (kind === 'vm') return describeGroup(placementGroups[index] as Names['placementGroups'][number])
  const rules = [...new Set(placementGroups.map(({ rule }) => rule))]
  return placementGroups
    .filter(({ rule }) => rule === rules[index])
    .slice(0, 5)
    .map(describeGroup)
    .join(', ')
}

function describeCore(problem: PlacementProblem, core: Obstacle['core'], isContradictory: boolean): string {
  if (core.length === 0 && isContradictory) return 'no placement keeps every rule, even if every VM may move'
  if (core.length === 0) return 'no order of live migrations gives every VM a place, even if every VM may move'
  const of = (kind: Obstacle['core'][number]['kind']) =>
    core.filter((each) => each.kind === kind).map(({ name }) => name)
  const told = [
    list(of('vm'), 'the VMs'),
    list(of('ram'), 'the RAM of'),
    list(of('cpu'), 'the CPU of'),
    list(of('ha_group'), problem.useRackConstraints ? 'racks apart for HA group' : 'hosts apart for HA group'),
    list(of('pins'), 'the hosts allowed to'),
  ]
  return `these rules cannot all be kept: ${told.filter(Boolean).join('; ')}`
}

function list(names: string[], before: string): string {
  if (names.length === 0) return ''
  const more = names.length > 8 ? ` and ${names.length - 8} more` : ''
  return `${before} ${names.slice(0, 8).join(', ')}${more}`
}

function toRepair({ kind, index, amount, migrations }: Repair, names: Names): Obstacle['repairs'][number] {
  const name = nameOfLimit({ kind, index }, names)
  const then = migrations === 0 ? 'without a migration' : `with ${formatCount(migrations, 'migration')}`
  const words = {
    ram: ['more_ram', `${amount} MiB more on ${name}`],
    cpu: ['more_cpu', `${amount} mCPU more on ${name}`],
    group: ['drop_group', `HA group ${name} not kept apart`],
    rule: ['drop_pins', `${name} allowed on any host`],
    vm: ['leave_down', `${name} left down`],
  } as const
  const [word, text] = words[kind]
  return { kind: word, name, amount, migrations, text: `${text}: the rest fits ${then}` }
}

function describeRepairs(repairs: Obstacle['repairs']): string {
  if (repairs.length === 0) return ''
  const told = repairs.slice(0, 4).map(({ text }) => text)
  return `Each of these changes was tried and is enough by itself: ${told.join('; or ')}`
}
