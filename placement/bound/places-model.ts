import { type Instance, listTargets } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState } from '../cluster/size-classes.ts'
import type { LinearModel, LpRow, Term } from './assignment.ts'

/** Nodes that a question about end places may take: the same work on every machine. */
export const maxNodes = 2_000
/** Models with more columns than this only take the time that a search would use better. */
export const maxColumns = 40_000

/** Where VMs end up. */
export type Assignment = Map<number, number>

/** VMs that get new places, while all others stay where `room` has them. */
export type Neighbourhood = {
  /** Room beside those that stay. */
  room: CapacityState
  /** Must have a place. */
  kept: readonly number[]
  /** May be left down. */
  open: readonly number[]
  /** Hosts that take them. */
  hosts: readonly number[]
}

/** What a VM counts for, and how much of it there has to be. */
export type Worth = { worth: (vm: number) => number; reached: number }

type Goal = {
  /** The goal, more is better; null: VMs that stay where they run, and of these the large ones. */
  worth: ((vm: number) => number) | null
  atLeast?: readonly Worth[]
  /** The least number of running ones that stay. */
  atHome?: number
  /** Draws which of as many stay, with numbers from 0 to 1; without it the large ones do. */
  random?: () => number
}

export type PlacesModel = { model: LinearModel; columns: [vm: number, host: number][] }

/**
 * Ends of every evacuee and of those that may move, as few as possible away from home, and no more
 * than this. Null when a VM has no host, which proves that there are no such ends.
 */
export function buildWholeModel(
  instance: Instance,
  movers: readonly number[],
  maxMigrations: number,
): PlacesModel | null {
  const kept = [...instance.evacuees, ...movers]
  const hosts = listTargets(instance)
  const room = buildCapacityState(instance)
  for (const vm of kept) room.place(vm, -1)
  const atHome = movers.length - maxMigrations
  return buildPlacesModel(instance, { room, kept, open: [], hosts }, { worth: null, atHome })
}

/**
 * Ends of these VMs as a program in yes and no: each on one host at most, within RAM and CPU, no
 * two of a group in one domain. Null when a VM that needs a place has none.
 */
export function buildPlacesModel(
  instance: Instance,
  { room, kept, open, hosts }: Neighbourhood,
  { worth, atLeast = [], atHome = 0, random = () => 1 }: Goal,
): PlacesModel | null {
  const { hostRam, hostCpu, domain, vmRam, vmCpu, groupsOf, home, movable } = instance
  const columns: [number, number][] = []
  const rows: LpRow[] = []
  const usage = new Map<number, { ram: Term[]; cpu: Term[] }>()
  const inDomain = new Map<string, Term[]>()
  const homes: Term[] = []
  const mustStart = new Set(kept)
  for (const vm of [...kept, ...open]) {
    const own: Term[] = []
    for (const host of hosts) {
      if (!room.fits(vm, host)) continue
      const column = columns.push([vm, host]) - 1
      own.push([column, 1])
      const used = usage.get(host) ?? { ram: [], cpu: [] }
      usage.set(host, used)
      // As parts of the capacity: solvers' tolerances are made for numbers near 1.
      used.ram.push([column, vmRam[vm]! / hostRam[host]!])
      used.cpu.push([column, vmCpu[vm]! / hostCpu[host]!])
      for (const group of groupsOf[vm]!) {
        const key = `${group} ${domain[host]}`
        const terms = inDomain.get(key) ?? []
        terms.push([column, 1])
        inDomain.set(key, terms)
      }
      if (movable[vm] && home[vm] === host) homes.push([column, 1])
    }
    if (mustStart.has(vm)) {
      if (own.length === 0) return null
      rows.push({ terms: own, equal: 1 })
    } else if (own.length > 0) rows.push({ terms: own, atMost: 1 })
  }
  for (const [host, { ram, cpu }] of usage) {
    rows.push({ terms: ram, atMost: room.freeRam[host]! / hostRam[host]! })
    rows.push({ terms: cpu, atMost: room.freeCpu[host]! / hostCpu[host]! })
  }
  for (const terms of inDomain.values()) if (terms.length > 1) rows.push({ terms, atMost: 1 })
  if (homes.length > 0 && atHome > 0) rows.push({ terms: homes, atLeast: atHome })
  const termsOf = (of: (vm: number) => number) =>
    columns.flatMap(([vm], column): Term[] => (of(vm) > 0 ? [[column, of(vm)]] : []))
  for (const each of atLeast) rows.push({ terms: termsOf(each.worth), atLeast: each.reached })
  // All memory together weighs less than one migration.
  const allRam = homes.reduce((sum, [column]) => sum + vmRam[columns[column]![0]]!, 1)
  const objective = worth
    ? termsOf(worth)
    : homes.map(([column]): Term => [column, 1 + (0.5 * random() * vmRam[columns[column]![0]]!) / allRam])
  const model: LinearModel = {
    columns: columns.length,
    binaries: columns.length,
    objective: objective.map(([column, of]): Term => [column, -of]),
    rows: rows.filter(({ terms, atLeast: min }) => terms.length > 0 || (min ?? 0) > 0),
  }
  return { model, columns }
}

export function readPlaces({ columns }: PlacesModel, values: readonly number[]): Assignment {
  return new Map(columns.filter((_, column) => values[column] === 1))
}
