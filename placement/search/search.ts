import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState, isUp, type SearchBudget } from '../cluster/size-classes.ts'

export type Move = { vm: number; from: number; to: number }

/**
 * `moves` can be made one after the other. `unplaced` lists the evacuees without a place after
 * these moves.
 */
export type SearchResult = { moves: Move[]; unplaced: number[] }

type SearchOptions = {
  random: () => number
  /** The size of the random changes to scores. 0 for the greedy run. */
  noise: number
  /** The most moves of VMs that are not evacuees. With more, a run is useless. */
  maxMigrations: number
  deadlineMs: number
  /** The remaining work of all runs together. Without it, only time ends a run. */
  work?: SearchBudget
  /**
   * Decides which of equally important VMs comes first: the largest VM, which is hardest to place,
   * or the smallest, because most small VMs fit.
   */
  first?: 'largest' | 'smallest'
}

/**
 * The most evictions for placing one VM, tried in this order, so that cheap solutions come first.
 */
const evictionLimits = [1, 2, 3, 5]
const maxDepth = 3
/**
 * The work for the start of a run, as a multiple of examining one host. A unit of work takes
 * equally long on clusters of any size: 40,000 units per millisecond.
 */
const workPerRun = 2_000
const workPerVm = 8
/** Numbers of hosts, and of VMs per host, that are tried if trying all takes too long. */
const hostsTried = { first: Number.POSITIVE_INFINITY, deep: 8, inner: 3 }
const vmsTried = { first: 14, inner: 6 }

/** One run of the search, with its state and its moves so far. */
type SearchRun = {
  instance: Instance
  capacity: CapacityState
  random: () => number
  noise: number
  maxMigrations: number
  deadlineMs: number
  work: SearchBudget
  /** The worth of one MiB of RAM and of a thousandth of a CPU. */
  weight: { ram: number; cpu: number }
  moves: Move[]
  /** Number of moves of VMs that are not evacuees. */
  migrations: number
  /** Hosts that are being cleared, to which no VM may go until they are cleared. */
  closed: Uint8Array
}

/**
 * The task to clear a host for a VM. `depth`: how deep evictions may follow from each other.
 * `maxMigrations`: the most migrations in all. `breadth`: the number of VMs that are tried.
 */
type Clearing = { vm: number; host: number; depth: number; maxMigrations: number; breadth: number }

/**
 * Places the evacuees once, in the order of execution. Each partial state can be executed, so the
 * result always has an order. A VM that fits nowhere makes other VMs move, which may again make
 * others move.
 */
export function search(instance: Instance, options: SearchOptions): SearchResult {
  const run = startRun(instance, options)
  const unplaced: number[] = []
  for (const vm of sortEvacuees(run, options.first ?? 'largest')) {
    const host = findTightest(run, vm)
    if (host >= 0) move(run, vm, host)
    else if (!placeByEvicting(run, vm)) unplaced.push(vm)
  }
  return { moves: run.moves, unplaced }
}

function startRun(instance: Instance, options: SearchOptions): SearchRun {
  const { random, noise, maxMigrations, deadlineMs, work = { left: Number.POSITIVE_INFINITY } } = options
  const capacity = buildCapacityState(instance)
  work.left -= workPerRun + workPerVm * instance.home.length
  return {
    instance,
    capacity,
    random,
    noise,
    maxMigrations,
    deadlineMs,
    work,
    weight: weighScarcity(instance, capacity),
    moves: [],
    migrations: 0,
    closed: new Uint8Array(instance.targets),
  }
}

/**
 * Returns the worth of a unit of each resource. A resource is worth the more, the less of it is
 * free in the cluster.
 */
function weighScarcity({ targets }: Instance, { freeRam, freeCpu }: CapacityState): { ram: number; cpu: number } {
  let [ram, cpu] = [1, 1]
  for (let host = 0; host < targets; host += 1) {
    ram += Math.max(0, freeRam[host]!)
    cpu += Math.max(0, freeCpu[host]!)
  }
  return { ram: 1 / ram, cpu: 1 / cpu }
}

