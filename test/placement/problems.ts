import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { random } from '../../placement/cluster/size-classes.ts'

/** The best of all that can be reached: who stays down, and the fewest live migrations for it. */
export type Best = { left: string[]; migrations: number }

type Place = (string | null)[]

/**
 * Tries everything: every state that starts and live migrations can lead to, nearest first. For
 * tiny clusters only, in its own words and in nothing like the solver's way: one VM after the
 * other, one step after the other, over all hosts there are.
 */
export function bruteForce(problem: PlacementProblem): Best {
  const { vms, may, start, stranded } = worldOf(problem)
  const seen = new Map<string, number>([[JSON.stringify(start), 0]])
  const levels: Place[][] = [[start]]
  let best: Best | null = null
  for (let migrations = 0; migrations < levels.length; migrations += 1) {
    const level = levels[migrations] ?? []
    for (const state of level) {
      if (seen.get(JSON.stringify(state)) !== migrations) continue
      const left = stranded.filter((index) => isWaiting(problem, start, state, index))
      if (partiesHold(problem, start, state, stranded) && (best === null || isLess(vms, left, best.left))) {
        best = { left: left.map((index) => vms[index]!.vm), migrations }
      }
      for (const [index] of vms.entries()) {
        for (const { name } of problem.hosts) {
          if (may(state, index, name) !== null) continue
          const next = state.with(index, name)
          const cost = migrations + (state[index] === null ? 0 : 1)
          const key = JSON.stringify(next)
          if ((seen.get(key) ?? Number.POSITIVE_INFINITY) <= cost) continue
          seen.set(key, cost)
          levels[cost] ??= []
          levels[cost].push(next)
        }
      }
    }
  }
  return best as unknown as Best
}

/** The fewest live migrations with which all have a place; null when there is no such plan. */
export function fewestMigrations(problem: PlacementProblem): number | null {
  const { left, migrations } = bruteForce(problem)
  return left.length === 0 ? migrations : null
}

/** May this VM go to this host as things are? Null, or why not. */
export function mayGo(problem: PlacementProblem, vm: string, to: string): string | null {
  const { vms, may, start, stranded } = worldOf(problem)
  const index = vms.findIndex((each) => each.vm === vm)
  const isConcerned = concernedIn(problem, start, stranded).has(start[index] ?? '') || stranded.includes(index)
  return isConcerned ? may(start, index, to) : 'no VM can come to its region'
}

/**
 * Hosts that a stranded VM may come to by its region, those that the VMs there may go to, and so
 * on.
 */
function concernedIn({ hosts, vms, vmIds }: PlacementProblem, start: Place, stranded: number[]): Set<string> {
  const reached = new Set<string>()
  const from = stranded.map((index) => vms[index]!)
  for (let vm = from.pop(); vm !== undefined; vm = from.pop()) {
    const region = hosts.find(({ name }) => name === vm!.host)?.region ?? null
    for (const host of hosts) {
      if (reached.has(host.name) || (region !== null && host.region !== null && region !== host.region)) continue
      reached.add(host.name)
      if (host.state !== 'live') continue
      from.push(...vms.filter((each, at) => start[at] === host.name && (vmIds?.includes(each.vm) ?? true)))
    }
  }
  return reached
}

