import type { Instance } from '../cluster/instance.ts'
import { gcd } from '../cluster/size-classes.ts'

/** VMs of one size, one role and the same possible hosts. They share a price. */
export type PricedClass = {
  ram: number
  cpu: number
  /** The priorities of one member, if stranded. Empty if the member runs and keeps a place. */
  priorities: number[]
  /** Whether a member may end on each target. */
  open: boolean[]
  count: number
  /** The HA group of each member. Null if a member has none, or moves together with other VMs. */
  groups: (number | null)[]
}

/** Hosts with the same capacity that may take the same classes. */
export type HostKind = { hosts: number[]; ram: number; cpu: number; crowded: Set<number> }

/** The size of one unit of RAM and of CPU in a table. */
export type Units = [ram: number, cpu: number]

/** The most cells of a table for only RAM or only CPU. */
const maxCellsOfOne = 20_000
const unitOfNone = 1_000_000_000
/** The most table cells for one round over all kinds of hosts. */
const maxWork = 18_000_000

/** Groups hosts that do not differ in capacity and classes. Null if a host is over its capacity. */
export function listHostKinds(instance: Instance): HostKind[] | null {
  const { targets, hostRam, hostCpu, vmRam, vmCpu, home, movable, evacuees, groupsOf, allows } = instance
  const isOpen = new Set(evacuees)
  const kinds = new Map<string, HostKind>()
  for (let host = 0; host < targets; host += 1) {
    let [ram, cpu, freeRam, freeCpu] = [hostRam[host]!, hostCpu[host]!, hostRam[host]!, hostCpu[host]!]
    const seen = new Set<number>()
    const crowded = new Set<number>()
    const atHome: number[] = []
    for (const [vm, at] of home.entries()) {
      if (at !== host) continue
      freeRam -= vmRam[vm]!
      freeCpu -= vmCpu[vm]!
      for (const group of groupsOf[vm]!) (seen.has(group) ? crowded : seen).add(group)
      if (movable[vm] && !allows[instance.rule[vm]!]![host]) atHome.push(vm)
      if (movable[vm] || isOpen.has(vm)) continue
      ram -= vmRam[vm]!
      cpu -= vmCpu[vm]!
    }
    if (freeRam < 0 || freeCpu < 0) return null
    const key = JSON.stringify([ram, cpu, [...crowded].sort(), atHome, allows.map((may) => may[host])])
    const kind = kinds.get(key) ?? { hosts: [], ram, cpu, crowded }
    kinds.set(key, kind)
    kind.hosts.push(host)
  }
  return [...kinds.values()]
}

/**
 * Chooses the units of a table. For both RAM and CPU, the table stays within the limit of cells.
 * For one of them, the unit is as fine as the limit allows.
 */
export function chooseUnits(
  { classes, kinds }: { classes: readonly PricedClass[]; kinds: readonly HostKind[] },
  by: 'ram' | 'cpu' | 'both',
  maxCells = maxCellsOfOne,
): Units {
  const common = (size: 'ram' | 'cpu') => classes.reduce((unit, each) => gcd(unit, each[size]), 0) || 1
  const most = (size: 'ram' | 'cpu') => Math.max(1, ...kinds.map((kind) => kind[size]))
  const [ram, cpu] = [common('ram'), common('cpu')]
  if (by === 'ram') return [Math.max(ram, Math.ceil(most('ram') / maxCells)), unitOfNone]
  if (by === 'cpu') return [unitOfNone, Math.max(cpu, Math.ceil(most('cpu') / maxCells))]
  const rows = Math.max(1, Math.floor(most('ram') / ram))
  const columns = Math.max(1, Math.floor(most('cpu') / cpu))
  if (rows * columns <= maxCells) return [ram, cpu]
  // Keeps all units of the resource with few units, up to the square root of the limit.
  const root = Math.floor(Math.sqrt(maxCells))
  const keptRows = Math.min(rows, Math.max(root, Math.floor(maxCells / columns)))
  const keptColumns = Math.min(columns, Math.floor(maxCells / keptRows))
  const unitFor = (size: 'ram' | 'cpu', unit: number, all: number, kept: number) =>
    all === kept ? unit : Math.ceil(most(size) / kept)
  return [unitFor('ram', ram, rows, keptRows), unitFor('cpu', cpu, columns, keptColumns)]
}

