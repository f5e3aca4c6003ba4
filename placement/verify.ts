import type { PlacementHost, PlacementProblem, PlacementVm, Plan, PlanStep } from '../domain/placement.ts'
import { badInterleaving } from './interleave.ts'

type Verification = { ok: true } | { ok: false; step: number; reason: string }

type World = {
  problem: PlacementProblem
  hosts: Map<string, PlacementHost>
  vms: Map<string, PlacementVm>
  /** Where each running VM is. */
  place: Map<string, string>
  /** VMs that the plan is for and that have no place yet. */
  waiting: Set<string>
  /** Hosts that are to be left. */
  empty: Set<string>
}

/**
 * Replays a plan step by step in whole numbers and believes nobody: it shares no code with what made the plan. Holds when
 * every step could begin in the state the steps before it left, in this order and in any other that `needs` allows, and at the
 * end every stranded VM runs, except for those that a partial plan says it leaves. A migrating VM takes room on both hosts until
 * its step ends. `step` 0 means the plan as a whole.
 */
export function verifyPlan(problem: PlacementProblem, plan: Plan): Verification {
  const wrong = (step: number, reason: string): Verification => ({ ok: false, step, reason })
  const world = worldOf(problem)
  if (typeof world === 'string') return wrong(0, world)
  const claim = wrongClaim(plan)
  if (claim) return wrong(0, claim)
  if (plan.state === 'infeasible' || plan.state === 'not_found') return { ok: true }

  for (const [index, step] of plan.steps.entries()) {
    if (step.step !== index + 1) return wrong(step.step, `step ${index + 1} is numbered ${step.step}`)
    const reason = wrongStep(world, step)
    if (reason) return wrong(step.step, reason)
    world.place.set(step.vm, step.to)
    world.waiting.delete(step.vm)
  }
  const meeting = badInterleaving(problem, plan.steps)
  if (meeting) return { ok: false, ...meeting }

  const given = new Set(plan.unplaced.map(({ vm }) => vm))
  if (plan.state === 'planned' && given.size > 0) return wrong(0, 'a plan for all leaves some down')
  for (const vm of world.waiting) if (!given.has(vm)) return wrong(0, `${vm} has no place`)
  for (const vm of given) if (!world.waiting.has(vm)) return wrong(0, `${vm} is not without a place`)
  const apart = brokenAffinity(world, plan.steps)
  if (apart) return wrong(0, apart)
  const flaw = problem.intent === 'rebalance' && plan.state !== 'partial' ? flawOf(world) : null
  return flaw ? wrong(0, flaw) : { ok: true }
}

/** Could this step begin now? Null, or why not. For a check just before it is carried out: `problem` is then the state of now. */
export function verifyStep(problem: PlacementProblem, step: PlanStep): string | null {
  const world = worldOf(problem)
  return typeof world === 'string' ? world : wrongStep(world, step)
}

function worldOf(problem: PlacementProblem): World | string {
  const { intent, hostIds, vmIds } = problem
  const hosts = new Map<string, PlacementHost>()
  for (const host of problem.hosts) {
    if (hosts.has(host.name)) return `host ${host.name} is listed twice`
    hosts.set(host.name, host)
  }
  const vms = new Map<string, PlacementVm>()
  const place = new Map<string, string>()
  const waiting = new Set<string>()
  const empty = new Set(intent === 'rebalance' ? [] : hostIds)
  const asked = vmIds === null ? null : new Set(vmIds)
  for (const vm of problem.vms) {
    if (vms.has(vm.vm)) return `VM ${vm.vm} is listed twice`
    vms.set(vm.vm, vm)
    const isDead = vm.host !== null && hosts.get(vm.host)?.state === 'dead'
    if (vm.running && vm.host !== null && !isDead) place.set(vm.vm, vm.host)
    if (intent === 'rebalance' || (asked !== null && !asked.has(vm.vm))) continue
    if (vm.host === null ? asked !== null : empty.has(vm.host) && isDead) waiting.add(vm.vm)
    if (intent === 'drain' && vm.running && vm.host !== null && empty.has(vm.host)) waiting.add(vm.vm)
  }
  return { problem, hosts, vms, place, waiting, empty }
}

function wrongClaim({ state, steps, migrations, lowerBound }: Plan): string | null {
  const isOne = state === 'planned' || state === 'partial'
  if (!isOne && steps.length > 0) return `a plan that is ${state} has steps`
  if (isOne && steps.length === 0) return 'a plan without steps plans nothing'
  if (migrations !== steps.filter(({ action }) => action === 'migrate').length)
    return 'the number of migrations is wrong'
  if (state === 'planned' && lowerBound > migrations) return 'the bound is above what the plan needs'
  return null
}

