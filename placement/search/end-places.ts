import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState, type SearchBudget } from '../cluster/size-classes.ts'
import { orderMoves } from './order-moves.ts'
import type { Move } from './search.ts'

/**
 * `found`: a plan for all VMs that moves the given number of other VMs. `none`: no final hosts
 * exist. `unknown`: the work was used up, or no order was found for existing final hosts.
 */
type EndPlaces = { kind: 'found'; moves: Move[] } | { kind: 'none' } | { kind: 'unknown' }

/** The most moved VMs up to which every set of VMs is tried. */
export const maxOthers = 8

/** Running VMs that do not differ, so that one can replace another. */
type Alike = { vms: number[]; host: number; ram: number }

type EndPlaceSearch = {
  instance: Instance
  capacity: CapacityState
  work: SearchBudget
  /** VMs that need a place: evacuees, and VMs that make room. */
  open: number[]
  /** A number for each kind of VM. Of two VMs of a kind, the later one goes to no earlier host. */
  kind: number[]
  lastHost: number[]
  deadlineMs: number
  /** The RAM of the VMs that make room in the best plan so far. Only less is tried. */
  maxRam: number
  /** The plan that moves the least memory. */
  lightest: Move[] | null
  /** True if no order was found for some final hosts. The search then proves nothing. */
  hasUnordered: boolean
}

type EndPlacesOptions = {
  work: SearchBudget
  deadlineMs: number
  /** The limit of the memory of other VMs that move. */
  maxRam?: number
}

/** Whether there are so few hosts that trying all final hosts usually takes milliseconds. */
export function isFewHosts({ targets }: Pick<Instance, 'targets'>): boolean {
  return targets <= 12
}

/**
 * Examines every set of this many VMs to move, with all final hosts of these VMs and of the
 * evacuees, until the work is used up. Keeps the plan that moves the least memory. Needs no engine
 * for a proof, because every plan with this many migrations has such final hosts.
 */
export function findEndPlaces(instance: Instance, migrations: number, options: EndPlacesOptions): EndPlaces {
  const capacity = buildCapacityState(instance)
  for (const vm of instance.evacuees) capacity.place(vm, -1)
  const all: EndPlaceSearch = {
    instance,
    capacity,
    maxRam: Number.POSITIVE_INFINITY,
    ...options,
    open: [...instance.evacuees],
    kind: numberKinds(instance),
    lastHost: [],
    lightest: null,
    hasUnordered: false,
  }
  chooseMovers(all, groupAlike(all), { from: 0, left: migrations, ram: 0 })
  if (all.lightest) return { kind: 'found', moves: all.lightest }
  return all.work.left <= 0 || all.hasUnordered ? { kind: 'unknown' } : { kind: 'none' }
}

/**
 * Chooses `left` more VMs to move, among the kinds of VMs from index `from` on. Tries every choice
 * that moves less memory than the best plan so far.
 */
function chooseMovers(
  all: EndPlaceSearch,
  alike: readonly Alike[],
  { from, left, ram }: { from: number; left: number; ram: number },
): void {
  if (left === 0) {
    const moves = placeRest(all)
    if (moves) Object.assign(all, { lightest: moves, maxRam: ram })
    return
  }
  for (let index = from; index < alike.length && all.work.left > 0; index += 1) {
    const { vms, host, ram: each } = alike[index] as Alike
    // Stops, because all later kinds are as large or larger.
    if (ram + left * each >= all.maxRam) return
    const vm = vms.find((one) => all.capacity.hostOf[one] === host)
    if (vm === undefined) continue
    all.capacity.place(vm, -1)
    all.open.push(vm)
    chooseMovers(all, alike, { from: index, left: left - 1, ram: ram + each })
    all.open.pop()
    all.capacity.place(vm, host)
  }
}

/**
 * Places the open VMs, the one with the fewest possible hosts first. Null if this is impossible.
 */
