import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState } from '../cluster/size-classes.ts'
import type { Move } from '../search/search.ts'
import type { LinearModel, LpRow, Term } from './assignment.ts'
import type { Worth } from './places-model.ts'

/**
 * A question for a model of complete plans, which is a binary program. VMs that make room move in
 * rounds, each into the capacity that is free before its round; then the evacuees start. A solution
 * can be executed, unlike final hosts alone. A VM moves at most once.
 */
export type RoundsQuestion = {
  /** Running VMs that may be moved. */
  movers: readonly number[]
  /** Evacuees that must have a place, and evacuees that may be left down. */
  kept: readonly number[]
  open: readonly number[]
  /** Returns the hosts that may take a VM. */
  hostsOf: (vm: number) => readonly number[]
  rounds: number
  /**
   * The worth of the VMs that start, which the model maximizes. Null: the model minimizes
   * migrations.
   */
  worth: ((vm: number) => number) | null
  /** Sums of worth that a solution must reach. */
  atLeast: readonly Worth[]
  maxMigrations?: number
  /** The weight of all migrations together, compared with the worth. */
  migrationCost?: number
}

/** A possible move: a VM may go to a host in a round. Evacuees use the last `round`. */
type Column = { vm: number; host: number; round: number }

type RoundsModel = { model: LinearModel; columns: Column[] }

/** Builds the model for a question. Null if a VM that must have a place has no possible host. */
export function buildRoundsModel(instance: Instance, question: RoundsQuestion): RoundsModel | null {
  const { movers, kept, open, rounds, worth, atLeast, maxMigrations, migrationCost = 0 } = question
  const columns = listColumns(instance, question)
  const rows: LpRow[] = []
  const own = new Map<number, Term[]>()
  for (const [column, { vm }] of columns.entries()) own.set(vm, [...(own.get(vm) ?? []), [column, 1]])
  for (const vm of kept) {
    const terms = own.get(vm)
    if (!terms) return null
    rows.push({ terms, equal: 1 })
  }
  for (const vm of [...movers, ...open]) {
    const terms = own.get(vm)
    if (terms) rows.push({ terms, atMost: 1 })
  }
  rows.push(...listRoomRows(instance, columns, rounds), ...listGroupRows(instance, columns, rounds))
  const termsOf = (of: (column: Column) => number) =>
    columns.flatMap((column, index): Term[] => (of(column) > 0 ? [[index, of(column)]] : []))
  const isMigration = ({ round }: Column) => (round < rounds ? 1 : 0)
  for (const { worth: one, reached } of atLeast) rows.push({ terms: termsOf(({ vm }) => one(vm)), atLeast: reached })
  if (maxMigrations !== undefined) rows.push({ terms: termsOf(isMigration), atMost: maxMigrations })
  const each = migrationCost / Math.max(1, movers.length)
  const objective = worth
    ? columns.flatMap((column, index): Term[] => {
        const cost = isMigration(column) * each - (isMigration(column) ? 0 : worth(column.vm))
        return cost === 0 ? [] : [[index, cost]]
      })
    : termsOf(isMigration)
  const model: LinearModel = {
    columns: columns.length,
    binaries: columns.length,
    objective,
    rows: rows.filter(({ terms, atLeast: min }) => terms.length > 0 || (min ?? 0) > 0),
  }
  return { model, columns }
}

/** Reads the moves of a solution, in an order in which each move can begin. */
export function readRounds(instance: Instance, { columns }: RoundsModel, values: readonly number[]): Move[] {
  const chosen = columns.filter((_, index) => values[index] === 1).sort((a, b) => a.round - b.round)
  return chosen.map(({ vm, host }) => ({ vm, from: instance.home[vm]!, to: host }))
}

