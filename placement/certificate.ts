import { type PlacementProblem, type PlacementVm, placementProblem } from '../domain/placement.ts'
import { listFaults } from '../domain/schema-faults.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import { type PlacementRules, readRules } from './rules.ts'

export type Flaw = { path: string; message: string }

/** A placement problem is invalid. `flaws` lists every invalid field with its error. */
export class InvalidProblemError extends Error {
  override name = 'InvalidProblemError' as const
  readonly flaws: Flaw[]
  constructor(flaws: Flaw[]) {
    super(`not a placement problem: ${flaws.map(({ path, message }) => `${path}: ${message}`).join('; ')}`)
    this.flaws = flaws
  }
}

const maxFlaws = 10

/**
 * Checks a problem and returns it. Throws InvalidProblemError for invalid sizes, duplicate names
 * and unknown names.
 */
export function checkProblem(given: unknown): PlacementProblem {
  const parsed = placementProblem.safeParse(given)
  if (!parsed.success) {
    throw new InvalidProblemError(
      listFaults(parsed.error, maxFlaws).map(({ path, message }) => ({ path: formatPath(path), message })),
    )
  }
  const problem = parsed.data
  const flaws = [...findDuplicateNames(problem), ...findUnknownNames(problem), ...findContradictions(problem)]
  if (flaws.length > 0) throw new InvalidProblemError(flaws.slice(0, maxFlaws))
  return problem
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.map(String).join('.') || 'the problem'
}

function findDuplicateNames({ hosts, vms }: PlacementProblem): Flaw[] {
  const flaws: Flaw[] = []
  const seen = new Set<string>()
  for (const [index, { name }] of hosts.entries()) {
    if (seen.has(name)) flaws.push({ path: `hosts.${index}.name`, message: `host ${name} is listed twice` })
    seen.add(name)
  }
  seen.clear()
  for (const [index, { vm }] of vms.entries()) {
    if (seen.has(vm)) flaws.push({ path: `vms.${index}.vm`, message: `VM ${vm} is listed twice` })
    seen.add(vm)
  }
  return flaws
}

function findUnknownNames({ hosts, vms, hostIds, vmIds }: PlacementProblem): Flaw[] {
  const flaws: Flaw[] = []
  const hostNames = new Set(hosts.map(({ name }) => name))
  const vmNames = new Set(vms.map(({ vm }) => vm))
  const needHost = (path: string, name: string) => {
    if (!hostNames.has(name)) flaws.push({ path, message: `host ${name} is unknown` })
  }
  for (const [index, { host, running, pinnedTo, forbiddenHosts }] of vms.entries()) {
    if (host !== null) needHost(`vms.${index}.host`, host)
    else if (running) flaws.push({ path: `vms.${index}.running`, message: 'the VM is running nowhere' })
    for (const [at, name] of pinnedTo.entries()) needHost(`vms.${index}.pinnedTo.${at}`, name)
    for (const [at, name] of forbiddenHosts.entries()) needHost(`vms.${index}.forbiddenHosts.${at}`, name)
  }
  for (const [index, name] of hostIds.entries()) needHost(`hostIds.${index}`, name)
  for (const [index, name] of (vmIds ?? []).entries()) {
    if (!vmNames.has(name)) flaws.push({ path: `vmIds.${index}`, message: `VM ${name} is unknown` })
  }
  return flaws
}

/** Finds VMs whose rules require that they are both together and apart. */
function findContradictions({ vms }: PlacementProblem): Flaw[] {
  const flaws: Flaw[] = []
  const firsts = new Map<string, string>()
  for (const [index, { vm, haGroup, affinityGroup }] of vms.entries()) {
    if (haGroup === null || affinityGroup === null) continue
    const key = JSON.stringify([haGroup, affinityGroup])
    const first = firsts.get(key)
    const message = `must be together with ${first} (${affinityGroup}) and apart from ${first} (${haGroup})`
    if (first !== undefined) flaws.push({ path: `vms.${index}.affinityGroup`, message: `${vm} ${message}` })
    firsts.set(key, first ?? vm)
  }
  return flaws
}

/**
 * A claim that no plan needs fewer than k + 1 migrations. Prices are by size of VM,
 * `ram_mib/cpu_mc`, in parts of `scale`; a missing size has the price 0. Any whole prices are
 * valid, but wrong prices do not prove the claim.
 */
export type Certificate = { k: number; scale: number; price: Record<string, number> }

/** The most steps of the check of a certificate, because a file must not keep its reader busy. */
const maxLooks = 2_000_000

type Size = { ram: number; cpu: number; price: number; count: number }

/**
 * Checks the claim of a certificate in whole numbers, without a solver and without the search's
 * code. The rules give each VM's possible hosts. If k migrations were enough, the hosts could hold
 * all VMs with at most k evictions each. If all VMs are worth more at these prices than the hosts
 * can then hold, k migrations are not enough. False for inexact numbers, and for a state in which a
 * host is over its capacity: the host may stay so, and its evictions prove nothing.
 */