function worldOf(problem: PlacementProblem) {
  const { vms, hostIds, vmIds, intent } = problem
  const hosts = new Map(problem.hosts.map((host) => [host.name, host]))
  const asked = (vm: PlacementVm) => vmIds === null || vmIds.includes(vm.vm)
  const isDead = (name: string) => hosts.get(name)!.state === 'dead'
  const start: Place = vms.map(({ host, running }) => (host !== null && running && !isDead(host) ? host : null))
  const stranded = vms.flatMap((vm, index) => {
    if (!asked(vm)) return []
    if (vm.host === null) return vmIds === null ? [] : [index]
    if (!hostIds.includes(vm.host)) return []
    return isDead(vm.host) || (intent === 'drain' && vm.running) ? [index] : []
  })
  const takes = (host: PlacementHost) => host.state === 'live' && !hostIds.includes(host.name)
  /**
   * For an affinity group: the hosts of its running, unstranded members, by number, those that take
   * VMs first.
   */
  const company = (group: string | null) => {
    const own = vms.flatMap((vm, index) =>
      group !== null && vm.affinityGroup === group && start[index] !== null && !stranded.includes(index) ? [index] : [],
    )
    const count = (name: string) => own.filter((index) => start[index] === name).length
    const places = [...new Set(own.map((index) => start[index]!))].sort((a, b) => {
      const [one, two] = [takes(hosts.get(a)!), takes(hosts.get(b)!)].map(Number) as [number, number]
      return two - one || count(b) - count(a) || (a < b ? -1 : 1)
    })
    return { own, places }
  }
  const isBound = (index: number) => {
    const { own, places } = company(vms[index]!.affinityGroup)
    if (stranded.includes(index) || vms[index]!.affinityGroup === null || places.length > 1) return false
    return own.length > 1 || stranded.some((other) => vms[other]!.affinityGroup === vms[index]!.affinityGroup)
  }

  const may = (state: Place, index: number, name: string): string | null => {
    const vm = vms[index]!
    const to = hosts.get(name)!
    if (!asked(vm)) return 'not asked'
    if (!takes(to)) return 'takes none'
    if (state[index] === name) return 'is there'
    if (state[index] === null && !stranded.includes(index)) return 'is off'
    if (!stranded.includes(index) && !takes(hosts.get(start[index]!)!)) return 'its host takes none'
    if (isBound(index)) return 'its group stays'
    if (vm.pinnedTo.length > 0 && !vm.pinnedTo.includes(name)) return 'pinned'
    if (vm.forbiddenHosts.includes(name)) return 'forbidden'
    const from = vm.host === null ? null : hosts.get(vm.host)!.region
    if (from !== null && to.region !== null && from !== to.region) return 'region'
    const { own, places } = company(vm.affinityGroup)
    if (own.some((other) => other !== index) && places[0] !== name) return 'beside'
    return crowded(problem, state, index, to)
  }
  return { vms, may, start, stranded }
}

function crowded(problem: PlacementProblem, state: Place, index: number, to: PlacementHost): string | null {
  const { vms, hosts, limits, useRackConstraints } = problem
  const vm = vms[index]!
  let [ram, cpu] = [vm.ramMib, vm.cpuMc]
  for (const [other, at] of state.entries()) {
    if (at === null || other === index) continue
    if (at === to.name) {
      ram += vms[other]!.ramMib
      cpu += vms[other]!.cpuMc
    }
    if (vm.haGroup === null || vms[other]!.haGroup !== vm.haGroup) continue
    const near = hosts.find(({ name }) => name === at)!
    const isOneRack = useRackConstraints && to.rack !== null && near.rack === to.rack && near.region === to.region
    if (near === to || isOneRack) return 'group'
  }
  const kept = to.ramReserveMib ?? (to.ramMib * limits.ramReservePercent) / 100
  if (ram > to.ramMib - kept) return 'ram'
  return cpu > ((to.cpuMc - (to.cpuReserveMc ?? 0)) * limits.cpuOvercommitPercent) / 100 ? 'cpu' : null
}

/** Down still, or still on the host that it has to leave. */
function isWaiting({ hostIds }: PlacementProblem, start: Place, state: Place, index: number): boolean {
  const at = state[index] ?? null
  return at === null || (at === start[index] && hostIds.includes(at))
}

/**
 * Stranded VMs of an affinity group that were together, or all down, are together again, or none
 * has a place.
 */
function partiesHold(problem: PlacementProblem, start: Place, state: Place, stranded: number[]): boolean {
  return stranded.every((one) =>
    stranded.every((two) => {
      const group = problem.vms[one]!.affinityGroup
      if (group === null || group !== problem.vms[two]!.affinityGroup || start[one] !== start[two]) return true
      const [a, b] = [isWaiting(problem, start, state, one), isWaiting(problem, start, state, two)]
      return a === b && (a || state[one] === state[two])
    }),
  )
}

/** Is it less harm that these stay down? The higher priority decides, and then how many. */
function isLess(vms: PlacementVm[], one: number[], names: string[]): boolean {
  const two = vms.flatMap(({ vm }, index) => (names.includes(vm) ? [index] : []))
  const count = (left: number[], priority: number) => left.filter((index) => vms[index]!.priority === priority).length
  for (const priority of [...new Set(vms.map((vm) => vm.priority))].sort((a, b) => b - a)) {
    const difference = count(one, priority) - count(two, priority)
    if (difference !== 0) return difference < 0
  }
  return false
}

/**
 * A tiny cluster by seed with whatever an inventory may hold: hosts without a region or a rack,
 * hosts that are draining unasked, VMs that were never placed, states that break a rule already,
 * priorities, pins, affinity, requests for some VMs only.
 */
