import type { PlacementHost, PlacementProblem, PlacementVm, Plan, Standing } from '../domain/placement.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import type { WrittenPlan } from './plan-file.ts'
import { listRestrictions, nameFailureDomains, type PlacementRules, readRules } from './rules.ts'

/**
 * Compares the claims of a plan with its steps, after `verifyPlan` replayed the steps. Returns the
 * first false claim, or null. Does not read texts for people (`reason`, `obstacle.text`). Cannot
 * check a claim that no plan exists, or a bound without a certificate.
 */
export function findFalseClaim(problem: PlacementProblem, plan: WrittenPlan): string | null {
  const rules = readRules(problem)
  const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
  return (
    findFalseCount(plan) ??
    findFalseWave(plan) ??
    findFalseLabel(plan, vms) ??
    findFalseDown(plan, rules, vms) ??
    findFalseStanding(problem, plan, rules)
  )
}

function findFalseCount({ state, steps, migrations, lowerBound, proof, obstacle, gap }: WrittenPlan): string | null {
  if (lowerBound < 0) return 'the bound is below zero'
  if (steps.length === 0 && lowerBound > 0) return `a plan that is ${state} claims a bound`
  if (steps.length === 0 && proof.kind !== 'trivial') return `a plan that is ${state} claims a proof of its bound`
  if ((state === 'planned' || state === 'no_action') && obstacle !== null)
    return 'the plan has a place for all VMs, but names an obstacle'
  const saved = state === 'planned' ? Math.max(0, migrations - lowerBound) : null
  if (gap !== undefined && gap !== saved) return `the gap is ${saved ?? 'none'}, but the plan states ${gap ?? 'none'}`
  return null
}

function findFalseWave({ steps }: Plan): string | null {
  const waves = new Map<number, number>()
  for (const { step, needs, wave } of steps) {
    const first = 1 + Math.max(0, ...needs.map((need) => waves.get(need) ?? 0))
    if (wave !== first) return `step ${step} can begin in wave ${first}, but the plan states ${wave}`
    waves.set(step, wave)
  }
  return null
}

/**
 * Checks priorities and groups, which people see beside a name. Plans of version 0.1.0 lack both.
 */
function findFalseLabel({ steps, unplaced }: Plan, vms: Map<string, PlacementVm>): string | null {
  for (const { vm, priority, haGroup } of [...steps, ...unplaced]) {
    const is = vms.get(vm)
    if (priority !== undefined && priority !== is?.priority)
      return `${vm} has priority ${is?.priority}, but the plan states ${priority}`
    if (haGroup !== undefined && haGroup !== is?.haGroup)
      return `${vm} is in ${is?.haGroup === null ? 'no HA group' : `HA group ${is?.haGroup}`}, but the plan states ${haGroup ?? 'none'}`
  }
  return null
}

/**
 * Checks the VMs that stay down: that all are listed, each once. Also checks that each VM listed as
 * overtaking one has a place and a lower priority.
 */
function findFalseDown(
  { state, steps, unplaced }: Plan,
  { stranded }: PlacementRules,
  vms: Map<string, PlacementVm>,
): string | null {
  const down = new Set<string>()
  for (const { vm } of unplaced) {
    if (down.has(vm)) return `${vm} is listed twice among the VMs that stay down`
    down.add(vm)
  }
  const placed = new Set(steps.filter(({ vm }) => stranded.has(vm)).map(({ vm }) => vm))
  for (const { vm, overtakenBy = [] } of unplaced) {
    const wrong = overtakenBy.find(
      (other) => !placed.has(other) || (vms.get(other)?.priority ?? 0) >= (vms.get(vm)?.priority ?? 0),
    )
    if (wrong !== undefined) return `${wrong} is not a VM with a place and a lower priority than ${vm}`
  }
  if (state !== 'infeasible' && state !== 'not_found') return null
  const missing = [...stranded].find((vm) => !down.has(vm))
  if (missing !== undefined) return `${missing} has no place, but the plan does not list it`
  const other = [...down].find((vm) => !stranded.has(vm))
  return other === undefined ? null : `${other} has a place, but the plan lists it as without one`
}

/**
 * Checks that `standing` lists every failure domain, and that the free capacity after each failure
 * agrees with its outcome.
 */
