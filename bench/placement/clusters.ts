import { readFileSync } from 'node:fs'
import type { PlacementHost, PlacementProblem, PlacementVm, Plan } from '../../domain/placement.ts'
import type { EngineName } from '../../placement/bound/assignment.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { median } from '../stage.ts'
import { listDescendants } from './cpu.ts'

export type Family = { hosts: number; vms: number; racks: number | null; load: number; seed: number }

/**
 * Formats a family, for example as `50x1000r-u93-s2`: hosts × VMs, `r` with racks, RAM load of the
 * surviving hosts, seed.
 */
export function nameOf({ hosts, vms, racks, load, seed }: Family): string {
  return `${hosts}x${vms}${racks ? 'r' : ''}-u${Math.round(load * 100)}-s${seed}`
}

const gibWeights: [gib: number, weight: number][] = [
  [1, 0.08],
  [1.5, 0.04],
  [2, 0.18],
  [3, 0.05],
  [4, 0.25],
  [6, 0.08],
  [8, 0.14],
  [12, 0.05],
  [16, 0.07],
  [24, 0.02],
  [32, 0.03],
  [64, 0.01],
]

/**
 * Generates a cluster whose host 0 just died. Sizes are as in clouds. `load` is the RAM of all VMs
 * divided by the RAM of the surviving hosts. Six VMs of ten are in HA groups of two or three. A
 * family always gives the same problem.
 */
export function generate(family: Family): PlacementProblem {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const made = tryOnce(family, random(7_919 * family.seed + 104_729 * attempt + 1))
    if (made) return made
  }
  throw new Error(`no consistent cluster was found for ${nameOf(family)}`)
}

function tryOnce({ hosts: hostCount, vms: vmCount, racks, load }: Family, next: () => number): PlacementProblem | null {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  const multipliers = Array.from({ length: hostCount }, () => pick([1, 1, 1.5, 2]))
  const sizes = Array.from({ length: vmCount }, () => {
    const gib = weighted(gibWeights, next())
    const base = Math.max(1, Math.round(gib / 4))
    return { gib, cpus: Math.min(32, pick([base, base, 2 * base, Math.max(1, Math.round(base / 2))])) }
  })
  const survivors = multipliers.slice(1).reduce((sum, m) => sum + m, 0)
  const baseGib = (limit: number) => {
    const all = sizes.reduce((sum, { gib }) => sum + Math.min(gib, limit), 0)
    return all / (load * survivors)
  }
  // Halves a VM that is larger than half a host, because real clusters have no such VMs.
  const base = baseGib(64)
  const limit = Math.max(8, base / 2)
  for (const size of sizes) if (size.gib > limit) size.gib = limit / 2 > 1 ? Math.max(1, Math.floor(limit / 2)) : 1
  const ramBaseMib = (sizes.reduce((sum, { gib }) => sum + gib, 0) * 1_024) / (load * survivors)
  const cpuBaseMc = (sizes.reduce((sum, { cpus }) => sum + cpus, 0) * 1_000) / (Math.min(0.95, 0.88 * load) * survivors)
  const hosts: PlacementHost[] = multipliers.map((m, index) => ({
    name: `h${String(index).padStart(4, '0')}`,
    ramMib: Math.round((ramBaseMib * m) / 256) * 256,
    cpuMc: Math.round((cpuBaseMc * m) / 500) * 500,
    rack: racks ? `r${index % racks}` : null,
    region: null,
    state: index === 0 ? 'dead' : 'live',
  }))
  const group = groupsOf(vmCount, next)
  const free = hosts.map(({ ramMib, cpuMc }) => ({ ram: ramMib, cpu: cpuMc }))
  const members = new Map<string, Set<string | null>>()
  const vms: PlacementVm[] = sizes.map(({ gib, cpus }, index) => ({
    vm: `v${String(index).padStart(5, '0')}`,
    ramMib: Math.round(gib * 1_024),
    cpuMc: cpus * 1_000,
    haGroup: group[index] ?? null,
    host: null,
    running: true,
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    affinityGroup: null,
  }))
  const order = vms.map((vm) => ({ vm, key: vm.ramMib * (0.8 + 0.4 * next()) })).sort((a, b) => b.key - a.key)
  for (const { vm } of order) {
    const taken = vm.haGroup === null ? null : (members.get(vm.haGroup) ?? new Set())
    let best: { index: number; score: number } | null = null
    for (const [index, host] of hosts.entries()) {
      const room = free[index]!
      if (room.ram < vm.ramMib || room.cpu < vm.cpuMc || taken?.has(host.rack ?? host.name)) continue
      const full = Math.max(1 - (room.ram - vm.ramMib) / host.ramMib, 1 - (room.cpu - vm.cpuMc) / host.cpuMc)
      const score = full - 0.35 * next()
      if (!best || score < best.score) best = { index, score }
    }
    if (!best) return null
    const host = hosts[best.index]!
    vm.host = host.name
    free[best.index]!.ram -= vm.ramMib
    free[best.index]!.cpu -= vm.cpuMc
    if (vm.haGroup !== null && taken) members.set(vm.haGroup, taken.add(host.rack ?? host.name))
  }
  return {
    intent: 'recover',
    hostIds: [hosts[0]!.name],
    vmIds: null,
    useRackConstraints: racks !== null,
    limits: { cpuOvercommitPercent: 100, ramReservePercent: 0 },
    hosts,
    vms,
  }
}