export function certificateHolds(problem: PlacementProblem, { k, scale, price }: Certificate): boolean {
  if (!Number.isSafeInteger(k) || k < 0 || k > 12 || !Number.isSafeInteger(scale) || scale < 1) return false
  if (!Object.values(price).every((each) => Number.isSafeInteger(each) && each >= 0 && each <= scale * 1_000))
    return false
  const priceOf = (vm: PlacementVm) => price[sizeOf(vm)] ?? 0
  if (problem.intent === 'rebalance') return false
  const rules = readRules(problem)
  const room = freeCapacity(problem, rules)
  if (overfull(room).length > 0) return false

  const guests = Map.groupBy(
    problem.vms.filter(({ vm }) => rules.movable.has(vm)),
    ({ vm }) => rules.place.get(vm) as string,
  )
  const moving = problem.vms.filter(({ vm }) => rules.stranded.has(vm) || rules.movable.has(vm))
  const sizes = [...Map.groupBy(moving, sizeOf).values()].map((all): Size => {
    const first = all[0] as PlacementVm
    return { ram: first.ramMib, cpu: first.cpuMc, price: priceOf(first), count: all.length }
  })
  let total = sizes.reduce((sum, size) => sum + size.price * size.count, 0)
  if (!Number.isSafeInteger(total)) return false
  const worth = bestFor(sizes.filter((size) => size.price > 0))
  for (const [name, free] of room) {
    const own = guests.get(name) ?? []
    const stay = own.reduce((sum, vm) => sum + priceOf(vm), 0)
    const min = cheapest(own, free, k, { migration: (vm) => scale + priceOf(vm), worth })
    if (min === null) return false
    total += min - stay
  }
  return Number.isSafeInteger(total) && total > k * scale
}

/**
 * Counts the migrations that no plan for all VMs can avoid if the certificate holds: the VMs on
 * evacuated hosts, and k + 1 further migrations.
 */
export function certifiedBound(problem: PlacementProblem, { k }: Pick<Certificate, 'k'>): number {
  return countForcedMigrations(problem) + k + 1
}

/** Counts the VMs that run on an evacuated host, which move in any plan. */
export function countForcedMigrations(problem: PlacementProblem): number {
  const { stranded, place } = readRules(problem)
  return [...stranded].filter((vm) => place.has(vm)).length
}

/**
 * Lists the hosts that may take a VM and are over their capacity. No certificate holds for a state
 * with such a host.
 */
export function listOverfullHosts(problem: PlacementProblem): string[] {
  return overfull(freeCapacity(problem, readRules(problem)))
}

type FreeCapacity = { ram: number; cpu: number }

function overfull(room: Map<string, FreeCapacity>): string[] {
  return [...room].filter(([, { ram, cpu }]) => ram < 0 || cpu < 0).map(([name]) => name)
}

/** Returns the free capacity of each host that may take a VM, beside its running VMs. */
function freeCapacity(problem: PlacementProblem, { targets, place }: PlacementRules): Map<string, FreeCapacity> {
  const room = new Map<string, FreeCapacity>()
  for (const host of problem.hosts) {
    const { ramMib, cpuMc } = usableCapacity(problem, host)
    if (targets.has(host.name)) room.set(host.name, { ram: ramMib, cpu: cpuMc })
  }
  for (const { vm, ramMib, cpuMc } of problem.vms) {
    const here = room.get(place.get(vm) ?? '')
    if (!here) continue
    here.ram -= ramMib
    here.cpu -= cpuMc
  }
  return room
}

function sizeOf({ ramMib, cpuMc }: PlacementVm): string {
  return `${ramMib}/${cpuMc}`
}

/**
 * Finds, over all ways in which at most k VMs leave a host, the lowest value of their cost minus
 * the worth of the free capacity. Null if the search takes too long.
 */
function cheapest(
  own: PlacementVm[],
  room: FreeCapacity,
  k: number,
  { migration, worth }: { migration(vm: PlacementVm): number; worth(ram: number, cpu: number): number | null },
): number | null {
  let min: number | null = null
  let looked = 0
  const bySize = [...Map.groupBy(own, sizeOf).values()]
  const leave = (from: number, left: number, ram: number, cpu: number, cost: number): void => {
    looked += 1
    if (looked > maxLooks) return
    const given = worth(ram, cpu)
    if (given === null) looked = Number.POSITIVE_INFINITY
    else if (min === null || cost - given < min) min = cost - given
    for (let index = from; index < bySize.length && left > 0; index += 1) {
      const group = bySize[index]!
      const vm = group[0]!
      for (let count = 1; count <= Math.min(left, group.length); count += 1) {
        const more = count * migration(vm)
        leave(index + 1, left - count, ram + count * vm.ramMib, cpu + count * vm.cpuMc, cost + more)
      }
    }
  }
  leave(0, k, room.ram, room.cpu, 0)
  return looked > maxLooks ? null : min
}

/**
 * Returns a function with a cache, which finds the highest worth of VMs of these sizes in a room.
 * It returns null if the search takes too long.
 */
function bestFor(sizes: Size[]): (ram: number, cpu: number) => number | null {
  const known = sizes.map(() => new Map<string, number>())
  let looked = 0
  const best = (index: number, ram: number, cpu: number): number => {
    const size = sizes[index]
    if (!size) return 0
    const key = `${ram}/${cpu}`
    const before = known[index]!.get(key)
    if (before !== undefined) return before
    let max = 0
    looked += 1
    if (looked > maxLooks) return 0
    for (let count = 0; count <= size.count && count * size.ram <= ram && count * size.cpu <= cpu; count += 1) {
      max = Math.max(max, count * size.price + best(index + 1, ram - count * size.ram, cpu - count * size.cpu))
    }
    known[index]!.set(key, max)
    return max
  }
  return (ram, cpu) => {
    const max = best(0, ram, cpu)
    return looked > maxLooks ? null : max
  }
}