export type BestPattern = { kind: number; worth: number; holds: Int32Array }

/** An option in a set of which at most one is taken: a number of copies, or a member of a group. */
type Option = { index: number; count: number; ram: number; cpu: number; worth: number }

/**
 * Finds the highest worth that each kind of host can hold at these prices, with the contents. Null
 * if this needs too many cells. Kinds that may take the same VMs share one table.
 */
export function bestPatterns(
  classes: readonly PricedClass[],
  price: readonly number[],
  kinds: readonly HostKind[],
  units: Units,
): BestPattern[] | null {
  const patterns: BestPattern[] = []
  const rooms = kinds.map((each, kind) => ({
    kind,
    ram: Math.floor(each.ram / units[0]),
    cpu: Math.floor(each.cpu / units[1]),
    open: classes.map(({ open }, index) => price[index]! > 0 && open[each.hosts[0]!] === true),
    crowded: each.crowded,
  }))
  let work = 0
  for (const alike of Map.groupBy(
    rooms,
    ({ open, crowded }) => `${open.map(Number).join('')} ${[...crowded].sort()}`,
  ).values()) {
    const [ram, cpu] = [Math.max(...alike.map((room) => room.ram)), Math.max(...alike.map((room) => room.cpu))]
    const choices = listChoices(classes, price, units, alike[0]!)
    work += (ram + 1) * (cpu + 1) * choices.length
    if (work > maxWork) return null
    const width = cpu + 1
    const best = new Float64Array((ram + 1) * width)
    const taken = choices.map((options) => fill(best, options, ram, cpu))
    for (const room of alike) {
      const holds = new Int32Array(classes.length)
      const worth = best[room.ram * width + room.cpu]!
      let at = room.ram * width + room.cpu
      for (let step = choices.length - 1; step >= 0; step -= 1) {
        const option = choices[step]![taken[step]![at]! - 1]
        if (!option) continue
        holds[option.index]! += option.count
        at -= option.ram * width + option.cpu
      }
      patterns.push({ kind: room.kind, worth, holds })
    }
  }
  return patterns
}

function listChoices(
  classes: readonly PricedClass[],
  price: readonly number[],
  units: Units,
  { open, crowded }: { open: boolean[]; crowded: Set<number> },
): Option[][] {
  const choices: Option[][] = []
  const groups = new Map<number, Option[]>()
  for (const [index, { ram, cpu, groups: own }] of classes.entries()) {
    if (!open[index]) continue
    const size = { ram: Math.floor(ram / units[0]), cpu: Math.floor(cpu / units[1]) }
    const copies = (count: number): Option => ({
      index,
      count,
      ram: size.ram * count,
      cpu: size.cpu * count,
      worth: price[index]! * count,
    })
    const apart = new Set(own.filter((group) => group !== null && !crowded.has(group)))
    for (const group of apart) groups.set(group!, [...(groups.get(group!) ?? []), copies(1)])
    let left = own.filter((group) => group === null || crowded.has(group)).length
    for (let bundle = 1; left > 0; bundle *= 2) {
      choices.push([copies(Math.min(bundle, left))])
      left -= Math.min(bundle, left)
    }
  }
  return [...choices, ...groups.values()]
}

/**
 * Records for each room which option is taken: its number from 1, or 0 for none. Works in place,
 * from the largest room.
 */
function fill(best: Float64Array, options: readonly Option[], ram: number, cpu: number): Uint8Array {
  const width = cpu + 1
  const taken = new Uint8Array(best.length)
  for (let r = ram; r >= 0; r -= 1) {
    for (let c = cpu; c >= 0; c -= 1) {
      const here = r * width + c
      const before = best[here]!
      let most = before
      for (let which = 0; which < options.length; which += 1) {
        const option = options[which]!
        if (option.ram > r || option.cpu > c) continue
        const from = here - option.ram * width - option.cpu
        const worth = best[from]! + option.worth
        if (worth <= most) continue
        most = worth
        taken[here] = which + 1
      }
      best[here] = most
    }
  }
  return taken
}