function findFalseStanding(problem: PlacementProblem, { standing, steps }: Plan, rules: PlacementRules): string | null {
  if (standing === null) return null
  if (standing.domain !== (problem.useRackConstraints ? 'rack' : 'host'))
    return `the plan reports what still runs by ${standing.domain}`
  const domains = nameFailureDomains(
    problem,
    problem.hosts.filter(({ name }) => rules.targets.has(name)),
  )
  const after = new Map(rules.place)
  for (const { vm, to } of steps) after.set(vm, to)
  for (const [when, losses, place] of [
    ['before', standing.before, rules.place],
    ['after', standing.after, after],
  ] as const) {
    const flaw = findFalseLosses(problem, losses, { domains, place, rules })
    if (flaw) return `what still runs ${when} the plan: ${flaw}`
  }
  return null
}

type Deaths = { domains: ReturnType<typeof nameFailureDomains>; place: Map<string, string>; rules: PlacementRules }

function findFalseLosses(
  problem: PlacementProblem,
  losses: Standing['before'],
  { domains, place, rules }: Deaths,
): string | null {
  const told = losses.map(({ name }) => name).sort()
  const real = domains.map(({ name }) => name).sort()
  if (JSON.stringify(told) !== JSON.stringify(real))
    return `the plan lists ${told.length} that could fail, but there are ${real.length}`
  for (const { name, outcome, lacks } of losses) {
    const dead = new Set(domains.find((each) => each.name === name)?.hosts.map((host) => host.name))
    const others = problem.hosts.filter((host) => rules.targets.has(host.name) && !dead.has(host.name))
    const { lost, free } = countRoom(problem, others, place, dead)
    const short = { ramMib: countShort(lost, free, 'ramMib'), cpuMc: countShort(lost, free, 'cpuMc') }
    if (lacks && (lacks.ramMib !== short.ramMib || lacks.cpuMc !== short.cpuMc || outcome !== 'not_found'))
      return `if ${name} fails, ${short.ramMib} MiB and ${short.cpuMc} mCPU are missing, but the plan states ${lacks.ramMib} and ${lacks.cpuMc}`
    if (outcome === 'not_found') continue
    if (short.ramMib > 0 || short.cpuMc > 0)
      return `if ${name} fails, there is not enough ${short.ramMib > 0 ? 'RAM' : 'CPU'} in total`
    const alone = outcome === 'moved' ? null : findAlone(lost, free, rules)
    if (alone) return `if ${name} fails, no host has room for ${alone.vm}`
  }
  return null
}

type Room = { host: PlacementHost; ramMib: number; cpuMc: number }

/**
 * Computes which VMs a failure loses, and the free capacity of the remaining hosts if their VMs
 * stay.
 */
function countRoom(
  problem: PlacementProblem,
  others: PlacementHost[],
  place: Map<string, string>,
  dead: Set<string>,
): { lost: PlacementVm[]; free: Room[] } {
  const used = new Map(others.map(({ name }) => [name, { ramMib: 0, cpuMc: 0 }]))
  const lost: PlacementVm[] = []
  for (const vm of problem.vms) {
    const at = place.get(vm.vm)
    if (at === undefined) continue
    if (dead.has(at)) lost.push(vm)
    const here = used.get(at)
    if (here) Object.assign(here, { ramMib: here.ramMib + vm.ramMib, cpuMc: here.cpuMc + vm.cpuMc })
  }
  const free = others.map((host) => {
    const [all, own] = [usableCapacity(problem, host), used.get(host.name) as { ramMib: number; cpuMc: number }]
    return { host, ramMib: all.ramMib - own.ramMib, cpuMc: all.cpuMc - own.cpuMc }
  })
  return { lost, free }
}

/**
 * Computes how much larger the lost VMs are than the free capacity of all hosts. A host over its
 * capacity has none.
 */
function countShort(lost: PlacementVm[], free: Room[], size: 'ramMib' | 'cpuMc'): number {
  const room = free.reduce((sum, each) => sum + Math.max(0, each[size]), 0)
  return Math.max(0, lost.reduce((sum, vm) => sum + vm[size], 0) - room)
}

/** Finds a lost VM for which no host has enough capacity if all running VMs stay. */
function findAlone(lost: PlacementVm[], free: Room[], rules: PlacementRules): PlacementVm | undefined {
  return lost.find(
    (vm) =>
      !free.some(({ host, ramMib, cpuMc }) => ramMib >= vm.ramMib && cpuMc >= vm.cpuMc && !isFar(rules, vm, host)),
  )
}

/**
 * Whether pinned hosts, forbidden hosts or the region exclude this host. A failure changes none of
 * them.
 */
function isFar(rules: PlacementRules, vm: PlacementVm, host: PlacementHost): boolean {
  return listRestrictions(rules, vm, host).some(
    ({ kind }) => kind === 'pinned' || kind === 'forbidden' || kind === 'region',
  )
}
