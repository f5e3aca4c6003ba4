import type { PlacementVm } from '../domain/placement.ts'
import type { LinearModel, Row, Term } from './linear-model.ts'
import type { Situation } from './situation.ts'

/** Where VMs end up: of every stranded VM and of those that were allowed to move. */
export type Assignment = Map<string, string>

export type BuiltModel = {
  /** Fewest migrations, and nothing else: the balance would take its time to be proved. */
  fewest: LinearModel
  /** With at most so many migrations, the lowest highest utilisation. */
  balanced(migrations: number): LinearModel
  /** How many movable VMs these values move. */
  migrationsOf(values: number[]): number
  /** VM and host of each yes-or-no column. */
  columns: [vm: string, host: string][]
}

/**
 * The placement as a program: every stranded VM on exactly one target, every movable one too, within RAM and CPU, no two of
 * an HA group in one domain. Null when a VM has no column at all, which proves that there is no placement.
 *
 * A host or domain that breaks a rule already may keep what it has but takes nothing more; only rebalancing must mend it.
 */
export function buildModel(situation: Situation, movable: PlacementVm[], cuts: Assignment[]): BuiltModel | null {
  const { problem, targets, stranded, domainOf } = situation
  const mustMend = problem.intent === 'rebalance'
  const chosen = [...stranded, ...movable]
  const chosenNames = new Set(chosen.map((vm) => vm.vm))
  const fixed = [...situation.movable, ...situation.fixed].filter((vm) => !chosenNames.has(vm.vm))
  const running = [...fixed, ...movable]

  const overfull = new Set(
    targets
      .filter((host) => {
        const here = running.filter((vm) => vm.host === host.name)
        return sum(here, 'ramMib') > host.ramMib || sum(here, 'cpuMc') > host.cpuMc
      })
      .map((host) => host.name),
  )
  const spot = (vm: PlacementVm) => `${vm.haGroup}\n${domainOf.get(vm.host ?? '')}`
  const present = countBy(running.filter((vm) => vm.haGroup !== null).map(spot))
  const fixedPresent = countBy(fixed.filter((vm) => vm.haGroup !== null).map(spot))

  const columns: [string, string][] = []
  const columnsOfVm = new Map<string, number[]>()
  const columnsOfHost = new Map<string, Term[]>(targets.map((host) => [host.name, []]))
  const columnsOfSpot = new Map<string, number[]>()
  const byName = new Map(chosen.map((vm) => [vm.vm, vm]))
  for (const vm of chosen) {
    const own: number[] = []
    const isAtHome = (name: string) => !stranded.includes(vm) && vm.host === name
    for (const host of targets) {
      const key = vm.haGroup === null ? null : `${vm.haGroup}\n${domainOf.get(host.name)}`
      if (!isAtHome(host.name)) {
        if (vm.ramMib > host.ramMib || vm.cpuMc > host.cpuMc) continue
        if (overfull.has(host.name)) continue
        // A domain with two of the group takes no third; one whose member stays takes no second.
        if (key !== null && ((fixedPresent.get(key) ?? 0) > 0 || (present.get(key) ?? 0) > 1)) continue
      }
      const column = columns.push([vm.vm, host.name]) - 1
      own.push(column)
      columnsOfHost.get(host.name)!.push([column, 1])
      if (key !== null) columnsOfSpot.set(key, [...(columnsOfSpot.get(key) ?? []), column])
    }
    if (own.length === 0) return null
    columnsOfVm.set(vm.vm, own)
  }

  const level = columns.length
  const levels: Row[] = []
  const rows: Row[] = chosen.map((vm) => ({ terms: columnsOfVm.get(vm.vm)!.map((column) => [column, 1]), equal: 1 }))
  for (const host of targets) {
    const terms = columnsOfHost.get(host.name)!
    for (const size of ['ramMib', 'cpuMc'] as const) {
      const taken = sum(
        fixed.filter((vm) => vm.host === host.name),
        size,
      )
      const isExcused = overfull.has(host.name) && !mustMend
      if (isExcused) continue
      if (terms.length === 0) {
        if (taken > host[size]) return null
        continue
      }
      // As parts of the host's capacity: GLPK's tolerances are made for numbers near 1.
      const parts = terms.map(([column]): Term => [column, byName.get(columns[column]![0])![size] / host[size]])
      rows.push({ terms: parts, atMost: (host[size] - taken) / host[size] })
      levels.push({ terms: [...parts, [level, -1]], atMost: -taken / host[size] })
    }
  }
  for (const [key, own] of columnsOfSpot) {
    const most = mustMend
      ? 1 - (fixedPresent.get(key) ?? 0)
      : Math.max(1, present.get(key) ?? 0) - (fixedPresent.get(key) ?? 0)
    if (own.length > most) rows.push({ terms: own.map((column) => [column, 1]), atMost: most })
  }

  const homes = new Map<string, number>()
  for (const vm of movable) {
    const home = columnsOfVm.get(vm.vm)!.find((column) => columns[column]![1] === vm.host)
    if (home !== undefined) homes.set(vm.vm, home)
  }
  const columnOf = new Map(columns.map(([vm, host], column) => [`${vm}\n${host}`, column]))
  for (const cut of cuts) rows.push(cutRow(cut, columnOf, homes))
  const homeColumns = [...homes.values()]
  const binaries = columns.length
  return {
    columns,
    fewest: { binaries, hasLevel: false, objective: homeColumns.map((column): Term => [column, -1]), rows },
    balanced: (migrations) => ({
      binaries,
      hasLevel: true,
      objective: [[level, 1]],
      rows: [
        ...rows,
        ...levels,
        ...(homeColumns.length === 0
          ? []
          : [{ terms: homeColumns.map((column): Term => [column, -1]), atMost: migrations - homeColumns.length }]),
      ],
    }),
    migrationsOf: (values) => homeColumns.filter((column) => values[column] !== 1).length + movable.length - homes.size,
  }
}

/** These moves cannot be put in an order: not all of them again, unless another VM moves too. */
function cutRow(cut: Assignment, columnOf: Map<string, number>, homes: Map<string, number>): Row {
  const moves = [...cut].map(([vm, host]) => columnOf.get(`${vm}\n${host}`)!)
  const staying = [...homes].filter(([vm]) => !cut.has(vm)).map(([, column]) => column)
  return {
    terms: [...moves.map((column): Term => [column, 1]), ...staying.map((column): Term => [column, 1])],
    atMost: moves.length - 1 + staying.length,
  }
}

function sum(vms: PlacementVm[], size: 'ramMib' | 'cpuMc'): number {
  return vms.reduce((all, vm) => all + vm[size], 0)
}

function countBy(keys: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}
