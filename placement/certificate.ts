import type { PlacementProblem, PlacementVm } from '../domain/placement.ts'

/**
 * Claims that no plan needs fewer than k + 1 migrations. Prices are by size, `ram_mib/cpu_mc`, in parts of `scale`; a size
 * without a price has none. Any whole prices are allowed: wrong ones only fail to prove.
 */
export type Certificate = { k: number; scale: number; price: Record<string, number> }

type Size = { ram: number; cpu: number; price: number; count: number }

/**
 * Checks the claim in whole numbers, without a solver and without any code of the search. Whoever takes VM by VM the price of
 * its size must, for at most k migrations, pay no more than k: so if what all VMs are worth exceeds what the hosts can give for
 * it with k evictions each, k do not do. False for anything that is not exact.
 */
export function holds(problem: PlacementProblem, { k, scale, price }: Certificate): boolean {
  if (!Number.isSafeInteger(k) || k < 0 || k > 12 || !Number.isSafeInteger(scale) || scale < 1) return false
  if (!Object.values(price).every((each) => Number.isSafeInteger(each) && each >= 0 && each <= scale * 1_000))
    return false
  const priceOf = (vm: PlacementVm) => price[`${vm.ramMib}/${vm.cpuMc}`] ?? 0
  if (problem.intent === 'rebalance') return false
  const { ramReservePercent, cpuOvercommitPercent } = problem.limits
  const named = new Set(problem.hostIds)
  const near = regionsAsked(problem)
  const live = new Map(
    problem.hosts
      .filter(
        ({ name, state, region }) =>
          state === 'live' && !named.has(name) && (near === null || region === null || near.has(region)),
      )
      .map((host) => [host.name, host]),
  )
  const dead = new Set(problem.hosts.filter(({ state }) => state === 'dead').map(({ name }) => name))
  const mayMove = (vm: PlacementVm) => problem.vmIds === null || problem.vmIds.includes(vm.vm)

  let total = 0
  const sizes = new Map<string, Size>()
  const room = new Map(
    [...live].map(([name, { ramMib, cpuMc }]) => [
      name,
      {
        ram: Math.floor((ramMib * (100 - ramReservePercent)) / 100),
        cpu: Math.floor((cpuMc * cpuOvercommitPercent) / 100),
      },
    ]),
  )
  const guests = new Map<string, PlacementVm[]>([...live.keys()].map((name) => [name, []]))
  for (const vm of problem.vms) {
    const runsOn = vm.running && vm.host !== null && !dead.has(vm.host) ? vm.host : null
    const isWanted =
      mayMove(vm) &&
      (vm.host === null
        ? problem.vmIds !== null
        : named.has(vm.host) && (dead.has(vm.host) || (problem.intent === 'drain' && vm.running)))
    const here = runsOn !== null && live.has(runsOn) ? runsOn : null
    if (here !== null) {
      room.get(here)!.ram -= vm.ramMib
      room.get(here)!.cpu -= vm.cpuMc
      if (mayMove(vm)) guests.get(here)!.push(vm)
    }
    if (!isWanted && (here === null || !mayMove(vm))) continue
    total += priceOf(vm)
    const key = `${vm.ramMib}/${vm.cpuMc}`
    const size = sizes.get(key) ?? { ram: vm.ramMib, cpu: vm.cpuMc, price: priceOf(vm), count: 0 }
    size.count += 1
    sizes.set(key, size)
  }
  if (!Number.isSafeInteger(total)) return false
  const worth = bestFor([...sizes.values()].filter(({ price }) => price > 0))
  for (const [name, own] of guests) {
    const stay = own.reduce((sum, vm) => sum + priceOf(vm), 0)
    const least = cheapest(own, room.get(name)!, k, scale, priceOf, worth)
    if (least === null) return false
    total += least - stay
  }
  return Number.isSafeInteger(total) && total > k * scale
}

/** Regions that a VM in question may be placed in; null: any, for one of them stands in none. */
function regionsAsked({ hosts, vms, hostIds, vmIds, intent }: PlacementProblem): Set<string> | null {
  const hostOf = new Map(hosts.map((host) => [host.name, host]))
  const regions = new Set<string>()
  for (const vm of vms) {
    if (vmIds !== null && !vmIds.includes(vm.vm)) continue
    const host = vm.host === null ? undefined : hostOf.get(vm.host)
    const isAsked = host
      ? hostIds.includes(host.name) && (host.state === 'dead' || (intent === 'drain' && vm.running))
      : vmIds !== null
    if (!isAsked) continue
    if (!host?.region) return null
    regions.add(host.region)
  }
  return regions
}

/** Over all ways in which at most k of these leave: what leaving costs, less what the room is then worth. */
function cheapest(
  own: PlacementVm[],
  room: { ram: number; cpu: number },
  k: number,
  scale: number,
  priceOf: (vm: PlacementVm) => number,
  worth: (ram: number, cpu: number) => number,
): number | null {
  let least: number | null = null
  let looked = 0
  const bySize = [...Map.groupBy(own, (vm) => `${vm.ramMib}/${vm.cpuMc}`).values()]
  const leave = (from: number, left: number, ram: number, cpu: number, cost: number): void => {
    looked += 1
    if (looked > 2_000_000) return
    if (ram >= 0 && cpu >= 0) {
      const value = cost - worth(ram, cpu)
      if (least === null || value < least) least = value
    }
    for (let index = from; index < bySize.length && left > 0; index += 1) {
      const group = bySize[index]!
      const vm = group[0]!
      for (let count = 1; count <= Math.min(left, group.length); count += 1) {
        const more = count * (scale + priceOf(vm))
        leave(index + 1, left - count, ram + count * vm.ramMib, cpu + count * vm.cpuMc, cost + more)
      }
    }
  }
  leave(0, k, room.ram, room.cpu, 0)
  return looked > 2_000_000 ? null : least
}

/** The most that VMs of these sizes can be worth in a room, remembered by room. */
function bestFor(sizes: Size[]): (ram: number, cpu: number) => number {
  const known = sizes.map(() => new Map<string, number>())
  const best = (index: number, ram: number, cpu: number): number => {
    const size = sizes[index]
    if (!size) return 0
    const key = `${ram}/${cpu}`
    const before = known[index]!.get(key)
    if (before !== undefined) return before
    let most = 0
    for (let count = 0; count <= size.count && count * size.ram <= ram && count * size.cpu <= cpu; count += 1) {
      most = Math.max(most, count * size.price + best(index + 1, ram - count * size.ram, cpu - count * size.cpu))
    }
    known[index]!.set(key, most)
    return most
  }
  return (ram, cpu) => best(0, ram, cpu)
}