/** Sorts evacuees by importance, then by size. */
function sortEvacuees(run: SearchRun, first: 'largest' | 'smallest'): number[] {
  const { evacuees, priority } = run.instance
  const order = evacuees.map((vm) => ({ vm, size: shake(run, sizeOf(run, vm)) }))
  const bySize = first === 'largest' ? -1 : 1
  order.sort((a, b) => priority[b.vm]! - priority[a.vm]! || (a.size - b.size) * bySize)
  return order.map(({ vm }) => vm)
}

function sizeOf({ instance: { vmRam, vmCpu }, weight }: SearchRun, vm: number): number {
  return vmRam[vm]! * weight.ram + vmCpu[vm]! * weight.cpu
}

function shake({ noise, random }: SearchRun, score: number): number {
  return noise === 0 ? score : score * (1 + noise * (random() - 0.5))
}

function move(run: SearchRun, vm: number, to: number): void {
  const from = run.capacity.hostOf[vm]!
  run.moves.push({ vm, from, to })
  run.capacity.place(vm, to)
  if (from >= 0 && run.instance.movable[vm]) run.migrations += 1
}

/** Undoes all moves from index `mark` on. */
function undo(run: SearchRun, mark: number): void {
  while (run.moves.length > mark) {
    const { vm, from } = run.moves.pop() as Move
    run.capacity.place(vm, from)
    if (from >= 0 && run.instance.movable[vm]) run.migrations -= 1
  }
}

/** Finds the host whose capacity this VM uses up best. -1 if the VM fits on no host. */
function findTightest(run: SearchRun, vm: number): number {
  const { instance, capacity, weight, closed } = run
  const { targets, vmRam, vmCpu } = instance
  const { freeRam, freeCpu, fits } = capacity
  let best = -1
  let min = Number.POSITIVE_INFINITY
  run.work.left -= targets
  for (let host = 0; host < targets; host += 1) {
    if (closed[host] || !fits(vm, host)) continue
    const rest = shake(run, (freeRam[host]! - vmRam[vm]!) * weight.ram + (freeCpu[host]! - vmCpu[vm]!) * weight.cpu)
    if (rest < min) {
      min = rest
      best = host
    }
  }
  return best
}

/**
 * Lists hosts that may take the VM if enough other VMs leave. The host that lacks the least
 * capacity comes first.
 */
function findNearest(run: SearchRun, vm: number, maxHosts: number): number[] {
  const { instance, capacity, closed, weight } = run
  const { targets, vmRam, vmCpu, hostRam, hostCpu, rule, allows } = instance
  const { hostOf, freeRam, freeCpu } = capacity
  const found: { host: number; short: number }[] = []
  run.work.left -= targets
  for (let host = 0; host < targets; host += 1) {
    if (closed[host] || hostOf[vm] === host || !allows[rule[vm]!]![host]) continue
    if (vmRam[vm]! > hostRam[host]! || vmCpu[vm]! > hostCpu[host]!) continue
    const ram = Math.max(0, vmRam[vm]! - freeRam[host]!) * weight.ram
    const cpu = Math.max(0, vmCpu[vm]! - freeCpu[host]!) * weight.cpu
    found.push({ host, short: shake(run, ram + cpu) })
  }
  found.sort((a, b) => a.short - b.short)
  return (found.length > maxHosts ? found.slice(0, maxHosts) : found).map(({ host }) => host)
}

/**
 * Places a VM that fits nowhere by moving other VMs. Returns false, without a change, if this
 * failed.
 */
