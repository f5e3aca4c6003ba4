import type { PlacementHost, PlacementProblem, PlacementVm, Plan, PlanStep } from '../domain/placement.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import { countForcedMigrations } from './certificate.ts'
import { findBadInterleaving } from './obstacle.ts'
import { failureDomainOf, listRestrictions, type PlacementRules, readRules } from './rules.ts'

type Verification = { ok: true } | { ok: false; step: number; reason: string }

type World = {
  problem: PlacementProblem
  rules: PlacementRules
  vms: Map<string, PlacementVm>
  /** The host of each running VM. */
  place: Map<string, string>
  /** VMs of the plan that do not have a place yet. */
  waiting: Set<string>
}

/**
 * Replays a plan step by step in whole numbers, without trust in the search. Replay and search
 * share only `rules.ts`, which defines a plan's VMs and their possible hosts. The plan holds under
 * two conditions. Every step can begin in the state before it, in this order and in any other order
 * that `needs` allows. Every stranded VM runs at the end, except the VMs that a partial plan names.
 * A migrating VM uses capacity on both hosts until its step ends. Does not check a claim that there
 * is no plan. `step` 0 in the result means the plan as a whole.
 */
export function verifyPlan(problem: PlacementProblem, plan: Plan): Verification {
  const wrong = (step: number, reason: string): Verification => ({ ok: false, step, reason })
  const world = buildWorld(problem)
  if (typeof world === 'string') return wrong(0, world)
  const claim = findWrongClaim(problem, plan)
  if (claim) return wrong(0, claim)
  if (plan.state === 'infeasible' || plan.state === 'not_found') {
    const hasNone = problem.intent !== 'rebalance' && world.waiting.size === 0
    return hasNone ? wrong(0, 'every VM has a place') : { ok: true }
  }

  for (const [index, step] of plan.steps.entries()) {
    if (step.step !== index + 1) return wrong(step.step, `step ${index + 1} is numbered ${step.step}`)
    const reason = findStepFault(world, step)
    if (reason) return wrong(step.step, reason)
    world.place.set(step.vm, step.to)
    world.waiting.delete(step.vm)
  }
  const meeting = findBadInterleaving(problem, plan.steps)
  if (meeting) return { ok: false, ...meeting }

  const given = new Set(plan.unplaced.map(({ vm }) => vm))
  if (plan.state === 'planned' && given.size > 0) return wrong(0, 'a plan for all VMs leaves some VMs down')
  for (const vm of world.waiting) if (!given.has(vm)) return wrong(0, `${vm} has no place`)
  for (const vm of given)
    if (!world.waiting.has(vm)) return wrong(0, `${vm} has a place, but the plan lists it as without one`)
  if (plan.state === 'partial' && given.size === 0 && problem.intent !== 'rebalance')
    return wrong(0, 'a partial plan leaves no VM down')
  const apart = findSplitGroup(world)
  if (apart) return wrong(0, apart)
  if (problem.intent !== 'rebalance') return { ok: true }
  const flaw = findViolation(world)
  if (plan.state !== 'partial') return flaw ? wrong(0, flaw) : { ok: true }
  return flaw ? { ok: true } : wrong(0, 'a partial plan leaves no rule broken')
}

/**
 * Returns why this step cannot begin now. Null for a step that can begin. Used just before the step
 * runs; `problem` is then the present state. VMs that move together are on two hosts at that time,
 * so only the complete plan shows whether they end on one host.
 */
export function verifyStep(problem: PlacementProblem, step: PlanStep): string | null {
  const alone = problem.vms.map((vm) => ({ ...vm, affinityGroup: null }))
  const world = buildWorld({ ...problem, vms: alone })
  return typeof world === 'string' ? world : findStepFault(world, step)
}

function buildWorld(problem: PlacementProblem): World | string {
  const twice =
    findDuplicate(problem.hosts.map(({ name }) => `host ${name}`)) ??
    findDuplicate(problem.vms.map(({ vm }) => `VM ${vm}`))
  if (twice) return `${twice} is listed twice`
  const rules = readRules(problem)
  const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
  return { problem, rules, vms, place: new Map(rules.place), waiting: new Set(rules.stranded) }
}

function findDuplicate(names: string[]): string | undefined {
  const seen = new Set<string>()
  return names.find((name) => seen.has(name) || !seen.add(name))
}

function findWrongClaim(
  problem: PlacementProblem,
  { state, steps, migrations, lowerBound, proof }: Plan,
): string | null {
  const isOne = state === 'planned' || state === 'partial'
  if (!isOne && steps.length > 0) return `a plan that is ${state} has steps`
  if (isOne && steps.length === 0) return 'the plan has no steps'
  if (migrations !== steps.filter(({ action }) => action === 'migrate').length)
    return 'the number of migrations is wrong'
  if (state === 'planned' && lowerBound > migrations)
    return 'the bound is higher than the number of migrations in the plan'
  if (problem.intent !== 'rebalance' && proof.kind === 'trivial' && lowerBound > countForcedMigrations(problem))
    return 'the bound is not trivial, but has no proof'
  return null
}

