import { readFileSync } from 'node:fs'
import type { Plan } from '../../domain/placement.ts'
import type { EngineName } from '../../placement/bound/assignment.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { median } from '../stage.ts'
import { type Family, generate, nameOf } from './clusters.ts'

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

/** The 108 clusters of one dead host each, by size: how soon there is a plan, and how often it is proved to be the best. */
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

/** What lies beyond: a thousand hosts. */
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
  const memory = watchChildren()
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

/** The most memory that the processes begun by this one were seen to hold together, in MiB, until it is stopped. */
export function watchChildren(everyMs = 50): { stop(): number } {
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, descendants(process.pid).reduce((sum, pid) => sum + residentKib(pid), 0) / 1_024)
  }, everyMs)
  return {
    stop() {
      clearInterval(timer)
      return Math.round(most)
    },
  }
}

function descendants(pid: number): number[] {
  const own = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return own.flatMap((child) => [child, ...descendants(child)])
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // It has ended in this moment.
    return ''
  }
}
