import type { Obstacle, PlacementProblem } from '../domain/placement.ts'
import { many, names as namesOf } from '../domain/told-plan.ts'
import { describeGroup, type Names } from './cluster/instance.ts'
import type { Infeasibility, Limit, Repair } from './search/infeasibility.ts'
import type { PlanWithoutRacks } from './unplaced.ts'

type ObstacleFacts = {
  problem: PlacementProblem
  names: Names
  /** What a sum shows, in words. */
  shortage: string | null
  found: Infeasibility
  relaxed: PlanWithoutRacks | null
}

/** Why not all can be placed, in words for the person who has to decide: what contradicts what, and what would repair it. */
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

/** `With use_rack_constraints: false vm-101 (priority 100) starts, without a migration; vm-103 stays down`. */
export function describeWithoutRacks(
  { vms }: PlacementProblem,
  { starts, down, migrations }: PlanWithoutRacks,
): string {
  const priority = new Map(vms.map((vm) => [vm.vm, vm.priority]))
  const named = (list: string[]) =>
    namesOf(
      [...list]
        .sort((a, b) => (priority.get(b) ?? 0) - (priority.get(a) ?? 0))
        .map((vm) => `${vm} (priority ${priority.get(vm)})`),
    )
  const rest = down.length === 0 ? 'all have a place' : `${named(down)} would stay down`
  return `With use_rack_constraints: false ${named(starts)} would get a place, with ${many(migrations, 'migration')}; ${rest}`
}

const kindOf = { ram: 'ram', cpu: 'cpu', group: 'ha_group', rule: 'pins', vm: 'vm' } as const

function nameOfLimit({ kind, index }: Limit, { hosts, placementGroups, groups }: Names): string {
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
  if (core.length === 0 && isContradictory) return 'no placement keeps every rule, whatever is moved'
  if (core.length === 0) return 'no order of live migrations leads to a place for all, whatever is moved'
  const of = (kind: Obstacle['core'][number]['kind']) =>
    core.filter((each) => each.kind === kind).map(({ name }) => name)
  const told = [
    list(of('vm'), 'the VMs'),
    list(of('ram'), 'the RAM of'),
    list(of('cpu'), 'the CPU of'),
    list(of('ha_group'), problem.useRackConstraints ? 'racks apart for HA group' : 'hosts apart for HA group'),
    list(of('pins'), 'the hosts allowed to'),
  ]
  return `these cannot all hold: ${told.filter(Boolean).join('; ')}`
}

function list(names: string[], before: string): string {
  if (names.length === 0) return ''
  const more = names.length > 8 ? ` and ${names.length - 8} more` : ''
  return `${before} ${names.slice(0, 8).join(', ')}${more}`
}

function toRepair({ kind, index, amount, migrations }: Repair, names: Names): Obstacle['repairs'][number] {
  const name = nameOfLimit({ kind, index }, names)
  const then = migrations === 0 ? 'without a migration' : `with ${many(migrations, 'migration')}`
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
  return `Tried, and enough: ${told.join('; or ')}`
}
