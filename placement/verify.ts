import type { PlacementHost, PlacementProblem, PlacementVm, Plan } from '../domain/placement.ts'

export type Verification = { ok: true } | { ok: false; step: number; reason: string }

/**
 * Replays a plan step by step in whole numbers and believes nobody: it shares no code with what made the plan. Holds when
 * every step could begin in the state the steps before it left, and at the end every stranded VM runs. A migrating VM
 * takes room on both hosts until its step ends. `step` 0 means the plan as a whole.
 */
export function verifyPlan(problem: PlacementProblem, plan: Plan): Verification {
  const wrong = (step: number, reason: string): Verification => ({ ok: false, step, reason })
  const hosts = new Map<string, PlacementHost>()
  for (const host of problem.hosts) {
    if (hosts.has(host.name)) return wrong(0, `host ${host.name} is listed twice`)
    hosts.set(host.name, host)
  }
  const vms = new Map<string, PlacementVm>()
  const place = new Map<string, string>()
  const waiting = new Set<string>()
  const empty = new Set(problem.intent === 'rebalance' ? [] : problem.hostIds)
  for (const vm of problem.vms) {
    if (vms.has(vm.vm)) return wrong(0, `VM ${vm.vm} is listed twice`)
    vms.set(vm.vm, vm)
    const isDead = vm.host !== null && hosts.get(vm.host)?.state === 'dead'
    if (vm.running && vm.host !== null && !isDead) place.set(vm.vm, vm.host)
    if (problem.intent === 'rebalance' || (problem.vmIds !== null && !problem.vmIds.includes(vm.vm))) continue
    if (vm.host === null ? problem.vmIds !== null : empty.has(vm.host) && isDead) waiting.add(vm.vm)
    if (problem.intent === 'drain' && vm.running && vm.host !== null && empty.has(vm.host)) waiting.add(vm.vm)
  }

  if (plan.state !== 'planned' && plan.steps.length > 0) return wrong(0, `a plan that is ${plan.state} has steps`)
  if (plan.migrations !== plan.steps.filter((step) => step.action === 'migrate').length) {
    return wrong(0, 'the number of migrations is wrong')
  }
  if (plan.state === 'infeasible' || plan.state === 'not_found') return { ok: true }
  if (plan.state === 'planned' && plan.steps.length === 0) return wrong(0, 'a plan without steps plans nothing')

  for (const [index, { step, action, vm: name, from, to }] of plan.steps.entries()) {
    if (step !== index + 1) return wrong(step, `step ${index + 1} is numbered ${step}`)
    const vm = vms.get(name)
    const target = hosts.get(to)
    if (!vm || !target) return wrong(step, `${vm ? to : name} is unknown`)
    if (problem.vmIds !== null && !problem.vmIds.includes(name)) return wrong(step, `${name} may not be moved`)
    if (target.state !== 'live') return wrong(step, `${to} is ${target.state}`)
    if (empty.has(to)) return wrong(step, `${to} is to be left`)
    const at = place.get(name)
    if (action === 'start') {
      if (at !== undefined) return wrong(step, `${name} runs on ${at} already`)
      if (!waiting.has(name)) return wrong(step, `${name} is not to be started`)
      if (from !== null && from !== vm.host) return wrong(step, `${name} was not on ${from}`)
    } else {
      if (at === undefined || at !== from) return wrong(step, `${name} does not run on ${from}`)
      if (at === to) return wrong(step, `${name} is on ${to} already`)
    }
    let ramMib = vm.ramMib
    let cpuMc = vm.cpuMc
    for (const [other, host] of place) {
      const { ramMib: ram, cpuMc: cpu, haGroup } = vms.get(other)!
      if (host === to) {
        ramMib += ram
        cpuMc += cpu
      }
      if (other === name || haGroup === null || haGroup !== vm.haGroup) continue
      if (host === to) return wrong(step, `${other} of HA group ${haGroup} is on ${to}`)
      const rack = hosts.get(host)!.rack
      if (problem.useRackConstraints && rack !== null && rack === target.rack) {
        return wrong(step, `${other} of HA group ${haGroup} is in rack ${rack}`)
      }
    }
    if (ramMib > target.ramMib) return wrong(step, `${to} is short by ${ramMib - target.ramMib} MiB`)
    if (cpuMc > target.cpuMc) return wrong(step, `${to} is short by ${cpuMc - target.cpuMc} mCPU`)
    place.set(name, to)
    waiting.delete(name)
  }
  const [left] = waiting
  if (left !== undefined) return wrong(0, `${left} has no place`)
  if (problem.intent === 'rebalance') {
    const flaw = flawOf(problem, place)
    if (flaw) return wrong(0, flaw)
  }
  return { ok: true }
}

/** The first rule that a state breaks. Only rebalancing promises that none is left. */
function flawOf(problem: PlacementProblem, place: Map<string, string>): string | null {
  const placed = problem.vms.filter((vm) => place.has(vm.vm))
  for (const host of problem.hosts) {
    if (host.state !== 'live') continue
    const here = placed.filter((vm) => place.get(vm.vm) === host.name)
    if (here.reduce((sum, vm) => sum + vm.ramMib, 0) > host.ramMib) return `${host.name} is short of RAM`
    if (here.reduce((sum, vm) => sum + vm.cpuMc, 0) > host.cpuMc) return `${host.name} is short of CPU`
  }
  const rackOf = new Map(problem.hosts.map((host) => [host.name, host.rack]))
  for (const [index, vm] of placed.entries()) {
    for (const other of placed.slice(index + 1)) {
      if (vm.haGroup === null || vm.haGroup !== other.haGroup) continue
      const [a, b] = [place.get(vm.vm)!, place.get(other.vm)!]
      const isOneRack = problem.useRackConstraints && rackOf.get(a) !== null && rackOf.get(a) === rackOf.get(b)
      if (a === b || isOneRack) return `${vm.vm} and ${other.vm} of HA group ${vm.haGroup} are together`
    }
  }
  return null
}
