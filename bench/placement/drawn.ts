import type { PlacementHost, PlacementProblem, PlacementVm } from '../../domain/placement.ts'
import { random } from '../../placement/cluster/size-classes.ts'

/**
 * Generates clusters that no planner was tuned for. Each cluster is a function of family, scale and
 * seed, and keeps the rules before the failure. The load is the RAM (or CPU) of all VMs divided by
 * the RAM (or CPU) of the remaining hosts.
 */

export type Scale = 'small' | 'middle' | 'large' | 'big'
export type Drawn = { name: string; problem: PlacementProblem; isOverfull: boolean }

type Size = { ram: number; cpu: number }
type Draw = {
  next: () => number
  upTo: (max: number) => number
  pick: <T>(...all: T[]) => T
}

type Family = {
  /** The range of the load, in per cent of RAM and of CPU. */
  load: [number, number]
  cpuLoad?: [number, number]
  /** The relative size of a host. */
  host?: (draw: Draw) => Size
  vm?: (draw: Draw) => Size
  /** How many of a hundred VMs are in HA groups, and how many members a group has. */
  grouped?: number
  members?: (draw: Draw) => number
  regions?: boolean
  lost?: number
  isDrain?: boolean
  /** How many of a hundred running VMs never move. */
  pinned?: number
  reserved?: boolean
  prioritized?: boolean
  scales?: Scale[]
}

const even = (): Size => ({ ram: 1, cpu: 1 })
const mixed = ({ pick }: Draw): Size => ({ ram: pick(1, 1, 1.5, 2), cpu: pick(1, 1, 1.5, 2) })
const uneven = ({ pick }: Draw): Size => pick({ ram: 2, cpu: 0.7 }, { ram: 0.7, cpu: 2 }, { ram: 1, cpu: 1 })

/** Generates sizes as clouds sell them. */
const sold = ({ pick }: Draw): Size => {
  const gib = pick(1, 2, 2, 2, 4, 4, 4, 4, 6, 8, 8, 12, 16, 24)
  return { ram: gib * 1_024, cpu: Math.max(1, Math.round(gib / pick(2, 4, 4, 8))) * 1_000 }
}
/** Generates sizes that share no divisor: much RAM with few CPUs, and the reverse. */
const odd = ({ pick, upTo }: Draw): Size =>
  pick(
    { ram: 3_000 + upTo(13_000), cpu: 300 + upTo(1_700) },
    { ram: 700 + upTo(2_300), cpu: 2_000 + upTo(6_000) },
    { ram: 1_500 + upTo(6_000), cpu: 500 + upTo(3_500) },
  )

const families: Record<string, Family> = {
  hetero: { load: [80, 96], cpuLoad: [80, 96], host: uneven, vm: odd },
  numa: {
    load: [85, 97],
    vm: ({ pick }) => ({ ram: pick(16, 16, 32, 32, 64, 128) * 1_024, cpu: pick(2, 4, 8) * 1_000 }),
    host: even,
  },
  tworeg: { load: [75, 90], regions: true, host: mixed },
  smallha: { load: [80, 92], grouped: 80, members: ({ upTo }) => 3 + upTo(2) },
  drain2: { load: [75, 92], isDrain: true, lost: 2, host: mixed },
  ties: { load: [88, 97], vm: ({ pick }) => pick({ ram: 4_096, cpu: 2_000 }, { ram: 8_192, cpu: 4_000 }), host: even },
  reserved: { load: [80, 93], reserved: true, pinned: 15, host: mixed },
  fixed: { load: [80, 95], pinned: 40 },
  swap: {
    load: [90, 97],
    vm: ({ pick }) => pick({ ram: 5_120, cpu: 2_000 }, { ram: 7_168, cpu: 2_000 }, { ram: 12_288, cpu: 3_000 }),
  },
  full: { load: [90, 98], cpuLoad: [90, 98], host: uneven, vm: odd },
  big: { load: [85, 95], scales: ['big'], host: mixed },
  ov: { load: [101, 110], prioritized: true, host: mixed },
  ovcpu: { load: [80, 90], cpuLoad: [101, 110], prioritized: true, host: mixed },
  ovhet: { load: [101, 108], cpuLoad: [95, 105], prioritized: true, host: uneven, vm: odd },
  ovreg: { load: [101, 108], prioritized: true, regions: true, host: mixed },
  ovdrain: { load: [101, 108], prioritized: true, isDrain: true, host: mixed },
}