/** Lists the possible hosts of each VM in each round, beside the VMs that never move. */
function listColumns(instance: Instance, { movers, kept, open, hostsOf, rounds }: RoundsQuestion): Column[] {
  const { home, hostRam } = instance
  const room = buildCapacityState(instance)
  // Leaves out a host that is already too full: it takes no VM, even after VMs leave it.
  const takes = hostRam.map((_, host) => room.freeRam[host]! >= 0 && room.freeCpu[host]! >= 0)
  for (const vm of [...movers, ...kept, ...open]) room.place(vm, -1)
  const columns: Column[] = []
  for (const vm of movers) {
    for (const host of hostsOf(vm)) {
      if (!takes[host] || host === home[vm] || !room.fits(vm, host)) continue
      for (let round = 0; round < rounds; round += 1) columns.push({ vm, host, round })
    }
  }
  for (const vm of [...kept, ...open]) {
    for (const host of hostsOf(vm)) if (takes[host] && room.fits(vm, host)) columns.push({ vm, host, round: rounds })
  }
  return columns
}

/**
 * Makes the rows for capacity: in each round, the arrived VMs fit beside the VMs that are still
 * there.
 */
function listRoomRows(instance: Instance, columns: readonly Column[], rounds: number): LpRow[] {
  const { hostRam, hostCpu, vmRam, vmCpu, home } = instance
  const { freeRam, freeCpu } = buildCapacityState(instance)
  const rows: LpRow[] = []
  for (const host of new Set(columns.map((column) => column.host))) {
    for (let round = 0; round <= rounds; round += 1) {
      for (const [size, capacity, free] of [
        [vmRam, hostRam[host]!, freeRam[host]!],
        [vmCpu, hostCpu[host]!, freeCpu[host]!],
      ] as const) {
        const terms = columns.flatMap((column, index): Term[] => {
          if (column.host === host && column.round <= round) return [[index, size[column.vm]! / capacity]]
          return home[column.vm] === host && column.round < round ? [[index, -size[column.vm]! / capacity]] : []
        })
        if (terms.some(([, of]) => of > 0)) rows.push({ terms, atMost: free / capacity })
      }
    }
  }
  return rows
}

/** Makes the rows for groups: in each round, a domain has at most one member of each group. */
function listGroupRows(instance: Instance, columns: readonly Column[], rounds: number): LpRow[] {
  const { domain, groupsOf, home, targets } = instance
  const isApart = new Map<string, Column[]>()
  const members = new Map<string, number>()
  for (const [vm, host] of home.entries()) {
    if (host < 0) continue
    for (const group of groupsOf[vm]!) {
      const key = `${group} ${domain[host]}`
      members.set(key, (members.get(key) ?? 0) + 1)
    }
  }
  for (const column of columns) {
    for (const group of groupsOf[column.vm]!) {
      const key = `${group} ${domain[column.host]}`
      isApart.set(key, [...(isApart.get(key) ?? []), column])
    }
  }
  const indexOf = new Map(columns.map((column, index) => [column, index]))
  const rows: LpRow[] = []
  for (const [key, coming] of isApart) {
    const [group, here] = key.split(' ').map(Number) as [number, number]
    const leaves = ({ vm, host }: Column) =>
      home[vm]! >= 0 && home[vm]! < targets && domain[home[vm]!] === here && domain[host] !== here
    const going = columns.filter((column) => groupsOf[column.vm]!.includes(group) && leaves(column))
    const arriving = coming.filter(({ vm }) => home[vm]! < 0 || domain[home[vm]!] !== here)
    for (let round = 0; round <= rounds; round += 1) {
      const terms: Term[] = [
        ...arriving.filter((each) => each.round <= round).map((each): Term => [indexOf.get(each) as number, 1]),
        ...going.filter((each) => each.round < round).map((each): Term => [indexOf.get(each) as number, -1]),
      ]
      if (terms.some(([, of]) => of > 0)) rows.push({ terms, atMost: 1 - (members.get(key) ?? 0) })
    }
  }
  return rows
}