function placeByEvicting(run: SearchRun, vm: number): boolean {
  for (const limit of evictionLimits) {
    const maxMigrations = Math.min(run.migrations + limit, run.maxMigrations)
    if (maxMigrations <= run.migrations) return false
    for (let depth = 1; depth <= Math.min(limit, maxDepth); depth += 1) {
      for (const host of findNearest(run, vm, depth === 1 ? hostsTried.first : hostsTried.deep)) {
        if (run.work.left <= 0 || isUp(run.deadlineMs)) return false
        const mark = run.moves.length
        if (clear(run, { vm, host, depth, maxMigrations, breadth: vmsTried.first })) {
          move(run, vm, host)
          return true
        }
        undo(run, mark)
      }
    }
  }
  return false
}

/** Moves other VMs away until the VM fits on the host. Does not undo a failed try. */
function clear(run: SearchRun, clearing: Clearing): boolean {
  const { vm, host, maxMigrations } = clearing
  run.closed[host] = 1
  try {
    while (!run.capacity.fits(vm, host)) {
      if (run.migrations >= maxMigrations || !evictOne(run, clearing)) return false
    }
    return true
  } finally {
    run.closed[host] = 0
  }
}

function evictOne(run: SearchRun, clearing: Clearing): boolean {
  const { vm, host, depth, maxMigrations } = clearing
  const candidates = listEvictable(run, clearing)
  for (const other of candidates) {
    const to = findTightestFor(run, other, clearing)
    if (to >= 0) {
      move(run, other, to)
      return true
    }
  }
  if (depth <= 1 || run.migrations + 1 >= maxMigrations) return false
  const inner = { depth: depth - 1, maxMigrations: maxMigrations - 1, breadth: vmsTried.inner }
  for (const other of candidates) {
    for (const to of findNearest(run, other, hostsTried.inner)) {
      const mark = run.moves.length
      if (clear(run, { vm: other, host: to, ...inner })) {
        move(run, other, to)
        if (run.capacity.groupPeerIn(vm, host) !== other) return true
      }
      undo(run, mark)
    }
  }
  return false
}

/**
 * Finds a place for an evicted VM. An evicted member of the VM's HA group has to leave the failure
 * domain, not only the host.
 */
function findTightestFor(run: SearchRun, other: number, { vm, host }: Clearing): number {
  const { instance, capacity, closed } = run
  const to = findTightest(run, other)
  if (to < 0 || capacity.groupPeerIn(vm, host) !== other) return to
  const { domain, targets } = instance
  if (domain[to] !== domain[host]) return to
  for (let away = 0; away < targets; away += 1) {
    if (domain[away] !== domain[host] && !closed[away] && capacity.fits(other, away)) return away
  }
  return -1
}

/**
 * Lists the VMs to move away from a host, the best first: a member of the VM's HA group; otherwise
 * a VM that alone frees enough and wastes least; otherwise the largest VM.
 */
function listEvictable(run: SearchRun, { vm, host, breadth }: Clearing): number[] {
  const { instance, capacity, weight } = run
  const { movable, home, vmRam, vmCpu } = instance
  const { hostOf, freeRam, freeCpu } = capacity
  const peer = capacity.groupPeerIn(vm, host)
  if (peer >= 0) return movable[peer] && hostOf[peer] === home[peer] ? [peer] : []
  const ram = Math.max(0, vmRam[vm]! - freeRam[host]!)
  const cpu = Math.max(0, vmCpu[vm]! - freeCpu[host]!)
  const scored: { other: number; score: number }[] = []
  run.work.left -= capacity.guests[host]!.length
  for (const other of capacity.guests[host]!) {
    if (!movable[other] || hostOf[other] !== home[other]) continue
    const covers = vmRam[other]! >= ram && vmCpu[other]! >= cpu
    const size = sizeOf(run, other)
    const cover = Math.min(vmRam[other]!, ram) * weight.ram + Math.min(vmCpu[other]!, cpu) * weight.cpu
    if (cover === 0) continue
    scored.push({ other, score: covers ? -1e9 + shake(run, size) : -shake(run, cover) + size * 1e-3 })
  }
  scored.sort((a, b) => a.score - b.score)
  return (scored.length > breadth ? scored.slice(0, breadth) : scored).map(({ other }) => other)
}