export const familyNames = Object.keys(families)

const scales: Record<Scale, [hosts: number, most: number, vmsPerHost: number, most: number]> = {
  small: [5, 12, 6, 10],
  middle: [20, 30, 7, 14],
  large: [50, 100, 10, 20],
  big: [300, 300, 20, 20],
}

export function takesScale(family: string, scale: Scale): boolean {
  return families[family]?.scales?.includes(scale) ?? scale !== 'big'
}

/**
 * Generates a cluster of this family. Null if no cluster of this seed keeps the rules before the
 * failure.
 */
export function drawCluster(name: string, scale: Scale, seed: number): Drawn | null {
  const family = families[name] as Family
  for (let attempt = 0; attempt < 60; attempt += 1) {
    const next = random(7_919 * seed + 104_729 * attempt + name.length)
    const upTo = (max: number) => Math.floor(next() * (max + 1))
    const pick = <T>(...all: T[]): T => all[upTo(all.length - 1)] as T
    const problem = build(family, scale, { next, upTo, pick })
    const isOverfull = Math.max(family.load[0], family.cpuLoad?.[0] ?? 0) > 100
    if (problem)
      return { name: `${name}-${problem.hosts.length}x${problem.vms.length}-${scale}-s${seed}`, problem, isOverfull }
  }
  return null
}

function build(family: Family, scale: Scale, draw: Draw): PlacementProblem | null {
  const { upTo } = draw
  const [fewest, most, thin, thick] = scales[scale]
  const count = fewest + upTo(most - fewest)
  // Kills more hosts if the load is tight. Otherwise an overfull cluster with only one dead host
  // would have been overfull before the failure.
  const isTight = Math.max(family.load[1], family.cpuLoad?.[1] ?? 0) >= 98
  const lost = Math.max(family.lost ?? 1, isTight ? Math.round(count * 0.12) : 1)
  const sizes = Array.from({ length: count * (thin + upTo(thick - thin)) }, () => (family.vm ?? sold)(draw))
  const kinds = Array.from({ length: count }, () => (family.host ?? even)(draw))
  const between = ([least, top]: [number, number]) => (least + upTo(top - least)) / 100
  const load = between(family.load)
  const cpuLoad = family.cpuLoad ? between(family.cpuLoad) : Math.min(0.9, load)
  const scaleOf = (size: keyof Size, by: number) =>
    sizes.reduce((sum, each) => sum + each[size], 0) /
    (by * kinds.slice(lost).reduce((sum, kind) => sum + kind[size], 0))
  const [ramUnit, cpuUnit] = [scaleOf('ram', load), scaleOf('cpu', cpuLoad)]
  const hosts = kinds.map((kind, index): PlacementHost => {
    const ramReserveMib = family.reserved ? 256 * (1 + upTo(15)) : 0
    const cpuReserveMc = family.reserved ? 100 * upTo(10) : 0
    return {
      name: `n${String(index).padStart(4, '0')}`,
      ramMib: Math.round(kind.ram * ramUnit) + ramReserveMib,
      cpuMc: Math.round(kind.cpu * cpuUnit) + cpuReserveMc,
      ...(family.reserved && { ramReserveMib, cpuReserveMc }),
      rack: null,
      region: family.regions ? ['osl', 'ams', null][index % 5 === 4 ? 2 : index % 2]! : null,
      state: index >= lost ? 'live' : family.isDrain ? 'draining' : 'dead',
    }
  })
  const vms = placeAll(hosts, sizes, family, draw)
  if (!vms) return null
  if (family.regions) joinSome(vms, draw)
  for (const vm of vms) {
    const runs = vm.host !== null && hosts.find(({ name }) => name === vm.host)?.state !== 'dead'
    vm.running = runs
    if (runs && draw.next() * 100 < (family.pinned ?? 0)) vm.pinnedTo = [vm.host as string]
  }
  // Unpins VMs on an evacuated host, because a VM that is pinned to this host could never leave it.
  const left = new Set(hosts.slice(0, lost).map(({ name }) => name))
  for (const vm of vms) if (left.has(vm.host as string)) vm.pinnedTo = []
  const limits = { cpuOvercommitPercent: 100, ramReservePercent: 0 }
  const intent = family.isDrain ? 'drain' : 'recover'
  return { intent, hostIds: [...left], vmIds: null, useRackConstraints: false, limits, hosts, vms }
}