function wrongStep(world: World, { action, vm: name, from, to }: PlanStep): string | null {
  const { problem, hosts, vms, place, waiting, empty } = world
  const vm = vms.get(name)
  const target = hosts.get(to)
  if (!vm || !target) return `${vm ? to : name} is unknown`
  if (problem.vmIds !== null && !problem.vmIds.includes(name)) return `${name} may not be moved`
  if (target.state !== 'live') return `${to} is ${target.state}`
  if (empty.has(to)) return `${to} is to be left`
  const at = place.get(name)
  if (action === 'start') {
    if (at !== undefined) return `${name} runs on ${at} already`
    if (!waiting.has(name)) return `${name} is not to be started`
    if (from !== null && from !== vm.host) return `${name} was not on ${from}`
  } else {
    if (at === undefined || at !== from) return `${name} does not run on ${from}`
    if (at === to) return `${name} is on ${to} already`
  }
  return notAllowed(world, vm, target) ?? noRoom(world, vm, target)
}

function notAllowed(
  { hosts }: World,
  { vm, host, pinnedTo, forbiddenHosts }: PlacementVm,
  to: PlacementHost,
): string | null {
  if (pinnedTo.length > 0 && !pinnedTo.includes(to.name)) return `${vm} is pinned to ${pinnedTo.join(', ')}`
  if (forbiddenHosts.includes(to.name)) return `${vm} must not run on ${to.name}`
  const region = host === null ? null : (hosts.get(host)?.region ?? null)
  if (region !== null && to.region !== null && region !== to.region) return `${to.name} is not in region ${region}`
  return null
}

function noRoom({ problem, hosts, vms, place }: World, vm: PlacementVm, to: PlacementHost): string | null {
  let { ramMib, cpuMc } = vm
  for (const [other, host] of place) {
    const { ramMib: ram, cpuMc: cpu, haGroup } = vms.get(other)!
    if (host === to.name) {
      ramMib += ram
      cpuMc += cpu
    }
    if (other === vm.vm || haGroup === null || haGroup !== vm.haGroup) continue
    if (host === to.name) return `${other} of HA group ${haGroup} is on ${to.name}`
    if (isOneRack(problem, hosts.get(host), to)) return `${other} of HA group ${haGroup} is in rack ${to.rack}`
  }
  const ramLimit = ramOf(problem, to)
  const cpuLimit = cpuOf(problem, to)
  if (ramMib > ramLimit) return `${to.name} is short by ${ramMib - ramLimit} MiB`
  if (cpuMc > cpuLimit) return `${to.name} is short by ${cpuMc - cpuLimit} mCPU`
  return null
}

function isOneRack({ useRackConstraints }: PlacementProblem, a: PlacementHost | undefined, b: PlacementHost): boolean {
  return useRackConstraints && a !== undefined && a.rack !== null && a.rack === b.rack && a.region === b.region
}

function ramOf({ limits }: PlacementProblem, { ramMib }: PlacementHost): number {
  return Math.floor((ramMib * (100 - limits.ramReservePercent)) / 100)
}

function cpuOf({ limits }: PlacementProblem, { cpuMc }: PlacementHost): number {
  return Math.floor((cpuMc * limits.cpuOvercommitPercent) / 100)
}

/** VMs of an affinity group are on one host once one of them was moved, unless others were apart before and still are. */
function brokenAffinity({ vms, place }: World, steps: readonly PlanStep[]): string | null {
  const moved = new Set(steps.map(({ vm }) => vm))
  for (const name of moved) {
    const group = vms.get(name)?.affinityGroup ?? null
    if (group === null) continue
    const here = place.get(name)
    const mates = [...vms.values()].filter(
      ({ vm, affinityGroup }) => affinityGroup === group && vm !== name && place.has(vm),
    )
    const still = mates.filter(({ vm }) => !moved.has(vm))
    const apart = mates.find(({ vm }) => moved.has(vm) && place.get(vm) !== here)
    if (apart) return `${name} and ${apart.vm} of affinity group ${group} are apart`
    if (still.length > 0 && !still.some(({ vm }) => place.get(vm) === here)) {
      return `${name} is not beside ${still[0]?.vm} of affinity group ${group}`
    }
  }
  return null
}

/** The first rule that a state breaks. Only rebalancing promises that none is left. */
function flawOf(world: World): string | null {
  const { problem, hosts, vms, place } = world
  const here = Map.groupBy(
    [...place.keys()].map((name) => vms.get(name)!),
    ({ vm }) => place.get(vm)!,
  )
  for (const host of problem.hosts) {
    if (host.state !== 'live') continue
    const own = here.get(host.name) ?? []
    if (own.reduce((sum, vm) => sum + vm.ramMib, 0) > ramOf(problem, host)) return `${host.name} is short of RAM`
    if (own.reduce((sum, vm) => sum + vm.cpuMc, 0) > cpuOf(problem, host)) return `${host.name} is short of CPU`
    const misplaced = own.map((vm) => notAllowed(world, vm, host)).find((reason) => reason !== null)
    if (misplaced) return misplaced
  }
  const grouped = [...vms.values()].filter(({ vm, haGroup }) => haGroup !== null && place.has(vm))
  for (const [group, members] of Map.groupBy(grouped, ({ haGroup }) => haGroup as string)) {
    for (const [index, one] of members.entries()) {
      for (const other of members.slice(index + 1)) {
        const [a, b] = [hosts.get(place.get(one.vm)!)!, hosts.get(place.get(other.vm)!)!]
        if (a === b || isOneRack(problem, a, b)) return `${one.vm} and ${other.vm} of HA group ${group} are together`
      }
    }
  }
  return null
}
