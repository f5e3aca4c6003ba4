import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState } from '../cluster/size-classes.ts'
import type { Move } from '../search/search.ts'
import type { LinearModel, LpRow, Term } from './assignment.ts'
import type { Worth } from './places-model.ts'

/**
 * Plans as a program in yes and no: VMs that make room move in rounds, each into the room before
 * its round, then the evacuees start. An answer can be carried out, unlike ends alone. A VM moves
 * once at most: no way round.
 */
export type RoundsQuestion = {
  /** VMs that run and may move. */
  movers: readonly number[]
  /** Evacuees that must have a place, and those that may be left down. */
  kept: readonly number[]
  open: readonly number[]
  /** Hosts that take this VM. */
  hostsOf: (vm: number) => readonly number[]
  rounds: number
  /** The goal, more is better: starts by worth, or null for the fewest migrations. */
  worth: ((vm: number) => number) | null
  /** The least of the goal. */
  atLeast: readonly Worth[]
  maxMigrations?: number
  /** What all migrations together take from what counts. */
  migrationCost?: number
}

/** `round` of the last ones: the evacuees. */
type Column = { vm: number; host: number; round: number }

type RoundsModel = { model: LinearModel; columns: Column[] }

/** Null where a VM that must have a place has none. */
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

/** The moves of an answer, in an order in which each can begin. */
export function readRounds(instance: Instance, { columns }: RoundsModel, values: readonly number[]): Move[] {
  const chosen = columns.filter((_, index) => values[index] === 1).sort((a, b) => a.round - b.round)
  return chosen.map(({ vm, host }) => ({ vm, from: instance.home[vm]!, to: host }))
}

/** Where each VM may go in which round, as far as what stays lets it. */
function listColumns(instance: Instance, { movers, kept, open, hostsOf, rounds }: RoundsQuestion): Column[] {
  const { home, hostRam } = instance
  const room = buildCapacityState(instance)
  // A host that is too full already takes nothing, whatever leaves it.
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

/** In each round what has come so far fits beside what is still there. */
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

/** In each round a domain has one member of a group at most. */
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
