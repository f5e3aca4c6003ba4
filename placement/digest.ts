import { digestOf } from '../domain/digest.ts'
import type { PlacementProblem, PlanStep } from '../domain/placement.ts'

/** SHA-256 of the ordered steps: what an approval binds. What a step says of its VM besides is no part of what is done. */
export function planDigest(steps: PlanStep[]): string {
  return digestOf(
    steps.map(({ step, action, vm, from, to, needs, wave }) => ({ step, action, vm, from, to, needs, wave })),
  )
}

/**
 * SHA-256 of the facts a plan rests on: hosts, VMs, where they run. The order in which an inventory lists them is no fact;
 * the intent is no fact either, so that two proposals for one state can be compared.
 */
export function stateFingerprint(problem: Pick<PlacementProblem, 'hosts' | 'vms'>): string {
  const hosts = problem.hosts.map(({ name, ramMib, cpuMc, rack, region, state }) => ({
    ...{ name, ramMib, cpuMc, rack, region, state },
  }))
  const vms = problem.vms.map(
    ({ vm, ramMib, cpuMc, haGroup, host, running, priority, pinnedTo, forbiddenHosts, affinityGroup }) => ({
      ...{ vm, ramMib, cpuMc, haGroup, host, running, priority, affinityGroup },
      pinnedTo: [...pinnedTo].sort(),
      forbiddenHosts: [...forbiddenHosts].sort(),
    }),
  )
  return digestOf({
    hosts: hosts.sort((a, b) => compare(a.name, b.name)),
    vms: vms.sort((a, b) => compare(a.vm, b.vm)),
  })
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