function weighted<T>(weights: [T, number][], at: number): T {
  let sum = 0
  for (const [value, weight] of weights) {
    sum += weight
    if (at < sum) return value
  }
  return (weights.at(-1) as [T, number])[0]
}

/** Puts six of ten VMs into random groups of two (60 %) or three. */
function groupsOf(count: number, next: () => number): (string | null)[] {
  const order = Array.from({ length: count }, (_, index) => index)
  for (let index = count - 1; index > 0; index -= 1) {
    const other = Math.floor(next() * (index + 1))
    ;[order[index], order[other]] = [order[other]!, order[index]!]
  }
  const groups: (string | null)[] = Array(count).fill(null)
  let at = 0
  for (let group = 0; at < Math.floor(count * 0.6); group += 1) {
    const size = next() < 0.6 ? 2 : 3
    for (const vm of order.slice(at, at + size)) groups[vm] = `g${group}`
    at += size
  }
  return groups
}

/**
 * Generates a small cluster with one dead host from a seed: three or four hosts, up to ten VMs of
 * one to six GiB, groups, and sometimes racks, pins and overcommitted CPU. Small enough for a full
 * search.
 */
export function tiny(seed: number): PlacementProblem {
  const next = random(seed)
  const upTo = (max: number) => Math.floor(next() * (max + 1))
  const pick = <T>(...all: T[]): T => all[upTo(all.length - 1)] as T
  const useRackConstraints = next() < 0.3
  const hosts = Array.from({ length: 3 + upTo(1) }, (_, index) => ({
    name: `h${index}`,
    ramMib: (4 + upTo(6)) * 1_024,
    cpuMc: (4 + upTo(6)) * 1_000,
    rack: useRackConstraints ? `r${index % 3}` : null,
    region: null,
    state: index === 0 ? ('dead' as const) : ('live' as const),
  }))
  const overcommit = pick(100, 100, 150)
  const free = hosts.map(({ ramMib, cpuMc }) => ({ ramMib, cpuMc: Math.floor((cpuMc * overcommit) / 100) }))
  const taken = new Set<string>()
  const vms: PlacementVm[] = []
  for (let index = 0; index < 3 + upTo(7); index += 1) {
    const gib = 1 + upTo(5)
    const haGroup = pick(null, null, 'g', 'k')
    const at = upTo(hosts.length - 1)
    const host = hosts[at]!
    const vm: PlacementVm = {
      vm: `v${index}`,
      ramMib: gib * 1_024,
      cpuMc: Math.max(1, gib - 1 + upTo(2)) * 1_000,
      haGroup,
      host: host.name,
      running: at > 0,
      priority: 0,
      pinnedTo: [],
      forbiddenHosts: next() < 0.1 ? ['h1'] : [],
      affinityGroup: null,
    }
    const key = `${haGroup} ${host.rack ?? host.name}`
    const room = free[at]!
    if (room.ramMib < vm.ramMib || room.cpuMc < vm.cpuMc || (haGroup && taken.has(key))) continue
    if (vm.forbiddenHosts.includes(host.name)) continue
    room.ramMib -= vm.ramMib
    room.cpuMc -= vm.cpuMc
    taken.add(key)
    vms.push(vm)
  }
  const limits = { cpuOvercommitPercent: overcommit, ramReservePercent: 0 }
  return { intent: 'recover', hostIds: ['h0'], vmIds: null, useRackConstraints, limits, hosts, vms }
}

export const loads = [0.7, 0.85, 0.93, 0.97]
const sizes: [hosts: number, vms: number, racks: number | null][] = [
  [4, 20, null],
  ...[10, 20].flatMap((hosts): [number, number, number | null][] => [
    [hosts, hosts === 10 ? 100 : 300, null],
    [hosts, hosts === 10 ? 100 : 300, 5],
  ]),
  ...[50, 100].flatMap((hosts): [number, number, number | null][] => [
    [hosts, hosts * 20, null],
    [hosts, hosts * 20, 10],
  ]),
]

type Solution = { family: Family; plan: Plan; firstMs: number | null; totalMs: number; mib: number; isSound: boolean }

/**
 * Plans 108 clusters with a dead host. Reports by cluster size the time to a plan, and how many
 * plans were proved to be the best.
 */
