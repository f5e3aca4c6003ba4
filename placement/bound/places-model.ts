import { type Instance, listTargets } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState } from '../cluster/size-classes.ts'
import type { LinearModel, LpRow, Term } from './assignment.ts'

/**
 * The most nodes of the solver's search for final hosts. It makes the work equal on every machine.
 */
export const maxNodes = 2_000
/** The most columns of a model. The time for a larger model is better spent on a search. */
export const maxColumns = 40_000

/** The final host of each VM. */
export type Assignment = Map<number, number>

/** VMs that get new places, while all other VMs stay where `room` has them. */
export type Neighbourhood = {
  /** The capacity that remains beside the VMs that stay. */
  room: CapacityState
  /** VMs that must have a place. */
  kept: readonly number[]
  /** VMs that may stay without a host. */
  open: readonly number[]
  /** Hosts that may take these VMs. */
  hosts: readonly number[]
}

/** The worth of each VM, and the total worth that an answer must reach. */
export type Worth = { worth: (vm: number) => number; reached: number }

type Goal = {
  /**
   * The worth to maximize. Null maximizes the number of VMs that stay where they run, and prefers
   * large VMs.
   */
  worth: ((vm: number) => number) | null
  atLeast?: readonly Worth[]
  /** The least number of running VMs that have to stay. */
  atHome?: number
  /**
   * Returns numbers from 0 to 1 that decide which VMs stay if there is a choice. Without this
   * function, large VMs stay.
   */
  random?: () => number
}

export type PlacesModel = { model: LinearModel; columns: [vm: number, host: number][] }

/**
 * Builds a model of the final hosts of all evacuees and movable VMs. As few movable VMs as possible
 * leave their present hosts, and at most `maxMigrations`. Null if a VM has no possible host, which
 * proves that no such final hosts exist.
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
 * Builds a model of the final hosts of these VMs as a binary program: each VM on at most one host,
 * within RAM and CPU, and no two VMs of a group in one domain. Null if a VM that must have a place
 * has no possible host.
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
      // Writes sizes as fractions of the capacity, because solvers' tolerances suit numbers near 1.
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
  // Weighs memory so that the memory of all VMs together counts less than one migration.
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