function placeRest(all: EndPlaceSearch): Move[] | null {
  const { capacity, open, work } = all
  if (open.length === 0) return orderEndPlaces(all)
  const next = choosePinched(all)
  if (!next) return null
  const { at, hosts } = next
  const vm = open[at] as number
  const kind = all.kind[vm] as number
  const before = all.lastHost[kind] ?? -1
  open[at] = open.at(-1) as number
  open.pop()
  let moves: Move[] | null = null
  for (const host of hosts) {
    if (host < before) continue
    capacity.place(vm, host)
    all.lastHost[kind] = host
    moves = placeRest(all)
    capacity.place(vm, -1)
    if (moves || work.left <= 0) break
  }
  all.lastHost[kind] = before
  open.push(vm)
  const last = open.length - 1
  open[last] = open[at] as number
  open[at] = vm
  return moves
}

/**
 * Chooses the open VM with the fewest possible hosts, and returns these hosts. Null if a VM has no
 * host, or if the free capacity is too small for all open VMs.
 */
function choosePinched({ instance, capacity, open, work }: EndPlaceSearch): { at: number; hosts: number[] } | null {
  const { targets, vmRam, vmCpu, hostRam, hostCpu, home, movable } = instance
  const { freeRam, freeCpu, fits } = capacity
  const isUseful = new Uint8Array(targets)
  let best: { at: number; hosts: number[]; size: number } | null = null
  let [ram, cpu] = [0, 0]
  work.left -= open.length * targets
  for (const [at, vm] of open.entries()) {
    ram += vmRam[vm]!
    cpu += vmCpu[vm]!
    const hosts: number[] = []
    for (let host = 0; host < targets; host += 1) {
      // Leaves out the VM's present host, because a VM that stays does not move.
      if (!fits(vm, host) || (movable[vm] && home[vm] === host)) continue
      isUseful[host] = 1
      hosts.push(host)
    }
    if (hosts.length === 0) return null
    const size = vmRam[vm]! / hostRam[0]! + vmCpu[vm]! / hostCpu[0]!
    if (!best || hosts.length < best.hosts.length || (hosts.length === best.hosts.length && size > best.size))
      best = { at, hosts, size }
  }
  for (let host = 0; host < targets; host += 1) {
    if (!isUseful[host]) continue
    ram -= freeRam[host]!
    cpu -= freeCpu[host]!
  }
  return ram > 0 || cpu > 0 ? null : best
}

function orderEndPlaces(all: EndPlaceSearch): Move[] | null {
  const { instance, capacity, deadlineMs } = all
  const assignment = new Map<number, number>()
  for (const [vm, home] of instance.home.entries()) {
    const host = capacity.hostOf[vm]!
    if (host >= 0 && host !== home) assignment.set(vm, host)
  }
  const moves = orderMoves(instance, assignment, deadlineMs)
  all.hasUnordered ||= moves === null
  return moves
}

/** Groups running VMs that may make room by kind, the smallest kind first. */
function groupAlike({ instance: { home, movable, targets, vmRam }, kind }: EndPlaceSearch): Alike[] {
  const groups = new Map<number, Alike>()
  for (const [vm, host] of home.entries()) {
    if (!movable[vm] || host < 0 || host >= targets) continue
    const group = groups.get(kind[vm]!) ?? { vms: [], host, ram: vmRam[vm]! }
    group.vms.push(vm)
    groups.set(kind[vm]!, group)
  }
  return [...groups.values()].sort((a, b) => a.ram - b.ram)
}

/** Gives one number to VMs with equal size, rules, groups and host. */
function numberKinds({ home, vmRam, vmCpu, rule, groupsOf }: Instance): number[] {
  const numbers = new Map<string, number>()
  return home.map((host, vm) => {
    const key = `${host} ${vmRam[vm]} ${vmCpu[vm]} ${rule[vm]} ${groupsOf[vm]!.join()}`
    const number = numbers.get(key) ?? numbers.size
    numbers.set(key, number)
    return number
  })
}