export async function families(engine: EngineName): Promise<void> {
  const seeds = Number(process.env.SEEDS ?? 3)
  const all: Solution[] = []
  console.log(`\nplacement: one host of a cluster has died, ${engine}, at most 10 s each`)
  console.log('hosts x VMs      plans  proved  first plan ms   total s        MiB   not proved')
  for (const [hosts, vms, racks] of sizes) {
    const group: Solution[] = []
    for (const load of loads) {
      for (let seed = 1; seed <= seeds; seed += 1) group.push(await solveOne({ hosts, vms, racks, load, seed }, engine))
    }
    all.push(...group)
    print(`${hosts}x${vms}${racks ? ' racks' : ''}`, group)
  }
  print('all', all)
  const feasible = all.filter(({ plan }) => plan.obstacle === null)
  const soon = feasible.filter(({ firstMs }) => firstMs !== null && firstMs <= 500)
  console.log(
    JSON.stringify({
      bench: 'placement families',
      engine,
      instances: all.length,
      'feasible or not known to be infeasible': feasible.length,
      'first plan within 500 ms (%)': percent(soon.length, feasible.length),
      'ordered plans': all.filter(({ plan }) => plan.state === 'planned').length,
      'proved, infeasible ones counted (%)': percent(all.filter(isProved).length, all.length),
      'plans that break a rule': all.filter(({ isSound }) => !isSound).length,
      'longest (s)': seconds(Math.max(...all.map(({ totalMs }) => totalMs))),
      'most memory (MiB)': Math.max(...all.map(({ mib }) => mib)),
    }),
  )
}

/** Measures larger clusters, of a thousand hosts. */
export async function beyond(): Promise<void> {
  for (const load of [0.85, 0.93]) {
    const { family, plan, firstMs, totalMs, mib } = await solveOne(
      { hosts: 1_000, vms: 20_000, racks: null, load, seed: 1 },
      'glpk',
    )
    const told = `${plan.state}, ${plan.migrations} migrations, at least ${plan.lowerBound} (${plan.proof.kind})`
    console.log(
      `${nameOf(family)}  ${told}  first ${Math.round(firstMs ?? 0)} ms  total ${seconds(totalMs)} s  ${mib} MiB`,
    )
  }
}

async function solveOne(family: Family, engine: EngineName): Promise<Solution> {
  const problem = generate(family)
  const memory = watchMemory()
  const began = performance.now()
  let firstMs: number | null = null
  const plan = await solve(problem, {
    engine,
    onProgress({ migrations }) {
      if (migrations !== null) firstMs ??= performance.now() - began
    },
  })
  const totalMs = performance.now() - began
  return { family, plan, firstMs, totalMs, mib: memory.stop(), isSound: verifyPlan(problem, plan).ok }
}

function isProved({ plan }: Solution): boolean {
  return plan.obstacle !== null || (plan.state === 'planned' && plan.migrations === plan.lowerBound)
}

function print(name: string, group: Solution[]): void {
  const feasible = group.filter(({ plan }) => plan.obstacle === null)
  const firsts = group.flatMap(({ firstMs }) => firstMs ?? [])
  const totals = group.map(({ totalMs }) => totalMs)
  const open = group
    .filter((each) => !isProved(each))
    .map(
      ({ family, plan }) =>
        `${nameOf(family)} ${plan.state === 'planned' ? `${plan.migrations}>=${plan.lowerBound}` : plan.state}`,
    )
  console.log(
    [
      name.padEnd(15),
      `${feasible.filter(({ plan }) => plan.state === 'planned').length} of ${feasible.length}`.padStart(7),
      String(group.filter(isProved).length).padStart(6),
      `${Math.round(median(firsts))} (${Math.round(Math.max(...firsts))})`.padStart(14),
      `${seconds(median(totals))} (${seconds(Math.max(...totals))})`.padStart(13),
      String(Math.max(...group.map(({ mib }) => mib))).padStart(7),
      `  ${open.join(', ')}`,
    ].join(' '),
  )
}

function percent(part: number, of: number): number {
  return Number(((100 * part) / of).toFixed(1))
}

function seconds(ms: number): number {
  return Number((ms / 1_000).toFixed(2))
}

/** Measures the most memory that planning takes, in MiB: this process, its threads, its solvers. */
function watchMemory(everyMs = 50): { stop(): number } {
  let max = 0
  const began = residentKib(process.pid)
  const look = () => {
    const solvers = listDescendants(process.pid).reduce((sum, pid) => sum + residentKib(pid), 0)
    max = Math.max(max, (residentKib(process.pid) - began + solvers) / 1_024)
  }
  const timer = setInterval(look, everyMs)
  return {
    stop() {
      look()
      clearInterval(timer)
      return Math.round(max)
    },
  }
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Returns an empty text for a process that has just ended.
    return ''
  }
}
