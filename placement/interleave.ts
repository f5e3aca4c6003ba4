import type { PlacementHost, PlacementProblem, PlacementVm, PlanStep } from '../domain/placement.ts'
import { failureDomainOf } from './rules.ts'

/**
 * Do the rules hold whatever runs at the same time? Checked beside the replay in order, and sharing no code with what wrote the
 * needs. Answers the first step that could meet too little room or a member of its group; null when none can.
 *
 * Room: of the steps that bring a VM to a host, taken in their order, each must have waited for every departure that an earlier
 * one has waited for, and then fit beside all that were there and all that came before, less those departures. For whatever set
 * of steps has begun, take the last of them to come to the host: it has waited for the room of all.
 */
export function findBadInterleaving(
  problem: PlacementProblem,
  steps: readonly PlanStep[],
): { step: number; reason: string } | null {
  const before = ancestors(steps)
  if (!before) return { step: 0, reason: 'the needs name steps that do not come before' }
  const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
  const dead = new Set(problem.hosts.filter(({ state }) => state === 'dead').map(({ name }) => name))
  const runs = (vm: PlacementVm) => vm.running && vm.host !== null && !dead.has(vm.host)
  for (const host of problem.hosts) {
    const { ramReservePercent, cpuOvercommitPercent } = problem.limits
    let ram = Math.floor((host.ramMib * (100 - ramReservePercent)) / 100)
    let cpu = Math.floor((host.cpuMc * cpuOvercommitPercent) / 100)
    for (const vm of problem.vms) {
      if (!runs(vm) || vm.host !== host.name) continue
      ram -= vm.ramMib
      cpu -= vm.cpuMc
    }
    const given = new Set<number>()
    for (const step of steps) {
      if (step.to !== host.name) continue
      const waited = before.get(step.step) as Set<number>
      for (const departure of given) {
        if (!waited.has(departure))
          return { step: step.step, reason: `it does not wait for step ${departure}, whose room it may need` }
      }
      for (const other of steps) {
        if (other.from !== host.name || other.action !== 'migrate' || !waited.has(other.step) || given.has(other.step))
          continue
        given.add(other.step)
        ram += vms.get(other.vm)!.ramMib
        cpu += vms.get(other.vm)!.cpuMc
      }
      const vm = vms.get(step.vm)!
      ram -= vm.ramMib
      cpu -= vm.cpuMc
      if (ram < 0) return { step: step.step, reason: `${host.name} may be short by ${-ram} MiB` }
      if (cpu < 0) return { step: step.step, reason: `${host.name} may be short by ${-cpu} mCPU` }
    }
  }
  return findBadMeeting(problem, steps, before, runs)
}

/** Two of a group in one domain, because one comes before the other has left for certain. */
function findBadMeeting(
  problem: PlacementProblem,
  steps: readonly PlanStep[],
  before: Map<number, Set<number>>,
  runs: (vm: PlacementVm) => boolean,
): { step: number; reason: string } | null {
  const hosts = new Map(problem.hosts.map((host) => [host.name, host]))
  const domain = (name: string) => failureDomainOf(problem, hosts.get(name) as PlacementHost)
  /** Residency intervals per VM, in step numbers; null is unbounded. */
  const stays = new Map<string, { where: string; from: number | null; until: number | null }[]>()
  for (const vm of problem.vms) {
    if (vm.haGroup === null) continue
    const own = steps.filter((step) => step.vm === vm.vm)
    const places = runs(vm)
      ? [{ where: domain(vm.host as string), from: null as number | null, until: null as number | null }]
      : []
    for (const step of own) {
      const last = places.at(-1)
      if (last) last.until = step.step
      places.push({ where: domain(step.to), from: step.step, until: null })
    }
    stays.set(vm.vm, places)
  }
  const groups = Map.groupBy(
    problem.vms.filter(({ haGroup }) => haGroup !== null),
    ({ haGroup }) => haGroup as string,
  )
  for (const members of groups.values()) {
    for (const one of members) {
      for (const other of members) {
        if (one === other) continue
        for (const here of stays.get(one.vm) ?? []) {
          if (here.from === null) continue
          for (const there of stays.get(other.vm) ?? []) {
            if (there.where !== here.where) continue
            // Certainly apart: one has left before the other begins to arrive.
            const otherLeft = there.until !== null && before.get(here.from)?.has(there.until)
            const oneLeft = here.until !== null && there.from !== null && before.get(there.from)?.has(here.until)
            if (!otherLeft && !oneLeft)
              return { step: here.from, reason: `it may meet ${other.vm} of HA group ${other.haGroup}` }
          }
        }
      }
    }
  }
  return null
}

/** Of each step all that it has waited for, directly or not; null where a need is no earlier step. */
function ancestors(steps: readonly PlanStep[]): Map<number, Set<number>> | null {
  const all = new Map<number, Set<number>>()
  for (const { step, needs } of steps) {
    const own = new Set<number>()
    for (const need of needs) {
      const of = all.get(need)
      if (!of) return null
      own.add(need)
      for (const each of of) own.add(each)
    }
    all.set(step, own)
  }
  return all
}