export function odd(seed: number): PlacementProblem {
  const next = random(seed * 31 + 7)
  const upTo = (most: number) => Math.floor(next() * (most + 1))
  const pick = <T>(...all: T[]): T => all[upTo(all.length - 1)] as T
  const intent = pick<PlacementProblem['intent']>('recover', 'recover', 'drain')
  const hasRegions = next() < 0.5
  const isSound = next() < 0.7
  const hosts = Array.from({ length: 3 + upTo(1) }, (_, index) => ({
    name: `h${index}`,
    ramMib: (3 + upTo(5)) * 1_024,
    cpuMc: 16_000,
    rack: pick(null, 'r1', 'r2'),
    region: hasRegions ? pick(null, 'osl', 'ams') : null,
    state:
      index === 0
        ? intent === 'recover'
          ? 'dead'
          : pick('draining', 'live', 'dead')
        : pick('live', 'live', 'live', 'live', 'live', 'draining'),
  })) as PlacementProblem['hosts']
  const used = new Map<string, number>()
  const vms: PlacementVm[] = []
  for (let index = 0; index < 3 + upTo(3); index += 1) {
    const isPlaced = next() < 0.93
    const host = pick(hosts[0]!, ...hosts)
    const ramMib = (1 + upTo(4)) * 1_024
    const vm: PlacementVm = {
      vm: `v${index}`,
      ramMib,
      cpuMc: 1_000,
      host: isPlaced ? host.name : null,
      running: isPlaced && host.state !== 'dead' && next() < 0.95,
      haGroup: pick(null, null, 'g', 'k'),
      priority: pick(0, 0, 5, 9),
      pinnedTo: next() < 0.05 ? [pick(...hosts).name] : [],
      forbiddenHosts: next() < 0.1 ? [pick(...hosts).name] : [],
      affinityGroup: null,
    }
    if (vm.haGroup === null && next() < 0.3) vm.affinityGroup = pick('app', 'web')
    const after = (used.get(host.name) ?? 0) + ramMib
    if (vm.running && isSound && (after > host.ramMib || vm.haGroup !== null)) continue
    if (vm.running) used.set(host.name, after)
    vms.push(vm)
  }
  const vmIds = next() < 0.2 ? vms.filter(() => next() < 0.7).map(({ vm }) => vm) : null
  const limits = { cpuOvercommitPercent: 100, ramReservePercent: 0 }
  return {
    intent,
    hostIds: ['h0'],
    vmIds,
    useRackConstraints: next() < 0.5,
    limits,
    hosts: withReserves(hosts, seed),
    vms,
  }
}

/** Some hosts are larger, and keep that for themselves: nothing else is different. */
function withReserves(hosts: PlacementHost[], seed: number): PlacementHost[] {
  const next = random(seed * 17 + 3)
  return hosts.map((each) => {
    const kept = Math.floor(next() * 8) * 512
    if (next() < 0.7) return each
    return { ...each, ramMib: each.ramMib + kept, ramReserveMib: kept, cpuMc: each.cpuMc + kept, cpuReserveMc: kept }
  })
}

/** `host('a', 8)`: a live host with 8 GiB and as many CPUs. */
export function host(name: string, gib: number, more: Partial<PlacementHost> = {}): PlacementHost {
  return { name, ramMib: gib * 1_024, cpuMc: gib * 1_000, rack: null, region: null, state: 'live', ...more }
}

/** `vm('v', 2, 'a')`: a VM of 2 GiB that runs on host a. */
export function vm(name: string, gib: number, on: string | null, more: Partial<PlacementVm> = {}): PlacementVm {
  return {
    vm: name,
    ramMib: gib * 1_024,
    cpuMc: gib * 1_000,
    haGroup: null,
    host: on,
    running: on !== null,
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    affinityGroup: null,
    ...more,
  }
}

export function problem(
  hosts: PlacementHost[],
  vms: PlacementVm[],
  more: Partial<PlacementProblem> = {},
): PlacementProblem {
  const hostIds = hosts.filter((one) => one.state === 'dead').map((one) => one.name)
  const limits = { cpuOvercommitPercent: 100, ramReservePercent: 0 }
  return { intent: 'recover', hostIds, vmIds: null, useRackConstraints: false, limits, hosts, vms, ...more }
}

export const dead = { state: 'dead' as const }
export const down = { running: false }