function findStepFault(world: World, { action, vm: name, from, to }: PlanStep): string | null {
  const { problem, rules, vms, place, waiting } = world
  const vm = vms.get(name)
  const target = rules.hostOf.get(to)
  if (!vm || !target) return `${vm ? to : name} is unknown`
  if (problem.vmIds !== null && !problem.vmIds.includes(name)) return `${name} may not be moved`
  const at = place.get(name)
  if (action === 'start') {
    if (at !== undefined) return `${name} already runs on ${at}`
    if (!waiting.has(name)) return `${name} must not be started`
    if (from !== null && from !== vm.host) return `${name} was not on ${from}`
  } else {
    if (at === undefined || at !== from) return `${name} does not run on ${from}`
    if (at === to) return `${name} is already on ${to}`
  }
  const reason = describeRestriction(rules, vm, target) ?? describeShortage(world, vm, target)
  if (reason) return reason
  const mayMove = rules.movable.has(name) || rules.stranded.has(name)
  return mayMove ? null : `${name} must stay on its host: ${describeStay(rules, vm)}`
}

/**
 * Describes the first restriction that keeps a VM from a host, regardless of capacity. Null without
 * a restriction.
 */
function describeRestriction(rules: PlacementRules, vm: PlacementVm, to: PlacementHost): string | null {
  const [bar] = listRestrictions(rules, vm, to)
  if (!bar) return null
  switch (bar.kind) {
    case 'state':
      if (bar.state === 'left') return `${to.name} is being emptied`
      return bar.state === 'far'
        ? `${to.name} is in a region that no VM of this plan can reach`
        : `${to.name} is ${bar.state}`
    case 'region':
      return `${to.name} is not in region ${bar.region}`
    case 'pinned':
      return `${vm.vm} is pinned to ${bar.to.join(', ')}`
    case 'forbidden':
      return `${vm.vm} must not run on ${to.name}`
    case 'failed':
      return `${vm.vm} failed on ${to.name} in this incident (${bar.why})`
    case 'beside':
      return `${vm.vm} belongs beside ${bar.member} of affinity group ${bar.group} on ${bar.on}`
  }
}

function describeStay(
  { hostOf, evacuatedHosts, place, targets }: PlacementRules,
  { vm, affinityGroup }: PlacementVm,
): string {
  const at = place.get(vm) as string
  if (targets.has(at)) return `affinity group ${affinityGroup} must not be moved to make room`
  const takes = hostOf.get(at)?.state === 'live' && !evacuatedHosts.has(at)
  return takes
    ? `no VM of this plan can reach the region of ${at}`
    : `${at} takes no VM, so no VM there has to make room`
}

function describeShortage({ problem, rules, vms, place }: World, vm: PlacementVm, to: PlacementHost): string | null {
  let { ramMib, cpuMc } = vm
  for (const [other, host] of place) {
    const { ramMib: ram, cpuMc: cpu, haGroup } = vms.get(other)!
    if (host === to.name) {
      ramMib += ram
      cpuMc += cpu
    }
    if (other === vm.vm || haGroup === null || haGroup !== vm.haGroup) continue
    if (host === to.name) return `${other} of HA group ${haGroup} is on ${to.name}`
    if (failureDomainOf(problem, rules.hostOf.get(host)!) === failureDomainOf(problem, to))
      return `${other} of HA group ${haGroup} is in rack ${to.rack}`
  }
  const limit = usableCapacity(problem, to)
  if (ramMib > limit.ramMib) return `${to.name} is short by ${ramMib - limit.ramMib} MiB`
  if (cpuMc > limit.cpuMc) return `${to.name} is short by ${cpuMc - limit.cpuMc} mCPU`
  return null
}

/**
 * Checks that VMs that move as one are all on one host, or all without a host. Returns null, or the
 * VMs that are split.
 */
function findSplitGroup({ rules, place, waiting }: World): string | null {
  for (const members of rules.coLocated) {
    const [first, ...others] = members.map(({ vm }) => ({ vm, at: waiting.has(vm) ? undefined : place.get(vm) }))
    const other = others.find(({ at }) => at !== first?.at)
    if (other) return `${first?.vm} and ${other.vm} of affinity group ${members[0]?.affinityGroup} are apart`
  }
  return null
}

/** Finds the first rule that a state breaks. Only a rebalance promises that none is broken. */
function findViolation({ problem, rules, vms, place }: World): string | null {
  const here = Map.groupBy(
    [...place.keys()].map((name) => vms.get(name)!),
    ({ vm }) => place.get(vm)!,
  )
  for (const host of problem.hosts) {
    if (host.state !== 'live') continue
    const own = here.get(host.name) ?? []
    const limit = usableCapacity(problem, host)
    if (own.reduce((sum, vm) => sum + vm.ramMib, 0) > limit.ramMib) return `${host.name} is short of RAM`
    if (own.reduce((sum, vm) => sum + vm.cpuMc, 0) > limit.cpuMc) return `${host.name} is short of CPU`
    const misplaced = own.map((vm) => describeRestriction(rules, vm, host)).find((reason) => reason !== null)
    if (misplaced) return misplaced
  }
  const grouped = [...vms.values()].filter(({ vm, haGroup }) => haGroup !== null && place.has(vm))
  for (const [group, members] of Map.groupBy(grouped, ({ haGroup }) => haGroup as string)) {
    for (const [index, one] of members.entries()) {
      for (const other of members.slice(index + 1)) {
        const [a, b] = [one, other].map(({ vm }) => failureDomainOf(problem, rules.hostOf.get(place.get(vm)!)!))
        if (a === b) return `${one.vm} and ${other.vm} of HA group ${group} are together`
      }
    }
  }
  return null
}