/**
 * Places every VM on a host with room, large VMs first, and members of a group on separate hosts.
 * Null if a VM finds no host.
 */
function placeAll(hosts: PlacementHost[], sizes: Size[], family: Family, draw: Draw): PlacementVm[] | null {
  const free = hosts.map((host) => ({
    ram: host.ramMib - (host.ramReserveMib ?? 0),
    cpu: host.cpuMc - (host.cpuReserveMc ?? 0),
  }))
  const whole = free.map((room) => ({ ...room }))
  const groups = drawGroups(sizes.length, family, draw)
  const taken = new Set<string>()
  const vms: PlacementVm[] = []
  const order = sizes
    .map((size, index) => ({ size, index, key: size.ram * (0.9 + 0.2 * draw.next()) }))
    .sort((a, b) => b.key - a.key)
  for (const { size, index } of order) {
    const haGroup = groups[index] ?? null
    let best: { at: number; score: number } | null = null
    for (const [at, room] of free.entries()) {
      if (room.ram < size.ram || room.cpu < size.cpu || taken.has(`${haGroup} ${at}`)) continue
      const score =
        Math.max(1 - (room.ram - size.ram) / whole[at]!.ram, 1 - (room.cpu - size.cpu) / whole[at]!.cpu) -
        0.2 * draw.next()
      if (!best || score < best.score) best = { at, score }
    }
    if (!best) return null
    free[best.at]!.ram -= size.ram
    free[best.at]!.cpu -= size.cpu
    if (haGroup !== null) taken.add(`${haGroup} ${best.at}`)
    vms.push({
      vm: `v${String(index).padStart(5, '0')}`,
      ramMib: size.ram,
      cpuMc: size.cpu,
      haGroup,
      host: hosts[best.at]!.name,
      running: true,
      priority: family.prioritized ? draw.pick(0, 0, 10, 50, 100) : 0,
      pinnedTo: [],
      forbiddenHosts: [],
      affinityGroup: null,
    })
  }
  return vms
}

function drawGroups(
  count: number,
  { grouped = 40, members = ({ pick }) => pick(2, 2, 3) }: Family,
  draw: Draw,
): (string | null)[] {
  const order = Array.from({ length: count }, (_, index) => ({ index, key: draw.next() })).sort((a, b) => a.key - b.key)
  const groups: (string | null)[] = Array(count).fill(null)
  for (let at = 0, group = 0; at < (count * grouped) / 100; group += 1) {
    const size = members(draw)
    for (const { index } of order.slice(at, at + size)) groups[index] = `g${group}`
    at += size
  }
  return groups
}

/** Pairs some VMs that share a host and have no HA group, so that each pair moves as one. */
function joinSome(vms: PlacementVm[], draw: Draw): void {
  for (const [host, own] of Map.groupBy(vms, ({ host }) => host)) {
    const [one, other] = own.filter(({ haGroup }) => haGroup === null)
    if (!one || !other || draw.next() < 0.5) continue
    one.affinityGroup = `on-${host}`
    other.affinityGroup = `on-${host}`
  }
}

/** Formats the cluster as a problem file for `nightshift placement`. */
export function toFile({ intent, hostIds, hosts, vms }: PlacementProblem): object {
  return {
    intent,
    host_ids: hostIds,
    hosts: hosts.map(({ name, ramMib, cpuMc, ramReserveMib, cpuReserveMc, region, state }) => {
      const reserves = { ram_reserve_mib: ramReserveMib, cpu_reserve_mc: cpuReserveMc }
      return { name, ram_mib: ramMib, cpu_mc: cpuMc, ...reserves, region, state }
    }),
    vms: vms.map(({ vm, ramMib, cpuMc, haGroup, affinityGroup, host, priority, pinnedTo }) => {
      const groups = { ha_group: haGroup, affinity_group: affinityGroup }
      return { vmid: vm, ram_mib: ramMib, cpu_mc: cpuMc, ...groups, host, priority, pinned_to: pinnedTo }
    }),
  }
}
