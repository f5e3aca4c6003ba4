import { type PlacementProblem, placementProblem } from '../domain/placement.ts'
import type { Situation } from './situation.ts'

/** The problem is no problem: somebody made it wrong. `reasons` names every place. */
export class InvalidProblemError extends Error {
  override name = 'InvalidProblemError' as const
  readonly reasons: string[]
  constructor(reasons: string[]) {
    super(`not a placement problem: ${reasons.join('; ')}`)
    this.reasons = reasons
  }
}

/** Throws InvalidProblemError for what no inventory can be: sizes that are no sizes, names twice, names of nothing. */
export function checkProblem(given: PlacementProblem): PlacementProblem {
  const parsed = placementProblem.safeParse(given)
  if (!parsed.success) {
    throw new InvalidProblemError(
      parsed.error.issues.slice(0, 10).map(({ path, message }) => `${path.join('.')}: ${message}`),
    )
  }
  const { hosts, vms, hostIds, vmIds } = parsed.data
  const reasons: string[] = []
  const hostNames = new Set<string>()
  for (const { name } of hosts) {
    if (hostNames.has(name)) reasons.push(`host ${name} is listed twice`)
    hostNames.add(name)
  }
  const vmNames = new Set<string>()
  for (const { vm, host, running } of vms) {
    if (vmNames.has(vm)) reasons.push(`VM ${vm} is listed twice`)
    vmNames.add(vm)
    if (host !== null && !hostNames.has(host)) reasons.push(`VM ${vm} names the unknown host ${host}`)
    if (host === null && running) reasons.push(`VM ${vm} is running nowhere`)
  }
  for (const id of hostIds) if (!hostNames.has(id)) reasons.push(`host ${id} is unknown`)
  for (const id of vmIds ?? []) if (!vmNames.has(id)) reasons.push(`VM ${id} is unknown`)
  if (reasons.length > 0) throw new InvalidProblemError(reasons.slice(0, 10))
  return parsed.data
}

/** Why there can be no placement, where a sum shows it; null when it takes a solver to tell. */
export function plainObstacle({ problem, targets, stranded, movable, fixed, domainOf }: Situation): string | null {
  if (stranded.length === 0) return null
  if (targets.length === 0) return 'no live host is left to take a VM'
  for (const vm of stranded) {
    if (targets.some((host) => host.ramMib >= vm.ramMib && host.cpuMc >= vm.cpuMc)) continue
    const ramMib = Math.max(...targets.map((host) => host.ramMib))
    const cpuMc = Math.max(...targets.map((host) => host.cpuMc))
    const needs = `${vm.vm} needs ${vm.ramMib} MiB and ${vm.cpuMc} mCPU`
    return `${needs}; no live host is that large, even empty (at most ${ramMib} MiB and ${cpuMc} mCPU)`
  }
  const running = [...movable, ...fixed]
  for (const [size, word, unit] of [
    ['ramMib', 'RAM', 'MiB'],
    ['cpuMc', 'CPU', 'mCPU'],
  ] as const) {
    const wanted = stranded.reduce((sum, vm) => sum + vm[size], 0)
    // A host that is already too full lends nothing, and takes nothing from the others either.
    const free = targets.reduce((sum, host) => {
      const used = running.reduce((all, vm) => (vm.host === host.name ? all + vm[size] : all), 0)
      return sum + Math.max(0, host[size] - used)
    }, 0)
    if (wanted > free) return `${word} is short by ${wanted - free} ${unit} in total`
  }
  const domains = new Set(targets.map((host) => domainOf.get(host.name)))
  for (const group of new Set(stranded.map((vm) => vm.haGroup))) {
    if (group === null) continue
    const taken = new Set(running.filter((vm) => vm.haGroup === group).map((vm) => domainOf.get(vm.host ?? '')))
    const wanted = stranded.filter((vm) => vm.haGroup === group).length + taken.size
    const available = new Set([...domains, ...taken]).size
    if (wanted > available) {
      const kind = problem.useRackConstraints ? 'racks' : 'hosts'
      return `HA group ${group} has ${wanted} members to keep apart and there are ${available} live ${kind}`
    }
  }
  return null
}
